package command

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/gitops"
)

const gitopsArgoCDLong = `argocd prints an ApplicationSet that makes an Application of each job in TREE, the folder
that 'tegen render -o' wrote. In git it takes every folder that it finds there, so that a new
job needs no other command; an artifact (oci://) has those that TREE has now.

A sync that fails is tried again without end, with the newest revision. Fields that Kueue
writes into jobs of its queues are left alone. There are no sync waves: one would wait for a
suspended job for ever, and for a long one until it ends.

It also prints an AppProject for the Applications. The AppProject permits the repository, the
namespaces and the kinds of TREE, and the pods of these kinds; nothing else. Apply the new
output before a commit that adds a kind or a namespace, and after one that removes a kind.
--project names an existing AppProject instead; Argo CD then also creates namespaces.

With --plugin TREE holds the files of jobs, one each, which Argo CD renders. Their kinds are not
known before, so the Applications are in the AppProject default, or in that of --project.

--on-removal says what becomes of a job's objects when its Application is deleted: because
its folder left git, because somebody deleted the ApplicationSet, or because a wrong --path
matches nothing. By default they stay as they are; 'tegen gitops argocd config' prints what
shows jobs as they are, once for each Argo CD.`

const gitopsArgoCDExample = `  tegen gitops argocd rendered/eks --repo https://git.example/team/jobs | kubectl apply -f -
  tegen gitops argocd rendered/eks --repo https://git.example/team/jobs --on-removal delete
  tegen gitops argocd rendered/eks --repo oci://registry.example/team/jobs:eks
  tegen gitops argocd rendered/eks --repo https://git.example/team/jobs --project training
  tegen gitops argocd jobs --repo https://git.example/team/jobs --plugin --overlay overlays/eks
  tegen gitops argocd config | kubectl apply --server-side -f -`

func newGitOpsArgoCDCmd(s cli.Streams, set generators.Set) *cobra.Command {
	var o gitops.ArgoCD
	cmd := &cobra.Command{
		Use:               "argocd TREE",
		Short:             "Render an AppProject, and an ApplicationSet with an Application for each job",
		Long:              gitopsArgoCDLong,
		Example:           gitopsArgoCDExample,
		Args:              oneTree,
		ValidArgsFunction: one(anyFile), // beside the commands below: a shell that filters would look into these
		RunE: func(_ *cobra.Command, args []string) error {
			fillIn(&o.Options, args[0])
			if err := o.Check(); err != nil {
				return cli.Usage(err)
			}
			return runGitOpsArgoCD(s, o, args[0])
		},
	}
	addTreeFlags(cmd, &o.Options, "argocd")
	flags := cmd.Flags()
	addOptional(cmd, &o.Project, "project", "project", "existing AppProject of the Applications (default: one that "+
		"is rendered for TREE; with --plugin: default)")
	flags.StringVar(&o.Cluster, "cluster", gitops.InCluster, "name or address of the cluster to apply to")
	flags.BoolVar(&o.Plugin, "plugin", false, "have Argo CD render the jobs whose files TREE holds, by the plugin of "+
		"'config'")
	flags.StringVar(&o.Overlay, "overlay", "", "with --plugin: overlay in the repository to render through")
	flags.BoolVar(&o.SelfHeal, "self-heal", false, "take back what somebody changes by hand, a suspension too")
	completeBy(cmd, "overlay", directories)
	cmd.AddCommand(newGitOpsArgoCDConfigCmd(s), newGitOpsArgoCDGenerateCmd(s, set))
	return cmd
}

func runGitOpsArgoCD(s cli.Streams, o gitops.ArgoCD, tree string) error {
	var folders []gitops.Folder
	if o.Plugin {
		jobs, err := openFolder(tree, "the folder that holds the files of jobs")
		if err == nil {
			err = gitops.ReadJobs(jobs, printable(tree))
		}
		if err != nil {
			return err
		}
	} else {
		var err error
		if folders, err = readFolders(tree); err != nil {
			return err
		}
	}
	if err := o.CheckTree(folders); err != nil {
		return err
	}
	objects, notes := gitops.ApplicationSet(o, folders)
	return printObjects(s, objects, notes)
}

const gitopsArgoCDConfigLong = `config prints the keys of Argo CD's ConfigMap argocd-cm by which it shows jobs as they
are: the health of every kind that tegen renders and that Argo CD does not know, and of Jobs,
Pods and claims. Jobs, Pods and claims that tegen did not render keep the health that they
have, but for a Job that was resumed, which Argo CD would call complete.

Apply it with --server-side, which leaves the other keys of argocd-cm to those who wrote them,
or list it under patches: in the kustomization of Argo CD.

--plugin-image adds a container to Argo CD's repo-server that renders jobs; applied with
--server-side, it leaves the rest of that Deployment as it is.

--suspended Healthy is for applications with sync waves of their own, which no suspended
object gets past.`

const gitopsArgoCDConfigExample = `  tegen gitops argocd config | kubectl apply --server-side -f -
  tegen gitops argocd config --namespace argo --suspended Healthy > argocd-cm.yaml
  tegen gitops argocd config --plugin-image registry.example/tegen:1.0.0 > argocd.yaml`

func newGitOpsArgoCDConfigCmd(s cli.Streams) *cobra.Command {
	var namespace, suspended, image string
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Render the health of jobs for argocd-cm",
		Long:    gitopsArgoCDConfigLong,
		Example: gitopsArgoCDConfigExample,
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := gitops.CheckConfig(namespace, suspended, image); err != nil {
				return cli.Usage(err)
			}
			objects := gitops.ArgoCDConfig(namespace, suspended)
			if image != "" {
				objects = append(objects, gitops.PluginConfig(namespace, image)...)
			}
			return printObjects(s, objects, nil)
		},
	}
	cmd.Flags().StringVar(&namespace, "namespace", "argocd", "namespace of Argo CD")
	cmd.Flags().StringVar(&suspended, "suspended", apis.Suspended, "health of a suspended job: Suspended or Healthy")
	addOptional(cmd, &image, "plugin-image", "image", "also render the plugin, in a container of this image of tegen")
	complete(cmd, "suspended", apis.Suspended, apis.Healthy)
	return cmd
}

const gitopsArgoCDGenerateLong = `generate is what the plugin runs, in the path of an Application: it prints what is
rendered of the job that the variable ARGOCD_ENV_TEGEN_JOB names, through the overlay that
ARGOCD_ENV_TEGEN_OVERLAY names. Both are paths below that of the Application. Without a job
those of the overlay are rendered; without either the path is an overlay.`

func newGitOpsArgoCDGenerateCmd(s cli.Streams, set generators.Set) *cobra.Command {
	return &cobra.Command{
		Use:   "generate",
		Short: "Render the jobs of an Application, as its plugin",
		Long:  gitopsArgoCDGenerateLong,
		Example: "  ARGOCD_ENV_TEGEN_OVERLAY=overlays/eks tegen gitops argocd generate\n" +
			"  ARGOCD_ENV_TEGEN_OVERLAY=overlays/eks ARGOCD_ENV_TEGEN_JOB=jobs/resnet.yaml \\\n" +
			"    tegen gitops argocd generate",
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runGitOpsArgoCDGenerate(s, set) },
	}
}

// runGitOpsArgoCDGenerate takes what an author of an Application wrote: it reads nothing outside of the checkout.
func runGitOpsArgoCDGenerate(s cli.Streams, set generators.Set) error {
	paths := map[string][]string{}
	for _, name := range []string{gitops.JobVariable, gitops.OverlayVariable} {
		value := os.Getenv(gitops.PluginPrefix + name)
		if value == "" {
			continue
		}
		if err := gitops.CheckPath(value); err != nil {
			return cli.Usagef("%s%s: %w", gitops.PluginPrefix, name, err)
		}
		paths[name] = []string{value}
	}
	if len(paths) == 0 {
		paths[gitops.OverlayVariable] = []string{"."}
	}
	outs, err := build(s, input{
		files: paths[gitops.JobVariable], overlays: paths[gitops.OverlayVariable], generators: set,
	}, purpose{git: true, yamlOnly: true})
	if err != nil {
		return err
	}
	if err := refuseUnfilled(outs); err != nil {
		return err
	}
	return stream(s.Out, outs[0])
}
