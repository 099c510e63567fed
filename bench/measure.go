package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/tegen-dev/tegen/bench/internal/markdown"
)

// series is the runs of one program at one size.
type series struct {
	tool    string
	samples []sample
	spent   time.Duration // by all of them
	skipped string        // why there are none
}

// size is what was measured with one number of jobs, in the order of the programs.
type size struct {
	jobs   int
	series []series
}

// measure runs the programs in turn (A B C A B C …) at one size after the other, and all of that again and again, so
// that whatever else the machine does falls on all programs and sizes alike. A program stops taking part at a size
// after its number of runs or when its time is used up, but runs at least once.
func (b *bench) measure(ctx context.Context) ([]size, error) {
	inputs := make([]input, len(b.sizes))
	out := make([]size, len(b.sizes))
	for i, jobs := range b.sizes {
		var err error
		if inputs[i], err = b.prepare(ctx, jobs); err != nil {
			return nil, err
		}
		out[i] = size{jobs: jobs, series: make([]series, len(b.tools))}
	}
	for round, ran := 1, 1; ran > 0; round++ {
		ran = 0
		for i := range out {
			n, err := b.inTurn(ctx, inputs[i], out[i].series)
			if err != nil {
				return nil, err
			}
			ran += n
		}
		b.progress.Printf("measuring, round %d: %d runs", round, ran)
	}
	return out, nil
}

// inTurn runs each program once that has runs left, and counts them.
func (b *bench) inTurn(ctx context.Context, in input, all []series) (ran int, err error) {
	for i, t := range b.tools {
		s := &all[i]
		s.tool = t.name
		first := len(s.samples) == 0
		if first {
			s.skipped = b.slow[t.name]
		}
		if s.skipped != "" || len(s.samples) == b.runs || s.spent > b.budget {
			continue
		}
		m, err := b.once(ctx, t, in, first)
		if err != nil {
			return ran, err
		}
		ran++
		s.samples = append(s.samples, m)
		s.spent += m.Wall
		if m.Wall > 2*b.budget { // the next size would take minutes, and how it grows is clear
			b.slow[t.name] = fmt.Sprintf("%s is left out above %d jobs, which took it %s", t.name,
				in.jobs, markdown.Seconds(m.Wall))
		}
	}
	return ran, nil
}

// once is one run. The first of a program at a size is looked at, too.
func (b *bench) once(ctx context.Context, t tool, in input, first bool) (sample, error) {
	output := filepath.Join(b.dir, "output")
	s, err := b.execute(ctx, t, in, output)
	if err != nil || !first {
		return s, err
	}
	n, err := countObjects(output)
	if err != nil {
		return s, fmt.Errorf("reading the output of %s: %w", t.name, err)
	}
	if n != in.jobs*objectsPerJob {
		return s, fmt.Errorf("reading the output of %s: %d jobs have %d objects, not %d", t.name,
			in.jobs, n, in.jobs*objectsPerJob)
	}
	return s, nil
}

func (s series) user() time.Duration {
	return median(s.samples, func(m sample) time.Duration { return m.User })
}

func (s series) wall() time.Duration {
	return median(s.samples, func(m sample) time.Duration { return m.Wall })
}

func (s series) peak() int64 {
	return median(s.samples, func(m sample) int64 { return m.Peak })
}

// median of one figure of the samples; 0 of none.
func median[N ~int64](samples []sample, figure func(sample) N) N {
	if len(samples) == 0 {
		return 0
	}
	all := make([]N, len(samples))
	for i, m := range samples {
		all[i] = figure(m)
	}
	slices.Sort(all)
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}
