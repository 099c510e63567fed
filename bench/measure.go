package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// series is the runs of one program at one size.
type series struct {
	tool    string
	samples []sample
	skipped string // why there are none
}

// size is what was measured with one number of jobs, in the order of the programs.
type size struct {
	jobs   int
	series []series
}

// measure runs the programs in turn (A B C A B C …), so that whatever else the machine does falls on all of them alike.
// A program stops taking part after its number of runs or when its time is used up, but each runs at least once.
func (b *bench) measure(ctx context.Context, jobs int) (size, error) {
	fmt.Fprintf(b.progress, "measuring %d jobs", jobs)
	in, err := b.prepare(ctx, jobs)
	if err != nil {
		return size{}, err
	}
	out := size{jobs: jobs, series: make([]series, len(b.tools))}
	spent := make([]time.Duration, len(b.tools))
	for again := true; again; {
		again = false
		for i, t := range b.tools {
			s := &out.series[i]
			s.tool, s.skipped = t.name, b.slow[t.name]
			if s.skipped != "" || len(s.samples) == b.runs || spent[i] > b.budget {
				continue
			}
			m, err := b.once(ctx, t, in, len(s.samples) == 0)
			if err != nil {
				return out, err
			}
			again = true
			s.samples = append(s.samples, m)
			spent[i] += m.Wall
		}
		fmt.Fprint(b.progress, ".")
	}
	fmt.Fprintln(b.progress)
	b.leaveOut(out)
	return out, nil
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
		return s, fmt.Errorf("reading the output of %s: %d jobs have %d objects, not %d", t.name, in.jobs, n, in.jobs*objectsPerJob)
	}
	return s, nil
}

// leaveOut keeps programs out of larger sizes that take more than twice the budget for one run already: the next size
// would take minutes, and their figure is clear.
func (b *bench) leaveOut(done size) {
	for _, s := range done.series {
		if wall := s.wall(); len(s.samples) > 0 && wall > 2*b.budget {
			if b.slow == nil {
				b.slow = map[string]string{}
			}
			b.slow[s.tool] = fmt.Sprintf("left out: %d jobs took %s", done.jobs, seconds(wall))
		}
	}
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
