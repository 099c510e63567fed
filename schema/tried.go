package schema

import (
	"fmt"
	"strings"
)

// Tried is how far what a target or a gang renders was tried. Everything is rendered and compared with golden files.
type Tried struct {
	// Judge is what every golden object is held to: a release whose CustomResourceDefinitions, or whose API server,
	// the tests ask.
	Judge string
	Runs  []Run
}

// Run is a program that took the objects: test/e2e says what was seen. docs/proof.md says what was not.
type Run struct {
	Program, Version string
	Nodes            bool // real ones, where real PyTorch or MPI ran; KWOK played the others
	Date             string
}

func (r Run) String() string {
	text := r.Program + " " + r.Version
	if r.Nodes {
		text += " on real nodes"
	}
	return text + ", " + r.Date
}

// kubernetes is the release that test/cluster runs.
const kubernetes = "v1.36.3"

// seen is the day on which the programs were run.
const seen = "2026-11-23"

// onNodes is what needs no other controller.
var onNodes = []Run{{"Kubernetes", kubernetes, true, seen}}

// TriedTargets has a row for each of Targets. Programs are named as docs/targets.md names them.
var TriedTargets = map[[2]string]Tried{
	{FrameworkTorchelastic, TargetJob}:  {"Kubernetes " + kubernetes, onNodes},
	{FrameworkTorchelastic, TargetPods}: {"Kubernetes " + kubernetes, onNodes},
	{FrameworkTorchelastic, TargetJobSet}: {
		"JobSet v0.12.0", []Run{{"JobSet", "v0.12.0", true, seen}},
	},
	{FrameworkTorchelastic, TargetTrainJob}: {
		"Kubeflow Trainer v2.3.0", []Run{{"Kubeflow Trainer", "v2.3.0", true, seen}},
	},
	{FrameworkTorchelastic, TargetVCJob}: {"Volcano v1.15.1", []Run{{"Volcano", "v1.15.1", false, seen}}},
	{FrameworkTorchelastic, TargetElasticJob}: {
		"TorchElastic bc88e69", []Run{{"TorchElastic's controller", "v0.2.2", false, seen}},
	},
	{FrameworkTorchelastic, TargetPyTorchJob}: {
		"training-operator v1.9.4", []Run{{"Kubeflow Training Operator", "v1.9.4", true, seen}},
	},
	{FrameworkDLRover, TargetElasticJob}: {
		"DLRover v0.6.1", []Run{
			{"DLRover's ElasticJob controller", "v0.5.1", false, seen},
			{"DLRover's ElasticJob controller", "v0.6.1", false, seen},
		},
	},
	{FrameworkMXNet, TargetJob}: {"Kubernetes " + kubernetes, onNodes},
	{FrameworkMXNet, TargetMXJob}: {
		"training-operator v1.8.1", []Run{{"Kubeflow Training Operator with MXJob", "v1.8.1", false, seen}},
	},
	{FrameworkMXNet, TargetMXJobMlkube}:    {}, // its operator made its own definition, without a schema
	{FrameworkHorovod, TargetJob}:          {"Kubernetes " + kubernetes, onNodes},
	{FrameworkHorovod, TargetMPIJob}:       mpiOperator,
	{FrameworkByteScheduler, TargetJob}:    {"Kubernetes " + kubernetes, onNodes},
	{FrameworkByteScheduler, TargetMPIJob}: mpiOperator,
	{FrameworkJAX, TargetJob}: {
		"Kubernetes " + kubernetes, []Run{{"Kubernetes", kubernetes, false, seen}},
	},
	{FrameworkJAX, TargetJobSet}: {"JobSet v0.12.0", []Run{{"JobSet", "v0.12.0", false, seen}}},
	{FrameworkJAX, TargetTrainJob}: {
		"Kubeflow Trainer v2.3.0", []Run{{"Kubeflow Trainer", "v2.3.0", false, seen}},
	},
	{FrameworkMPI, TargetJob}:    {"Kubernetes " + kubernetes, onNodes},
	{FrameworkMPI, TargetMPIJob}: mpiOperator,
}

var mpiOperator = Tried{"mpi-operator v0.8.0", []Run{{"MPI Operator", "v0.8.0", true, seen}}}

// TriedGangs has a row for each of Dialects.
var TriedGangs = map[string]Tried{
	GangKoordinator: {"Koordinator v1.8.0", []Run{
		{"Koordinator", "v1.6.1", false, seen}, {"Koordinator", "v1.8.0", false, seen},
	}},
	GangCoscheduling: {"scheduler-plugins v0.34.7", []Run{
		{"scheduler-plugins, as a second scheduler", "v0.34.7", false, seen},
	}},
	GangVolcano:    {"Volcano v1.15.1", []Run{{"Volcano", "v1.15.1", false, seen}}},
	GangKueue:      {"Kueue v0.19.2", []Run{{"Kueue", "v0.19.2", false, seen}}},
	GangKubernetes: {"Kubernetes " + kubernetes, []Run{{"Kubernetes' own gangs", kubernetes, false, seen}}},
	GangTegen:      {"", []Run{{"tegen-scheduler", "of this release", true, seen}}},
}

const triedHead = "\n## How far each was tried\n\n" +
	"Every fixture is rendered and compared with golden files. *Judged by* is the release whose definitions, or\n" +
	"whose API server, all objects are checked against. *Run by* is the program that ran the objects as they are,\n" +
	"with the day: [proof.md](proof.md) describes what was seen. Without a real node, KWOK simulated the pods.\n\n" +
	"| framework | target | renders | judged by | run by |\n|---|---|---|---|---|\n"

// triedTable writes how far each target and each gang was tried.
func triedTable(b *strings.Builder) {
	b.WriteString(triedHead)
	for _, t := range Targets {
		row := TriedTargets[[2]string{t.Framework, t.Name}]
		fmt.Fprintf(b, "| %s | `%s` | %s | %s |\n", t.Framework, t.Name, t.API, row.cells())
	}
	b.WriteString("\n| `gang.scheduler` | judged by | run by |\n|---|---|---|\n")
	for _, d := range Dialects {
		fmt.Fprintf(b, "| `%s` | %s |\n", d.Name, TriedGangs[d.Name].cells())
	}
}

func (t Tried) cells() string {
	var runs []string
	for _, r := range t.Runs {
		runs = append(runs, r.String())
	}
	text := func(s string) string {
		if s == "" {
			return "–"
		}
		return s
	}
	return text(t.Judge) + " | " + text(strings.Join(runs, "; "))
}
