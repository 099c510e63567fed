// Command rendezvous measures how fast agents find each other, side by side: torch's etcd protocol on
// the keys API of tegen-rendezvous and on an etcd that still has the v2 API, and tegen's own protocol on etcd.
//
//	go run ./bench/rendezvous
//
// Input: the module that it is started in, which builds tegen-rendezvous; an etcd with --enable-v2 in PATH (3.4 or
// 3.5), without which the side that it stands for is left out. Output: Markdown tables on standard output; progress on
// standard error. Exit code 0 says that everything was measured, not that every target was met.
//
// Invariant: agents are goroutines of the bench, the server is a process of its own with nothing else to do, and what
// is compared is measured in turns.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/bench/internal/command"
	"github.com/tegen-dev/tegen/rendezvous/bench/internal/markdown"
)

// What can be measured.
const (
	worldsPart   = "worlds"
	recoveryPart = "recovery"
	cutsPart     = "cuts"
	requestsPart = "requests"
	pollsPart    = "polls"
	limitsPart   = "limits"
	readersPart  = "readers"
	clusterPart  = "cluster"
	noisyPart    = "noisy"
	dayPart      = "day"
)

var parts = []string{
	worldsPart, recoveryPart, cutsPart, requestsPart, pollsPart, limitsPart, readersPart, clusterPart, noisyPart,
	dayPart,
}

type options struct {
	sizes  []int // of worlds, ascending
	rounds int
	limit  time.Duration // for one world
	lease  time.Duration
	// runs of a cluster
	runsAtOnce int
	dayRuns    int
	span       time.Duration // of that day
	only       []string
	build      string
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == storeCommand {
		if err := serveStore(os.Args[2:]); err != nil {
			log.Fatal(err)
		}
		return
	}
	if len(os.Args) == 6 && os.Args[1] == victimCommand {
		log.Fatal(joinAsVictim(os.Args[2:]))
	}
	command.Main("bench/rendezvous", parseFlags, run)
}

func parseFlags(args []string) (options, error) {
	fs := flag.NewFlagSet("bench/rendezvous", flag.ContinueOnError)
	sizes := fs.String("sizes", "8,16,32,64,256,1000,4000", "numbers of agents in a world")
	rounds := fs.Int("rounds", 3, "rounds; in each every protocol on every server forms a world of every size")
	limit := fs.Duration("limit", time.Minute,
		"time for one world; what does not form in it is not tried with more agents")
	lease := fs.Duration("lease", 20*time.Second, "lease of agents of etcd-v3, where one is lost")
	many := fs.Int("runs", 100, "runs of 16 agents each that share the rendezvous of a cluster")
	day := fs.Int("day", 2000, "runs of 16 agents that begin in a day")
	span := fs.Duration("span", 15*time.Minute, "time that such a day is compressed into")
	only := fs.String("only", strings.Join(parts, ","), "what to measure")
	build := fs.String("program", "",
		"tegen-rendezvous to measure, such as one of another commit (default: this module's)")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	opts := options{
		rounds: *rounds, limit: *limit, lease: *lease, runsAtOnce: *many, build: *build,
		dayRuns: *day, span: *span,
		only: strings.Split(*only, ","),
	}
	for _, p := range opts.only {
		if !slices.Contains(parts, p) {
			return options{}, fmt.Errorf("-only: %q is none of %s", p, strings.Join(parts, ", "))
		}
	}
	if opts.runsAtOnce < 1 {
		return options{}, fmt.Errorf("-runs: %d is below 1", opts.runsAtOnce)
	}
	if opts.dayRuns < 1 || opts.span < time.Duration(opts.dayRuns) {
		return options{}, fmt.Errorf("-day: %d runs in %s", opts.dayRuns, opts.span)
	}
	if opts.rounds < 1 {
		return options{}, fmt.Errorf("-rounds: %d is below 1", opts.rounds)
	}
	var err error
	opts.sizes, err = command.Numbers("sizes", *sizes, 10_000)
	return opts, err
}

func run(ctx context.Context, o options, out io.Writer, progress *log.Logger) error {
	before := markdown.Load()
	b := &bench{options: o, log: progress}
	if err := b.open(ctx); err != nil {
		return err
	}
	defer b.close()
	for _, p := range []struct {
		name    string
		measure func(context.Context) ([][]string, error)
	}{
		{worldsPart, b.worlds},
		{recoveryPart, b.recoveries},
		{cutsPart, b.cuts},
		{requestsPart, b.requests},
		{pollsPart, b.polls},
		{limitsPart, b.limits},
		{readersPart, b.readers},
		{clusterPart, b.cluster},
		{noisyPart, b.noisy},
		{dayPart, b.day},
	} {
		if !slices.Contains(o.only, p.name) {
			continue
		}
		rows, err := p.measure(ctx)
		if err != nil {
			return fmt.Errorf("measuring %s: %w", p.name, err)
		}
		var text strings.Builder
		fmt.Fprintf(&text, "\n%s\n\n", p.name)
		markdown.Table(&text, rows)
		if _, err := io.WriteString(out, text.String()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "\n%s\n", markdown.Machine(before, markdown.Load()))
	return err
}
