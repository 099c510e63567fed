package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/server"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/tegen-dev/tegen/scheduler/gang"
	"github.com/tegen-dev/tegen/scheduler/random"
)

const long = `tegen-scheduler is kube-scheduler with plugins of its own. TegenGang, helped by TegenGangGate, places the
pods of a gang together or not at all: gangs are declared by the annotations gang.scheduling.koordinator.sh/ or by
PodGroups of scheduling.k8s.io. TegenRandom chooses by lot among the nodes that fit a pod.

Pods ask for it with schedulerName: tegen-scheduler, or random for a node by lot. Without --config it runs these two
profiles; a KubeSchedulerConfiguration given there replaces them. Inside a cluster it finds the API by itself; elsewhere
--kubeconfig names it.`

const example = `  # On a laptop, beside a cluster's own scheduler
  tegen-scheduler --kubeconfig ~/.kube/config --leader-elect=false

  # With profiles of one's own
  tegen-scheduler --config scheduler.yaml`

// newCommand is kube-scheduler's command with our plugins. app.NewSchedulerCommand would make the same one, but keeps
// to itself which Lease the scheduler takes and under which identity, which the plugins must know.
func newCommand() *cobra.Command {
	opts := options.NewOptions()
	cmd := &cobra.Command{
		Use: "tegen-scheduler", Long: long, Example: example, Args: cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error { return opts.ComponentGlobalsRegistry.Set() },
		RunE:              func(cmd *cobra.Command, _ []string) error { return schedule(cmd, opts) },
	}
	sets := opts.Flags
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, *sets, columns)
	return cmd
}

// schedule runs the scheduler until it is asked to end, or loses its Lease.
func schedule(cmd *cobra.Command, opts *options.Options) error {
	verflag.PrintAndExitIfRequested()
	gates := opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(opts.Logs, gates); err != nil {
		return fmt.Errorf("setting up logs: %w", err)
	}
	cliflag.PrintFlags(cmd.Flags())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := server.SetupSignalHandler()
	go func() {
		<-stop
		cancel()
	}()
	election := &gang.Election{}
	config, scheduler, err := app.Setup(ctx, opts, plugins(election)...)
	if err != nil {
		return fmt.Errorf("setting up the scheduler: %w", err)
	}
	join(election, config)
	if mutable, ok := gates.(featuregate.MutableFeatureGate); ok {
		mutable.AddMetrics()
	}
	opts.ComponentGlobalsRegistry.AddMetrics()
	return app.Run(ctx, config, scheduler)
}

// join has the plugins follow the election that kube-scheduler takes part in.
func join(election *gang.Election, config *schedulerconfig.CompletedConfig) {
	if config.LeaderElection == nil {
		election.Skip()
		return
	}
	lease := config.ComponentConfig.LeaderElection
	election.Join(config.Client.CoordinationV1().Leases(lease.ResourceNamespace), lease.ResourceName,
		config.LeaderElection.Lock.Identity())
}

func plugins(election *gang.Election) []app.Option {
	out := []app.Option{app.WithPlugin(random.Name, random.New)}
	for name, factory := range gang.Plugins(served{}, election) {
		out = append(out, app.WithPlugin(name, factory))
	}
	return out
}

// served are the metrics that kube-scheduler serves.
type served struct{}

func (served) MustRegister(m ...metrics.Registerable) { legacyregistry.MustRegister(m...) }
func (served) CustomMustRegister(c ...metrics.StableCollector) {
	legacyregistry.CustomMustRegister(c...)
}
