package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tegen-dev/tegen/scheduler/config"
	"github.com/tegen-dev/tegen/test/cluster"
)

// The names of the contenders, as they stand in the tables.
const (
	stock       = "kube-scheduler"
	inTree      = "kube-scheduler, in-tree gangs"
	tegen       = "tegen-scheduler"
	tegenNative = "tegen-scheduler, PodGroups"
	earlier     = "tegen-scheduler, earlier"
)

// gangGates switch on the gangs that Kubernetes comes with, of which gangAPI is the API. The API server always has
// them, so that all schedulers meet the same one; of the schedulers only that which is measured with them.
var gangGates = map[string]bool{"GenericWorkload": true, "GangScheduling": true}

const gangAPI = "scheduling.k8s.io/v1alpha2"

// contender is a scheduler and how gangs are declared to it.
type contender struct {
	name      string
	program   string
	profile   string // schedulerName of the pods
	config    string // a KubeSchedulerConfiguration
	args      []string
	podGroups bool // gangs are PodGroups; otherwise annotations of Koordinator
}

// lease is the name that every contender's election is about.
const lease = "bench"

// election of a leader that lasts longer than a trial. A waiting scheduler asks for the Lease every 500 ms.
const election = `leaderElect: true
  leaseDuration: 1h
  renewDeadline: 30m
  retryPeriod: 500ms
`

const stockConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  ` + election + `  resourceName: ` + lease + `
  resourceNamespace: ` + namespace + "\n"

// contenders builds what is measured and writes the configurations: stock with all its defaults, ours with the one that
// it is installed with. Only elections and clients are set, and those alike.
func contenders(ctx context.Context, c *cluster.Cluster, before string) (map[string]contender, error) {
	kube, err := cluster.Program(ctx, os.Stderr, "kube-scheduler")
	if err != nil {
		return nil, err
	}
	own, err := cluster.BuildCommand(ctx, os.Stderr, "./cmd/tegen-scheduler")
	if err != nil {
		return nil, err
	}
	ownConfig := config.Default(namespace)
	for old, text := range map[string]string{
		"leaderElect: true\n":            election,
		"resourceName: tegen-scheduler ": "resourceName: " + lease + " ",
	} {
		if strings.Count(ownConfig, old) != 1 {
			return nil, fmt.Errorf("setting the election: the default configuration has no single %q", old)
		}
		ownConfig = strings.Replace(ownConfig, old, text, 1)
	}
	var gates []string
	for name := range gangGates {
		gates = append(gates, name+"=true")
	}
	out := map[string]contender{}
	for _, k := range []contender{
		{name: stock, program: kube, profile: "default-scheduler", config: stockConfig},
		{
			name: inTree, program: kube, profile: "default-scheduler", config: stockConfig, podGroups: true,
			args: []string{"--feature-gates=" + strings.Join(gates, ",")},
		},
		{name: tegen, program: own, profile: "tegen-scheduler", config: ownConfig},
		{name: tegenNative, program: own, profile: "tegen-scheduler", config: ownConfig, podGroups: true},
		{name: earlier, program: before, profile: "tegen-scheduler", config: ownConfig},
	} {
		// Rates that nothing here reaches: it is not the limiter that is measured.
		client := fmt.Sprintf("clientConnection: {kubeconfig: %q, qps: 5000, burst: 10000}\n", c.Kubeconfig())
		file := filepath.Join(c.Dir(), strings.NewReplacer(" ", "-", ",", "").Replace(k.name)+".yaml")
		if err := os.WriteFile(file, []byte(k.config+client), 0o600); err != nil {
			return nil, fmt.Errorf("writing the configuration of %s: %w", k.name, err)
		}
		k.args = append(k.args, "--config="+file, "--authentication-kubeconfig="+c.Kubeconfig(),
			"--authorization-kubeconfig="+c.Kubeconfig(),
			"--bind-address=127.0.0.1", "--cert-dir="+filepath.Join(c.Dir(), "bench-certs"))
		out[k.name] = k
	}
	return out, nil
}
