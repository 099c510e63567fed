package main

import (
	"bufio"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/install"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
)

const installLong = `install prints the objects by which a cluster runs what tegen brings along, for
kubectl, Argo CD or Flux to apply. It talks to no cluster.`

const installSchedulerLong = `install scheduler prints what tegen-scheduler needs in a cluster: a Namespace of
restricted pods, a ServiceAccount with the roles of kube-scheduler and two rules
of its own, its configuration, a NetworkPolicy, a PodDisruptionBudget, and a
Deployment whose replicas elect one that schedules. Namespaces that Kubernetes
creates, such as kube-system, are not rendered.

--config names a KubeSchedulerConfiguration, "-" standard input, to be used in
place of the default one, which has the profiles tegen-scheduler and random. Its
leader election must be on, by a Lease in the namespace of the installation.

Choose the namespace with --namespace and not with kustomize's field of that
name, which would move the one RoleBinding that belongs into kube-system.

If anything is wrong, every mistake is reported and nothing is printed.`

const schedulerExample = `  tegen install scheduler --image registry.example/tegen-scheduler:1.0.0 > scheduler.yaml
  tegen install scheduler --namespace batch --replicas 3 --config scheduling.yaml
  kubectl apply --server-side -f scheduler.yaml`

func newInstallCmd(s cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Render what installs the scheduler",
		Long:  installLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("install what? There is: scheduler")
			}
			return cli.Usagef("there is nothing called %q to install; there is: scheduler", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newInstallSchedulerCmd(s))
	return cmd
}

func newInstallSchedulerCmd(s cli.Streams) *cobra.Command {
	opts := install.Defaults(cli.BuildVersion())
	var config string
	cmd := &cobra.Command{
		Use:               "scheduler",
		Short:             "Render what installs tegen-scheduler",
		Long:              installSchedulerLong,
		Example:           schedulerExample,
		Args:              cli.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if err := opts.Check(); err != nil {
				return cli.Usage(err)
			}
			return runInstallScheduler(s, opts, config)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Namespace, "namespace", opts.Namespace, "namespace to install into; it is rendered too")
	flags.StringVar(&opts.Image, "image", opts.Image, "image of tegen-scheduler, with a tag other than latest or a "+
		"digest; a release of tegen has a default")
	flags.Int32Var(&opts.Replicas, "replicas", opts.Replicas, "pods, of which one schedules")
	flags.StringVar(&config, "config", "", "KubeSchedulerConfiguration to use in place of the default one, or - for "+
		"standard input")
	for name, complete := range map[string]cobra.CompletionFunc{
		"config": yamlFiles, "namespace": cobra.NoFileCompletions,
		"image": cobra.NoFileCompletions, "replicas": cobra.NoFileCompletions,
	} {
		if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return cmd
}

// runInstallScheduler writes all or nothing: every object is there before the first byte is written.
func runInstallScheduler(s cli.Streams, opts install.Options, config string) error {
	var file *schema.Source
	if config != "" {
		sources, err := read(s.In, []string{config}, install.MaxConfig)
		if err != nil {
			return err
		}
		file = &sources[0]
	}
	objects, err := install.Scheduler(opts, file)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(s.Out, 1<<16)
	if err := manifest.Write(buffered, objects); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	return nil
}
