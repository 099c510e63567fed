package schema

import (
	"fmt"
	"strings"
)

// Tried is how far what a target or a gang renders was tried. Everything is rendered, and compared with golden files.
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

// onNodes is what needs no other controller.
var onNodes = []Run{{"Kubernetes", kubernetes, true, "2026-11-23"}}

// TriedTargets has a row for each of Targets.
var TriedTargets = map[[2]string]Tried{
	{FrameworkTorchelastic, TargetJob}:  {"Kubernetes " + kubernetes, onNodes},
	{FrameworkTorchelastic, TargetPods}: {"Kubernetes " + kubernetes, onNodes},
	{FrameworkTorchelastic, TargetJobSet}: {
		"JobSet v0.12.0", nil,
	},
	{FrameworkTorchelastic, TargetTrainJob}:   {"Kubeflow Trainer v2.3.0", nil},
	{FrameworkTorchelastic, TargetVCJob}:      {"Volcano v1.15.1", nil},
	{FrameworkTorchelastic, TargetElasticJob}: {"TorchElastic bc88e69", nil},
	{FrameworkTorchelastic, TargetPyTorchJob}: {"training-operator v1.9.4", nil},
	{FrameworkDLRover, TargetElasticJob}:      {"DLRover v0.6.1", nil},
	{FrameworkMXNet, TargetJob}:               {"Kubernetes " + kubernetes, onNodes},
	{FrameworkMXNet, TargetMXJob}:             {"training-operator v1.8.1", nil},
	{FrameworkMXNet, TargetMXJobMlkube}:       {"", nil}, // its operator made its own definition, without a schema
	{FrameworkHorovod, TargetJob}:             {"Kubernetes " + kubernetes, onNodes},
	{FrameworkHorovod, TargetMPIJob}:          {"mpi-operator v0.8.0", nil},
	{FrameworkByteScheduler, TargetJob}:       {"Kubernetes " + kubernetes, onNodes},
	{FrameworkByteScheduler, TargetMPIJob}:    {"mpi-operator v0.8.0", nil},
}

// TriedGangs has a row for each of Dialects.
var TriedGangs = map[string]Tried{
	GangKoordinator:  {"Koordinator v1.8.0", nil},
	GangCoscheduling: {"scheduler-plugins v0.34.7", nil},
	GangVolcano:      {"Volcano v1.15.1", nil},
	GangKueue:        {"Kueue v0.19.2", nil},
	GangKubernetes:   {"Kubernetes " + kubernetes, []Run{{"Kubernetes", kubernetes, false, "2026-11-23"}}},
	GangTegen:        {"", []Run{{"tegen-scheduler", "of this release", true, "2026-11-23"}}},
}

const triedHead = "\n## How far each was tried\n\n" +
	"Every fixture is rendered and compared with a golden file. *Judged by* is the release whose definitions, or whose\n" +
	"API server, every golden object is held to. *Run by* is the program that took the objects as they are, with the day:\n" +
	"[proof.md](proof.md) says what was seen and what was not. Where no real node is named, KWOK played the pods.\n\n" +
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
