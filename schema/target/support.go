package target

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

// Support writes the table of what each framework and target can carry, as docs/support.md has it.
func Support() string {
	var b strings.Builder
	b.WriteString(`# What each target can carry

Made from the table by which jobs are refused (schema/target/targets.go); ` + "`make golden`" +
		` writes it anew. A field that a
target cannot carry is refused with the reason, never dropped.
`)
	triedTable(&b)
	for _, framework := range frameworks() {
		supportTable(&b, framework)
	}
	return b.String()
}

func frameworks() (names []string) {
	for _, t := range All {
		if !slices.Contains(names, t.Framework) {
			names = append(names, t.Framework)
		}
	}
	return names
}

// supportTable is a table of features by targets, and below it why not.
func supportTable(b *strings.Builder, framework string) {
	all := slices.Clone(All)
	// one a framework: their order is fixed
	for mode, row := range map[string]Target{job.ModeBytePS: BytePSJob, job.MXNetLocal: MxnetLocalJob} {
		row.Name += " (mode " + mode + ")"
		all = append(all, row)
	}
	targets := slices.DeleteFunc(all, func(t Target) bool { return t.Framework != framework })
	fmt.Fprintf(b, "\n## %s\n", framework)
	for _, t := range targets {
		if release, old := PodReleases[[2]string{t.Framework, t.Name}]; old {
			fmt.Fprintf(b, "\nThe controller of `target: %s` makes pods of Kubernetes %s and loses what came "+
				"later, seccompProfile\namong it: they cannot run in a namespace that enforces the restricted "+
				"Pod Security Standard.\n",
				t.Name, release.Version)
		}
	}
	b.WriteString("\n| `spec` |")
	for _, t := range targets {
		fmt.Fprintf(b, " %s |", t.Name)
	}
	b.WriteString("\n|---" + strings.Repeat("|---", len(targets)) + "|\n")
	var reasons []string
	for _, f := range Features {
		cells, carried, foreign := "", 0, false
		for _, t := range targets {
			reason, no := t.Lacks[f.Name]
			if !no {
				cells, carried = cells+" yes |", carried+1
				continue
			}
			cells += " – |"
			foreign = foreign || strings.HasPrefix(reason, OwnedBy)
			text := strings.ReplaceAll(reason, "<", `\<`) // or Markdown takes what follows for an element of HTML
			reasons = append(reasons, fmt.Sprintf("- `%s`, %s: %s\n", f.Name, t.Name, text))
		}
		if foreign && carried == 0 { // another framework's own section says nothing here
			reasons = reasons[:len(reasons)-len(targets)]
			continue
		}
		fmt.Fprintf(b, "| `%s`: %s |%s\n", f.Name, f.Doc, cells)
	}
	if len(reasons) > 0 {
		b.WriteString("\nWhy not:\n\n" + strings.Join(reasons, ""))
	}
}

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
	{job.FrameworkTorchelastic, job.TargetJob}:  {"Kubernetes " + kubernetes, onNodes},
	{job.FrameworkTorchelastic, job.TargetPods}: {"Kubernetes " + kubernetes, onNodes},
	{job.FrameworkTorchelastic, job.TargetJobSet}: {
		"JobSet v0.12.0", []Run{{"JobSet", "v0.12.0", true, seen}},
	},
	{job.FrameworkTorchelastic, job.TargetTrainJob}: {
		"Kubeflow Trainer v2.3.0", []Run{{"Kubeflow Trainer", "v2.3.0", true, seen}},
	},
	{job.FrameworkTorchelastic, job.TargetVCJob}: {"Volcano v1.15.1", []Run{{"Volcano", "v1.15.1", false, seen}}},
	{job.FrameworkTorchelastic, job.TargetElasticJob}: {
		"TorchElastic bc88e69", []Run{{"TorchElastic's controller", "v0.2.2", false, seen}},
	},
	{job.FrameworkTorchelastic, job.TargetPyTorchJob}: {
		"training-operator v1.9.4", []Run{{"Kubeflow Training Operator", "v1.9.4", true, seen}},
	},
	{job.FrameworkDLRover, job.TargetElasticJob}: {
		"DLRover v0.6.1", []Run{
			{"DLRover's ElasticJob controller", "v0.5.1", false, seen},
			{"DLRover's ElasticJob controller", "v0.6.1", false, seen},
		},
	},
	{job.FrameworkMXNet, job.TargetJob}: {"Kubernetes " + kubernetes, onNodes},
	{job.FrameworkMXNet, job.TargetMXJob}: {
		"training-operator v1.8.1", []Run{{"Kubeflow Training Operator with MXJob", "v1.8.1", false, seen}},
	},
	{job.FrameworkMXNet, job.TargetMXJobMlkube}:    {}, // its operator made its own definition, without a schema
	{job.FrameworkHorovod, job.TargetJob}:          {"Kubernetes " + kubernetes, onNodes},
	{job.FrameworkHorovod, job.TargetMPIJob}:       mpiOperator,
	{job.FrameworkByteScheduler, job.TargetJob}:    {"Kubernetes " + kubernetes, onNodes},
	{job.FrameworkByteScheduler, job.TargetMPIJob}: mpiOperator,
	{job.FrameworkJAX, job.TargetJob}: {
		"Kubernetes " + kubernetes, []Run{{"Kubernetes", kubernetes, false, seen}},
	},
	{job.FrameworkJAX, job.TargetJobSet}: {"JobSet v0.12.0", []Run{{"JobSet", "v0.12.0", false, seen}}},
	{job.FrameworkJAX, job.TargetTrainJob}: {
		"Kubeflow Trainer v2.3.0", []Run{{"Kubeflow Trainer", "v2.3.0", false, seen}},
	},
	{job.FrameworkMPI, job.TargetJob}:    {"Kubernetes " + kubernetes, onNodes},
	{job.FrameworkMPI, job.TargetMPIJob}: mpiOperator,
}

var mpiOperator = Tried{"mpi-operator v0.8.0", []Run{{"MPI Operator", "v0.8.0", true, seen}}}

// TriedGangs has a row for each of Dialects.
var TriedGangs = map[string]Tried{
	job.GangKoordinator: {"Koordinator v1.8.0", []Run{
		{"Koordinator", "v1.6.1", false, seen}, {"Koordinator", "v1.8.0", false, seen},
	}},
	job.GangCoscheduling: {"scheduler-plugins v0.34.7", []Run{
		{"scheduler-plugins, as a second scheduler", "v0.34.7", false, seen},
	}},
	job.GangVolcano:    {"Volcano v1.15.1", []Run{{"Volcano", "v1.15.1", false, seen}}},
	job.GangKueue:      {"Kueue v0.19.2", []Run{{"Kueue", "v0.19.2", false, seen}}},
	job.GangKubernetes: {"Kubernetes " + kubernetes, []Run{{"Kubernetes' own gangs", kubernetes, false, seen}}},
	job.GangTegen:      {"", []Run{{"tegen-scheduler", "of this release", true, seen}}},
}

const triedHead = "\n## How far each was tried\n\n" +
	"Every fixture is rendered and compared with golden files. *Judged by* is the release whose definitions, or\n" +
	"whose API server, all objects are checked against. *Run by* is the program that ran the objects as they are,\n" +
	"with the day: [proof.md](proof.md) describes what was seen. Without a real node, KWOK simulated the pods.\n\n" +
	"| framework | target | renders | judged by | run by |\n|---|---|---|---|---|\n"

// triedTable writes how far each target and each gang was tried.
func triedTable(b *strings.Builder) {
	b.WriteString(triedHead)
	for _, t := range All {
		row := TriedTargets[[2]string{t.Framework, t.Name}]
		fmt.Fprintf(b, "| %s | `%s` | %s | %s |\n", t.Framework, t.Name, t.API, row.cells())
	}
	b.WriteString("\n| `gang.scheduler` | judged by | run by |\n|---|---|---|\n")
	for _, d := range job.Dialects {
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
