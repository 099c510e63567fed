// Command bench measures tegen side by side with helm, kustomize and cue on the same jobs.
//
//	go run ./bench
//
// Input: the module that it is started in, whose go.mod builds tegen and whose tools.mod builds the peers. Output: two
// Markdown tables on standard output, the figures and the targets; progress on standard error. Exit code 0 says that
// everything was measured, not that every target was met; 1 that a tool failed or that outputs differ.
//
// Invariant: nothing is timed before all tools gave the same objects, and every program runs as a whole process in a
// launcher of its own (launch.go), so that no figure holds anything of the bench.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/bench/internal/command"
	"github.com/tegen-dev/tegen/bench/internal/markdown"
)

// equalSize is how many jobs the outputs are compared at, value by value: enough for every field that differs between
// jobs to do so, few enough for a difference to be read.
const equalSize = 10

type options struct {
	sizes  []int
	runs   int
	budget time.Duration
	tools  []tool

	withEntries bool // in place of the comparison
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == launchCommand {
		os.Exit(launched(os.Args[2:]))
	}
	command.Main("bench", parseFlags, run)
}

func parseFlags(args []string) (options, error) {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	sizes := fs.String("sizes", "1,100,400,1000,4000", "numbers of jobs")
	names := fs.String("tools", "tegen,floor,helm,kustomize,cue", "programs; tegen runs whether named or not")
	runs := fs.Int("runs", 15, "most runs of one program at one size")
	budget := fs.Duration("budget", 8*time.Second, "time after which one program starts no further run at one size")
	before := fs.String("earlier", "", "an earlier build of tegen, a program, to measure beside this one")
	entries := fs.Bool("entries", false, "measure fn and plan beside render and kustomize, in place of the comparison")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	opts := options{runs: *runs, budget: *budget, withEntries: *entries}
	var err error
	// Ascending: a program that is too slow at one size is left out of the larger ones.
	if opts.sizes, err = command.Numbers("sizes", *sizes, maxJobs); err != nil {
		return opts, err
	}
	if opts.runs < 1 {
		return opts, fmt.Errorf("-runs: %d is less than one", opts.runs)
	}
	if opts.tools, err = choose(*names); err == nil && *before != "" {
		opts.tools = append(opts.tools, earlier(*before))
	}
	return opts, err
}

// run builds, compares, measures and reports.
func run(ctx context.Context, opts options, out io.Writer, progress *log.Logger) error {
	tmp, err := os.MkdirTemp("", "tegen-bench-")
	if err != nil {
		return fmt.Errorf("making a directory for programs and inputs: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // left behind it harms no figure
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	b := &bench{options: opts, dir: tmp, root: root, progress: progress, slow: map[string]string{}}
	if err := b.build(ctx); err != nil {
		return err
	}
	if opts.withEntries {
		return b.measureEntries(ctx, out)
	}
	progress.Printf("comparing the outputs of %d jobs", equalSize)
	if err := b.compare(ctx, equalSize); err != nil {
		return err
	}
	report := report{tools: b.tools, loadBefore: markdown.Load()}
	if report.sizes, err = b.measure(ctx); err != nil {
		return err
	}
	report.loadAfter = markdown.Load()
	return report.print(out)
}

// moduleRoot is the directory of go.mod, wherever inside the module the bench was started.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("running go env: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", errors.New("looking for go.mod: start the bench inside its module")
	}
	return filepath.Dir(mod), nil
}
