// Command proof runs everything that shows that tegen works, and prints the tables of docs/proof.md as they are after
// the run: with this commit and date where all tests of a row passed.
//
//	go run ./test/proof                 # all steps, for hours
//	go run ./test/proof -steps node,e2e # two of them
//
// Output of the steps goes to dist/proof, progress to standard error. -write changes docs/proof.md. It exits with 1 if
// a step failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

const page = "docs/proof.md"

// step is a target of make.
type step struct {
	name string
	args []string
	rows bool // its tests are those that rows of the page name: others may have the same names
}

// steps are all, those first that take the least time.
var steps = []step{
	{"test", nil, false},
	{"verify", nil, false},
	{"lint", nil, false},
	{"site", []string{"site-test"}, false},
	{"install", []string{"e2e-install"}, false},
	{"images", []string{"e2e-images"}, false},
	{"release", []string{"e2e-release"}, false},
	{"e2e", nil, true},
	{"operators", []string{"e2e-operators-lab"}, true},
	{"gitops", []string{"e2e-gitops"}, true},
	{"node", []string{"e2e-node"}, true},
	{"torch", []string{"e2e-torch"}, false},
	{"faults", nil, false},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	var all []string
	for _, s := range steps {
		all = append(all, s.name)
	}
	flags := flag.NewFlagSet("proof", flag.ContinueOnError)
	only := flags.String("steps", strings.Join(all, ","), "the steps to run")
	write := flags.Bool("write", false, "write the tables to "+page)
	if err := flags.Parse(args); err != nil {
		return err
	}
	selected := strings.Split(*only, ",")
	for _, name := range selected {
		if !slices.Contains(all, name) {
			return fmt.Errorf("-steps: there is no step %q; use some of %s", name, strings.Join(all, ","))
		}
	}
	commit, err := cleanCommit(ctx)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	results, report, failed := runSteps(ctx, selected, progress)
	updated := update(string(text), results, fmt.Sprintf("%.8s, %s", commit, time.Now().UTC().Format(time.DateOnly)))
	_, err = fmt.Fprintf(out, "Commit %s, %s, %s.\n\n%s\n%s", commit, time.Now().UTC().Format(time.DateOnly),
		machine(ctx), report, tables(updated))
	if err == nil && *write {
		err = os.WriteFile(page, []byte(updated), 0o644)
	}
	if failed != nil {
		err = errors.Join(err, fmt.Errorf("these steps failed: %s; see dist/proof", strings.Join(failed, ", ")))
	}
	return err
}

// cleanCommit is the commit that is tested. Evidence of changed files would be evidence of no commit.
func cleanCommit(ctx context.Context) (string, error) {
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output()
	if err != nil {
		return "", fmt.Errorf("asking git for changes: %w", err)
	}
	if len(changed) > 0 {
		return "", errors.New("files differ from the commit: commit them first")
	}
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("asking git for the commit: %w", err)
	}
	return strings.TrimSpace(string(head)), nil
}

// runSteps runs steps one after the other and returns the results of all tests, a table of the steps, and the names of
// those that failed.
func runSteps(ctx context.Context, names []string, progress io.Writer) (map[string]string, string, []string) {
	results, failed := map[string]string{}, []string(nil)
	report := "| step | result | seconds |\n|---|---|---:|\n"
	for _, s := range steps {
		if !slices.Contains(names, s.name) {
			continue
		}
		fmt.Fprintf(progress, "== %s\n", s.name) //nolint:errcheck // progress
		start := time.Now()
		output, err := runMake(ctx, s)
		result := "passed"
		if err != nil {
			result = "failed: " + err.Error()
			failed = append(failed, s.name)
		}
		own := map[string]string{}
		passed := collect(own, output)
		if s.rows {
			maps.Copy(results, own)
		}
		if passed == 0 && err == nil && strings.HasPrefix(strings.Join(s.args, " "), "e2e") {
			result = "nothing ran: see dist/proof/" + s.name + ".log"
			failed = append(failed, s.name)
		}
		report += fmt.Sprintf("| %s | %s | %.0f |\n", s.name, result, time.Since(start).Seconds())
		fmt.Fprintf(progress, "== %s %s\n", s.name, result) //nolint:errcheck // progress
	}
	return results, report, failed
}

// runMake runs a step with its output in a file, and returns the output.
func runMake(ctx context.Context, s step) (string, error) {
	name := filepath.Join("dist", "proof", s.name+".log")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return "", err
	}
	file, err := os.Create(name)
	if err != nil {
		return "", err
	}
	args := s.args
	if args == nil {
		args = []string{s.name}
	}
	cmd := exec.CommandContext(ctx, "make", append([]string{"--no-print-directory"}, args...)...)
	cmd.Env = append(os.Environ(), "TEGEN_SLICE=") // all of them
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err = errors.Join(cmd.Run(), file.Close())
	text, readErr := os.ReadFile(name)
	return string(text), errors.Join(err, readErr)
}

// machine is what the tests ran on.
func machine(ctx context.Context) string {
	var words []string
	for _, command := range [][]string{{"go", "version"}, {"uname", "-srm"}, {"nproc"}} {
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).Output()
		if err == nil {
			words = append(words, strings.TrimSpace(string(out)))
		}
	}
	return strings.Join(words, ", ") + " cores" + versions()
}

// tested are the modules of the programs that tests run, whose versions the files of test/cluster pin.
var tested = regexp.MustCompile(`(?m)^\s+(?:k8s\.io/kubernetes|go\.etcd\.io/etcd/server/v3|` +
	`sigs\.k8s\.io/(?:jobset|kwok)|github\.com/(?:fluxcd/(?:kustomize|source)-controller|argoproj/argo-cd/v3|` +
	`kubeflow/\S+)) v\S+`)

func versions() string {
	var found []string
	files, _ := filepath.Glob("test/cluster/*.mod") // the pattern is valid
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for _, line := range tested.FindAllString(string(text), -1) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	slices.Sort(found)
	return ", " + strings.Join(slices.Compact(found), ", ")
}
