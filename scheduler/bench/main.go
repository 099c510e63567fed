// Command bench measures tegen-scheduler side by side with kube-scheduler on one control plane.
//
//	go run ./bench
//
// Input: a checkout of the repository, which builds tegen-scheduler and the control plane.
// Output: two Markdown tables on standard output, the figures and the targets; progress on standard error. Exit code 0
// says that everything was measured, not that every target was met; 1 that something failed, such as a pod that was not
// placed.
//
// Invariant: what is timed begins when a scheduler that knows of every pod is made leader, and ends when the API has
// the last binding (measure.go). One scheduler runs at a time, and nothing else writes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"slices"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/scheduler/bench/internal/command"
	"github.com/tegen-dev/tegen/scheduler/bench/internal/markdown"
)

// What can be measured.
const (
	plainPart   = "plain"
	gangsPart   = "gangs"
	refusalPart = "refusal"
	growthPart  = "growth"
	scalePart   = "scale"

	topologyPart = "topology"
)

var parts = []string{plainPart, gangsPart, topologyPart, refusalPart, growthPart, scalePart}

type options struct {
	pods   []int // ascending
	nodes  []int // ascending
	sizes  []int // of gangs, ascending; nil for what gangs says
	rounds int
	budget time.Duration
	only   []string

	profiles string // folder; "" for none
	earlier  string // a program; "" for none
	rivals   []rival
}

func (o options) wants(part string) bool { return slices.Contains(o.only, part) }

func main() { command.Main("scheduler/bench", parseFlags, run) }

func parseFlags(args []string) (options, error) {
	fs := flag.NewFlagSet("scheduler/bench", flag.ContinueOnError)
	pods := fs.String("pods", "1000,5000", "numbers of pods; gangs have as many in all as the smallest")
	nodes := fs.String("nodes", "200,1000", "numbers of nodes; gangs are placed on the smallest")
	rounds := fs.Int("rounds", 3, "most rounds; in each every scheduler does everything once")
	budget := fs.Duration("budget", 15*time.Minute, "time in which no further round is started that is not likely "+
		"to end in it; one round runs in any case")
	only := fs.String("only", strings.Join(parts, ","), "what to measure")
	profiles := fs.String("profiles", "", "folder for CPU profiles of the schedulers, 10 s from leadership; "+
		"figures are worse with them")
	earlier := fs.String("earlier", "", "a tegen-scheduler of an earlier commit, to place the gangs of topology too")
	sizes := fs.String("gangs", "", "sizes of gangs (default 10, 100 and the smallest number of pods)")
	var rivals []rival
	fs.Func("contender", "another scheduler, to place gangs too, as NAME=PROGRAM,CONFIG,DIALECT; may be repeated",
		func(text string) error {
			r, err := parseRival(text, rivals)
			rivals = append(rivals, r)
			return err
		})
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	opts := options{rounds: *rounds, budget: *budget, profiles: *profiles, earlier: *earlier, rivals: rivals}
	var err error
	if opts.pods, err = command.Numbers("pods", *pods, 50_000); err != nil {
		return opts, err
	}
	if opts.nodes, err = command.Numbers("nodes", *nodes, 5_000); err != nil {
		return opts, err
	}
	if *sizes != "" {
		if opts.sizes, err = command.Numbers("gangs", *sizes, opts.pods[0]); err != nil {
			return opts, err
		}
	}
	for part := range strings.SplitSeq(*only, ",") {
		part = strings.TrimSpace(part)
		if !slices.Contains(parts, part) {
			return opts, fmt.Errorf("-only: %q is none of %s", part, strings.Join(parts, ", "))
		}
		opts.only = append(opts.only, part)
	}
	switch most := opts.pods[len(opts.pods)-1]; {
	case opts.rounds < 1:
		return opts, fmt.Errorf("-rounds: %d is less than one", opts.rounds)
	case len(rivals) > 0 && !opts.wants(gangsPart):
		return opts, fmt.Errorf("-contender: %s places gangs, which -only leaves out", rivals[0].name)
	case fs.NArg() > 0:
		return opts, fmt.Errorf("reading the command line: nothing is known of %q", fs.Arg(0))
	case most > opts.nodes[0]*podsPerNode:
		return opts, fmt.Errorf("-pods: %d do not fit on %d nodes, %d each", most, opts.nodes[0], podsPerNode)
	case opts.wants(refusalPart) && opts.gpusToRefuse() == 0:
		return opts, fmt.Errorf("-pods: a gang of %d fits on %d nodes whatever it asks for; raise it, "+
			"or leave out -only %s", opts.pods[0], opts.nodes[0], refusalPart)
	}
	return opts, nil
}

// run starts a control plane, measures and reports.
func run(ctx context.Context, opts options, out io.Writer, progress *log.Logger) (err error) {
	r := report{options: opts, loadBefore: markdown.Load()}
	b, err := open(ctx, opts, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if r.results, err = b.rounds(ctx, opts); err != nil {
		return err
	}
	r.loadAfter = markdown.Load()
	return r.print(out)
}
