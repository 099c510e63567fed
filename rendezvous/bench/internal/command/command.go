// Package command is what the benchmarks are as programs, beside what they measure.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Main parses the command line and runs, with standard output for what was measured and standard error for progress,
// until done or interrupted. It exits with 1 where either fails.
func Main[O any](name string, parse func(args []string) (O, error),
	run func(context.Context, O, io.Writer, *log.Logger) error,
) {
	opts, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = run(ctx, opts, os.Stdout, log.New(os.Stderr, "", log.Ltime))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Numbers reads a flag's list of integers from 1, each once, and sorts it.
func Numbers(name, text string, most int) ([]int, error) {
	var out []int
	for s := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 || n > most {
			return nil, fmt.Errorf("-%s: %q is not a number from 1 to %d", name, s, most)
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
