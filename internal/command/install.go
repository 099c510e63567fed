package command

import (
	"bufio"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/install"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

const installLong = `install prints the objects by which a cluster runs what tegen brings along, for
kubectl, Argo CD or Flux to apply. It talks to no cluster.

The file that it prints can be listed under the resources of a kustomization, and
of an overlay too: 'tegen render --overlay' writes it beside the jobs. Such a
kustomization must have no namespace, namePrefix or nameSuffix of its own.

A reconciler that prunes leaves Namespaces, CustomResourceDefinitions and the
volume of a rendezvous in the cluster when they leave git: jobs would go with them.`

const installSchedulerLong = `install scheduler prints what tegen-scheduler needs in a cluster: a Namespace of
restricted pods, a ServiceAccount with the roles of kube-scheduler and two rules
of its own, its configuration, a NetworkPolicy, a PodDisruptionBudget, and a
Deployment whose replicas elect one that schedules. Namespaces that Kubernetes
creates, such as kube-system, are not rendered.

--config names a KubeSchedulerConfiguration, "-" standard input, to be used in
place of the default one, which has the profiles tegen-scheduler and random. Its
leader election must be on, by a Lease in the namespace of the installation.

With --pod-monitor there is also a PodMonitor of the Prometheus operator, and an
account that may read metrics and nothing else, whose token Kubernetes writes
into a Secret.

Choose the namespace with --namespace and not with kustomize's field of that
name, which would move the one RoleBinding that belongs into kube-system.

If anything is wrong, every mistake is reported and nothing is printed.`

const schedulerExample = `  tegen install scheduler --image registry.example/tegen-scheduler:1.0.0 > scheduler.yaml
  tegen install scheduler --namespace batch --replicas 3 --config scheduling.yaml
  kubectl apply --server-side -f scheduler.yaml`

const installRendezvousLong = `install rendezvous prints a tegen-rendezvous that the jobs of a namespace share. A
job needs none: wherever the image is named, it renders its own. One for all
saves a pod for each job.

Access to it is code execution in the workers of all its jobs, because torch
unpickles what it reads there. No client has to authenticate, so that --clients
takes one namespace. Install one for each namespace.

With --etcd two replicas serve, of which any may be lost, before an etcd 3.5 or
newer that exists and keeps the data. Without it one pod serves, which nothing
evicts. Its data is on the pod's disk, or on a volume of the size --storage. With
--backend c10d it serves proxies (rendezvous.proxy) where it has an etcd or a
volume; without both its data is in its memory, and all runs end with the pod.

Jobs meet in it by their rendezvous.store, or by that of an Environment's
defaults:

  rendezvous:
    backend: etcd # or etcd-v2; c10d with --backend c10d, port 29400 and proxy: true
    store: external
    endpoint: tegen-rendezvous.tegen-rendezvous.svc:2379

What is printed: a Namespace of restricted pods, two Services, a NetworkPolicy
that lets in pods rendered by tegen in the namespace of --clients and, to metrics
and health, pods in the namespaces of --metrics-from, a PodDisruptionBudget, and
a Deployment or StatefulSet. It has no rights in the cluster. Secrets that flags
name must exist in its namespace.

If anything is wrong, every mistake is reported and nothing is printed.`

const rendezvousExample = `  tegen install rendezvous --clients training > rendezvous.yaml
  tegen install rendezvous --clients research --etcd http://etcd.infra.svc:2379
  tegen install rendezvous --clients training --storage 1Gi --pod-monitor --metrics-from monitoring`

const installCRDsLong = `install crds prints the CustomResourceDefinitions that no controller brings in a
form which an API server still takes: ElasticJob of pytorch/elastic, and MxJob of
either operator of MXNet. Apply them before jobs with target elasticjob of
torchelastic, or of framework mxnet with target mxjob of mlkube.io.`

const crdsExample = `  tegen install crds | kubectl apply -f -
  tegen install crds > crds.yaml`

func newInstallCmd(s cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Render what installs the scheduler, a shared rendezvous, or CRDs",
		Long:  installLong,
		Example: "  tegen install scheduler | kubectl apply --server-side -f -\n" +
			"  tegen install rendezvous --clients training > rendezvous.yaml\n" +
			"  tegen install crds > crds.yaml",
		Args: cli.OneOf("part"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newInstallCRDsCmd(s), newInstallRendezvousCmd(s), newInstallSchedulerCmd(s))
	return cmd
}

func newInstallSchedulerCmd(s cli.Streams) *cobra.Command {
	opts := install.Defaults()
	var config string
	cmd := &cobra.Command{
		Use:     "scheduler",
		Short:   "Render what installs tegen-scheduler",
		Long:    installSchedulerLong,
		Example: schedulerExample,
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := opts.Check(); err != nil {
				return cli.Usage(err)
			}
			return runInstallScheduler(s, opts, config)
		},
	}
	addPlace(cmd, &opts.Place, "tegen-scheduler")
	flags := cmd.Flags()
	flags.Int32Var(&opts.Replicas, "replicas", opts.Replicas, "pods, of which one schedules")
	flags.StringVar(&config, "config", "", "KubeSchedulerConfiguration to use in place of the default one, or - for "+
		"standard input")
	completeBy(cmd, "config", manifests)
	return cmd
}

func newInstallRendezvousCmd(s cli.Streams) *cobra.Command {
	opts := install.RendezvousDefaults()
	cmd := &cobra.Command{
		Use:     "rendezvous",
		Short:   "Render what installs a tegen-rendezvous that jobs share",
		Long:    installRendezvousLong,
		Example: rendezvousExample,
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			objects, err := install.Rendezvous(opts)
			if err != nil {
				return cli.Usage(err) // there is no other input than flags
			}
			return writeObjects(s, objects)
		},
	}
	addPlace(cmd, &opts.Place, "tegen-rendezvous")
	flags := cmd.Flags()
	flags.StringSliceVar(&opts.Clients, "clients", nil, "namespace whose jobs may reach it")
	flags.StringSliceVar(&opts.MetricsFrom, "metrics-from", nil, "namespaces whose pods may read metrics and health")
	flags.StringVar(&opts.Backend, "backend", opts.Backend, "what it serves: etcd, which is etcd-v2 too, or c10d")
	flags.StringSliceVar(&opts.Etcd, "etcd", nil, "client URLs of an etcd that exists, which keeps the data")
	flags.StringVar(&opts.EtcdTLS, "etcd-tls-secret", "", "Secret with ca.crt, tls.crt and tls.key, for https")
	flags.StringVar(&opts.EtcdUser, "etcd-user", "", "user of that etcd")
	flags.StringVar(&opts.EtcdPassword, "etcd-password-secret", "", "Secret whose key password is that of the user")
	flags.StringVar(&opts.Storage, "storage", "", "size of a volume for its data, where it keeps them itself")
	flags.StringVar(&opts.StorageClass, "storage-class", "", "StorageClass of that volume")
	flags.Int32Var(&opts.Replicas, "replicas", 0, "pods before an etcd (default 2)")
	complete(cmd, "backend", job.BackendEtcd, job.BackendC10d)
	return cmd
}

func newInstallCRDsCmd(s cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "crds",
		Short:   "Render the CustomResourceDefinitions that no controller brings",
		Long:    installCRDsLong,
		Example: crdsExample,
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := install.CRDs()
			if err != nil {
				return err
			}
			if _, err := s.Out.Write(text); err != nil {
				return fmt.Errorf("writing manifests: %w", err)
			}
			return nil
		},
	}
}

// addPlace adds the flags of every installation.
func addPlace(cmd *cobra.Command, p *install.Place, program string) {
	flags := cmd.Flags()
	flags.StringVar(&p.Namespace, "namespace", p.Namespace, "namespace to install into; it is rendered too")
	flags.BoolVar(&p.CreateNamespace, "create-namespace", p.CreateNamespace, "render the namespace; false where "+
		"something else does")
	flags.StringVar(&p.Image, "image", p.Image, "image of "+program+", with a tag other than latest or a digest; a "+
		"release of tegen has a default")
	flags.BoolVar(&p.PodMonitor, "pod-monitor", p.PodMonitor, "also render a PodMonitor, for the Prometheus operator")
}

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
	return writeObjects(s, objects)
}

// writeObjects writes all or nothing: every object is there before the first byte is written.
func writeObjects(s cli.Streams, objects []runtime.Object) error {
	buffered := bufio.NewWriterSize(s.Out, 1<<16)
	if err := manifest.Write(buffered, objects); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	return nil
}
