// Command tegen-scheduler is kube-scheduler with two plugins more: TegenRandom
// and TegenGang.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/tegen-dev/tegen/scheduler/gang"
	"github.com/tegen-dev/tegen/scheduler/random"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(gang.Name, gang.Factory()), app.WithPlugin(random.Name, random.New))))
}
