package operators

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/test/slice"
)

// scenario is one claim of the design, seen or not.
type scenario struct {
	name string
	run  func(*place)
}

// program is a controller or scheduler that tegen renders for.
type program struct {
	name  string // as docs/targets.md calls it, which says how it is installed
	kinds []string
	// install is the command of its own documentation, of what docs/targets.md does not have.
	install string
	// definitions are the CustomResourceDefinitions, as plural.group/version, that say that it is installed.
	definitions []string
	// log is its file's name in TEGEN_OPERATORS_LOGS; controller selects its pods, as a label selector, where it runs
	// in the cluster.
	log, controller string
	// probe makes the smallest object that the program answers, and waits for the answer.
	probe     func(*place)
	scenarios []scenario
}

// command installs the program.
func (p program) command() string {
	return cmp.Or(p.install, strings.Join(plan.Installed(p.name), "\n    "))
}

// programs are all of them, those first that others need.
var programs = []program{
	jobSet,
	trainer,
	trainingOperator,
	mxnetOperator,
	mpiOperator,
	kueue,
	volcano,
	koordinator,
	coscheduling,
	kubernetesGangs,
	torchElastic,
	dlrover,
}

// TestOperators tries all programs one after the other: they share nodes. A single scenario runs with
// -run 'TestOperators/JobSet/suspend'.
func TestOperators(t *testing.T) {
	if os.Getenv("TEGEN_OPERATORS") != "1" {
		t.Skip("needs a cluster with controllers: set TEGEN_OPERATORS=1 and KUBECONFIG, as make e2e-operators does")
	}
	s := newSuite(t)
	absent := map[string]string{}
	for _, p := range programs {
		if absent[p.name] = s.absent(t, p); absent[p.name] != "" {
			s.missing = append(s.missing,
				fmt.Sprintf("%s: %s is not served\n    %s", p.name, absent[p.name], p.command()))
		}
	}
	if len(s.missing) < len(programs) && !t.Run("nodes", func(t *testing.T) { s.newPlace(t, kwok).played() }) {
		t.Fatal("no scenario was tried, since nobody plays the nodes that all need")
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			if absent[p.name] == "" {
				s.try(t, p)
				return
			}
			s.record(result{program: p, scenario: "all", outcome: "skipped: not installed"})
			text := fmt.Sprintf("%s is not installed: the cluster does not serve %s. To install it:\n%s", p.name,
				absent[p.name], p.command())
			if s.stated(p) != "" {
				t.Fatalf("TEGEN_OPERATORS_VERSIONS has %s=%s, but %s", p.log, s.stated(p), text)
			}
			t.Skip(text)
		})
	}
	s.report(t)
}

// report says what ran and what did not.
func (s *suite) report(t *testing.T) {
	t.Helper()
	t.Logf("results:\n%s", s.table())
	if len(s.missing) > 0 {
		t.Logf("not tried, since not installed:\n  %s", strings.Join(s.missing, "\n  "))
	}
	ran, failed := 0, 0
	for _, r := range s.results {
		if r.outcome == "passed" || r.outcome == "failed" {
			ran++
		}
		if r.outcome == "failed" {
			failed++
		}
	}
	t.Logf("scenarios that ran: %d, failed: %d; programs that are not installed: %d of %d", ran, failed, len(s.missing),
		len(programs))
	if ran == 0 && os.Getenv("TEGEN_OPERATORS_VERSIONS") != "" {
		t.Error("no scenario ran, although TEGEN_OPERATORS_VERSIONS says that programs run")
	}
	if file := os.Getenv("TEGEN_OPERATORS_TABLE"); file != "" {
		if err := os.WriteFile(file, []byte(s.table()), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// try runs the probe, and the scenarios if somebody answered it.
func (s *suite) try(t *testing.T, p program) {
	t.Helper()
	all := append([]scenario{{"answers", p.probe}}, p.scenarios...)
	for i, c := range all {
		if s.ctx.Err() != nil {
			t.Fatal("interrupted")
		}
		ok := t.Run(c.name, func(t *testing.T) {
			if i > 0 { // each program answers in each run
				slice.Skip(t, i)
			}
			began := time.Now()
			defer func() {
				s.record(result{program: p, scenario: c.name, outcome: s.outcome(t), took: time.Since(began)})
			}()
			c.run(s.newPlace(t, p))
		})
		if i == 0 && !ok {
			t.Fatalf("%s is installed, and does not answer", p.name)
		}
	}
}

func (s *suite) outcome(t *testing.T) string {
	t.Helper()
	switch {
	case s.ctx.Err() != nil:
		return "interrupted"
	case t.Skipped():
		return "skipped"
	case t.Failed():
		return "failed"
	default:
		return "passed"
	}
}

// result is a line of the table.
type result struct {
	program  program
	scenario string
	outcome  string
	took     time.Duration
}

func (s *suite) record(r result) {
	s.results = append(s.results, r)
}

// table is all results in Markdown.
func (s *suite) table() string {
	var text strings.Builder
	text.WriteString("| program | version | kinds | scenario | result | seconds |\n|---|---|---|---|---|---:|\n")
	for _, r := range s.results {
		version := "–"
		if !strings.HasPrefix(r.outcome, "skipped: ") {
			version = s.version(r.program)
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %.1f |\n", r.program.name, version,
			strings.Join(r.program.kinds, ", "), r.scenario, r.outcome, r.took.Seconds())
	}
	return text.String()
}

// TestInstall: no program is skipped without a word on how it is had.
func TestInstall(t *testing.T) {
	for _, p := range programs {
		if p.command() == "" {
			t.Errorf("%s: docs/targets.md has no such controller, and it has no command of its own", p.name)
		}
	}
}
