// Command tegen-scheduler is kube-scheduler with plugins of its own: TegenGang and its gate place gangs whole or not at
// all, TegenRandom chooses nodes by lot. Flags, configuration, health, metrics and leader election are
// kube-scheduler's. Without --config it runs the default configuration of scheduler/config.
package main

import (
	"errors"
	"fmt"
	"os"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // what it asks of the API, in /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/pkg/features"

	"github.com/tegen-dev/tegen/scheduler/config"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	// kube-scheduler tells autoscalers the node of each pod that waits for others by a write of its own, which doubles
	// what a gang costs the API. Gangs wait for moments here: they take places once there is room for all.
	gates := utilfeature.DefaultMutableFeatureGate
	if err := gates.OverrideDefault(features.NominatedNodeNameForExpectation, false); err != nil {
		fmt.Fprintln(os.Stderr, fmt.Errorf("setting the default of a feature gate: %w", err))
		return 1
	}
	full, done, err := withConfig(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer done()
	cmd := newCommand()
	cmd.SetArgs(full)
	return cli.Run(cmd)
}

// withConfig adds the default configuration to arguments that name none. kube-scheduler takes profiles from a file
// only: it gets a pipe that holds the text, so that nothing is left behind however it ends.
func withConfig(args []string) (full []string, done func(), err error) {
	if _, ok := value(args, "config"); ok {
		return args, func() {}, nil
	}
	text := config.Default(config.Namespace)
	if kubeconfig, ok := value(args, "kubeconfig"); ok { // which is not read beside a configuration
		text += fmt.Sprintf("clientConnection:\n  kubeconfig: %q\n", kubeconfig)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("handing over the default configuration: %w", err)
	}
	_, err = in.WriteString(text) // far less than a pipe holds, so it does not wait for the reader
	if err := errors.Join(err, in.Close()); err != nil {
		return nil, nil, fmt.Errorf("handing over the default configuration: %w", err)
	}
	file := fmt.Sprintf("--config=/dev/fd/%d", out.Fd())
	return append(args[:len(args):len(args)], file), func() { _ = out.Close() }, nil // it has been read
}

// value is what the last flag of a name says among arguments that are not parsed yet.
func value(args []string, name string) (text string, ok bool) {
	for i, a := range args {
		switch {
		case a == "--"+name && i+1 < len(args):
			text, ok = args[i+1], true
		case len(a) > len(name)+3 && a[:len(name)+3] == "--"+name+"=":
			text, ok = a[len(name)+3:], true
		}
	}
	return text, ok
}
