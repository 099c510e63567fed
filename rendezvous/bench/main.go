// Command bench measures the keys API of tegen-rendezvous beside an etcd that still has the v2 API, and what many runs
// and large values cost a server.
//
//	go run ./bench
//
// Input: the module that it is started in, which builds tegen-rendezvous; an etcd with --enable-v2 in PATH (3.4 or
// 3.5), without which the API is measured alone. Output: Markdown tables on standard output; progress on
// standard error. Exit code 0 says that everything was measured, not that every target was met.
//
// Invariant: clients are goroutines of the bench, the server is a process of its own with nothing else to do, and what
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
	requestsPart = "requests"
	pollsPart    = "polls"
	limitsPart   = "limits"
	readersPart  = "readers"
	clusterPart  = "cluster"
	noisyPart    = "noisy"
)

var parts = []string{
	worldsPart, requestsPart, pollsPart, limitsPart, readersPart, clusterPart, noisyPart,
}

type options struct {
	sizes  []int // of worlds, ascending
	rounds int
	limit  time.Duration // for one world
	// runs of a cluster
	runsAtOnce int
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
	command.Main("rendezvous/bench", parseFlags, run)
}

func parseFlags(args []string) (options, error) {
	fs := flag.NewFlagSet("rendezvous/bench", flag.ContinueOnError)
	sizes := fs.String("sizes", "8,16,32,64,256", "numbers of clients that meet")
	rounds := fs.Int("rounds", 3, "rounds, in each of which every server is measured")
	limit := fs.Duration("limit", time.Minute, "time in which the clients of a run have to meet")
	many := fs.Int("runs", 100, "runs of 16 clients each that share the rendezvous of a cluster")
	only := fs.String("only", strings.Join(parts, ","), "what to measure")
	build := fs.String("program", "",
		"tegen-rendezvous to measure, such as one of another commit (default: this module's)")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	opts := options{
		rounds: *rounds, limit: *limit, runsAtOnce: *many, build: *build, only: strings.Split(*only, ","),
	}
	for _, p := range opts.only {
		if !slices.Contains(parts, p) {
			return options{}, fmt.Errorf("-only: %q is none of %s", p, strings.Join(parts, ", "))
		}
	}
	if opts.runsAtOnce < 1 {
		return options{}, fmt.Errorf("-runs: %d is below 1", opts.runsAtOnce)
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
		{requestsPart, b.requests},
		{pollsPart, b.polls},
		{limitsPart, b.limits},
		{readersPart, b.readers},
		{clusterPart, b.cluster},
		{noisyPart, b.noisy},
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
