package command

import (
	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/gitops"
)

const gitopsFluxLong = `flux prints a GitRepository, or for oci:// an OCIRepository, and a Kustomization for each job
in TREE, the folder that 'tegen render -o' wrote. Flux cannot list folders: run it again
where a job comes or goes, and commit what it prints.

Objects are annotated on their way to the cluster: no ${...} in them is substituted, a Service
that cannot be changed is made anew, and what Kueue writes into jobs of its queues stays.

A private repository or registry, and any ssh://, needs a Secret in the namespace of the
objects: 'flux create secret git' or 'oci' makes one, and --secret-ref names it. --provider has
Flux log in by the identity that its controller has in a cloud.

--wait has Flux wait until a job's pods run, for five minutes at most, where waiting ends: not
for Jobs, Pods and claims. Each Kustomization that waits holds one of the controller's
workers, four by default.

--on-removal says what becomes of a job's objects when its Kustomization is deleted. By default
they stay as they are.

Flux applies jobs with its own permissions, in most clusters all. --service-account also prints
a ServiceAccount that it applies them as, and Roles with the kinds that TREE has in each
namespace. Cluster-scoped objects are listed by name. The namespaces must exist. Apply the new
output before a commit that adds a kind, and after one that removes a kind.`

const gitopsFluxExample = `  tegen gitops flux rendered/eks --repo https://git.example/team/jobs > clusters/eks/jobs.yaml
  tegen gitops flux rendered/eks --repo ssh://git@git.example/team/jobs --secret-ref jobs-login
  tegen gitops flux rendered/eks --repo https://git.example/team/jobs --revision refs/tags/v1
  tegen gitops flux rendered/eks --repo oci://registry.example/team/jobs:eks --provider aws --wait
  tegen gitops flux rendered/eks --repo https://git.example/team/jobs --service-account jobs`

func newGitOpsFluxCmd(s cli.Streams) *cobra.Command {
	var o gitops.Flux
	cmd := &cobra.Command{
		Use:               "flux TREE",
		Short:             "Render a source, and a Kustomization for each job",
		Long:              gitopsFluxLong,
		Example:           gitopsFluxExample,
		Args:              oneTree,
		ValidArgsFunction: one(directories),
		RunE: func(_ *cobra.Command, args []string) error {
			fillIn(&o.Options, args[0])
			if err := o.Check(); err != nil {
				return cli.Usage(err)
			}
			folders, err := readFolders(args[0])
			if err != nil {
				return err
			}
			if err := o.CheckTree(folders); err != nil {
				return err
			}
			objects, notes := gitops.Kustomizations(o, folders)
			return printObjects(s, objects, notes)
		},
	}
	addTreeFlags(cmd, &o.Options, "flux-system")
	cmd.Flags().BoolVar(&o.Wait, "wait", false, "wait until a job's pods run, where waiting ends")
	addOptional(cmd, &o.ServiceAccount, "service-account", "ServiceAccount", "name of a ServiceAccount to render and "+
		"to apply the jobs as, with permissions for the kinds and namespaces of TREE alone (default: Flux's own "+
		"account)")
	addOptional(cmd, &o.SecretRef, "secret-ref", "Secret", "name of the Secret with which Flux logs in")
	addOptional(cmd, &o.Provider, "provider", "cloud", "cloud by whose identity Flux logs in: aws, azure, gcp "+
		"(registries), github (git)")
	cmd.Flags().BoolVar(&o.Insecure, "insecure", false, "the registry speaks plain HTTP, or has a certificate that "+
		"is not trusted")
	complete(cmd, "provider", "aws", "azure", "gcp", "github")
	return cmd
}
