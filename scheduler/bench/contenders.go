package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tegen-dev/tegen/scheduler/config"
	"github.com/tegen-dev/tegen/scheduler/test/cluster"
)

// The names of the contenders, as they stand in the tables.
const (
	stock       = "kube-scheduler"
	inTree      = "kube-scheduler, in-tree gangs"
	tegen       = "tegen-scheduler"
	tegenNative = "tegen-scheduler, PodGroups"
	earlier     = "tegen-scheduler, earlier"
)

var ownNames = []string{stock, inTree, tegen, tegenNative, earlier}

// gangGates switch on the gangs that Kubernetes comes with, of which gangAPI is the API. The API server always has
// them, so that all schedulers meet the same one; of the schedulers only that which is measured with them.
var gangGates = []string{"GenericWorkload=true", "GangScheduling=true"}

const gangAPI = "scheduling.k8s.io/v1alpha2"

// contender is a scheduler and how gangs are declared to it.
type contender struct {
	name    string
	program string
	profile string // schedulerName of the pods
	config  string // as the program reads it
	args    []string
	dialect string
}

// What every contender is told, in its own words.
const (
	lease         = "bench" // that the election is about
	leaseDuration = "1h"
	renewDeadline = "30m"
	retryPeriod   = "500ms"
	clientRate    = 5000 // requests a second
)

const stockConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
`

// contenders builds what is measured and writes the configurations: stock with all its defaults, ours with the one that
// it is installed with, rivals with their own. Only elections and clients are set, and those alike.
func contenders(ctx context.Context, c *cluster.Cluster, o options) (map[string]contender, error) {
	kube, err := cluster.Program(ctx, os.Stderr, "kube-scheduler")
	if err != nil {
		return nil, err
	}
	own, err := cluster.Build(ctx, "scheduler", "cmd/tegen-scheduler")
	if err != nil {
		return nil, err
	}
	ownConfig := config.Default(namespace)
	all := []contender{
		{name: stock, program: kube, config: stockConfig},
		{
			name: inTree, program: kube, config: stockConfig, dialect: kubeDialect,
			args: []string{"--feature-gates=" + strings.Join(gangGates, ",")},
		},
		{name: tegen, program: own, config: ownConfig, dialect: koordinatorDialect},
		{name: tegenNative, program: own, config: ownConfig, dialect: kubeDialect},
		{name: earlier, program: o.earlier, config: ownConfig, dialect: koordinatorDialect},
	}
	for _, r := range o.rivals {
		text, err := os.ReadFile(r.config)
		if err != nil {
			return nil, fmt.Errorf("reading the configuration of %s: %w", r.name, err)
		}
		all = append(all, contender{name: r.name, program: r.program, config: string(text), dialect: r.dialect})
	}
	out := map[string]contender{}
	for _, k := range all {
		if err := k.configure(c); err != nil {
			return nil, fmt.Errorf("writing the configuration of %s: %w", k.name, err)
		}
		out[k.name] = k
	}
	return out, nil
}

// configure writes the contender's configuration and completes its arguments.
func (k *contender) configure(c *cluster.Cluster) error {
	file := filepath.Join(c.Dir(), strings.NewReplacer(" ", "-", ",", "").Replace(k.name)+".yaml")
	if k.dialect == volcanoDialect {
		k.profile = "volcano"
		k.args = append(k.args, "--scheduler-conf="+file, "--kubeconfig="+c.Kubeconfig(),
			"--scheduler-name="+k.profile, "--leader-elect=true", "--leader-elect-resource-name="+lease,
			"--leader-elect-resource-namespace="+namespace, "--leader-elect-lease-duration="+leaseDuration,
			"--leader-elect-renew-deadline="+renewDeadline, "--leader-elect-retry-period="+retryPeriod,
			fmt.Sprintf("--kube-api-qps=%d", clientRate), fmt.Sprintf("--kube-api-burst=%d", 2*clientRate),
			"--enable-metrics=true", "--enable-pprof=true")
		return os.WriteFile(file, []byte(k.config), 0o600)
	}
	text, profile, err := configured(k.config, c.Kubeconfig())
	if err != nil {
		return err
	}
	k.profile = profile
	k.args = append(k.args, "--config="+file, "--authentication-kubeconfig="+c.Kubeconfig(),
		"--authorization-kubeconfig="+c.Kubeconfig(), "--bind-address=127.0.0.1",
		"--cert-dir="+filepath.Join(c.Dir(), "bench-certs"))
	return os.WriteFile(file, []byte(text), 0o600)
}

// serving are the URL of the contender's pages on a port and the argument that makes it serve them there.
func (k contender) serving(port int) (url, arg string) {
	if k.dialect == volcanoDialect {
		return fmt.Sprintf("http://127.0.0.1:%d", port), fmt.Sprintf("--listen-address=127.0.0.1:%d", port)
	}
	return fmt.Sprintf("https://127.0.0.1:%d", port), fmt.Sprintf("--secure-port=%d", port)
}

// queues says whether the contender watches pods, and counts those that wait, before it leads.
func (k contender) queues() bool { return k.dialect != volcanoDialect }
