package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/scheduler/bench/internal/markdown"
)

// report is all that was measured.
type report struct {
	options
	results               results
	loadBefore, loadAfter string
}

// print writes the figures and the targets.
func (r report) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s Medians over the rounds.\n\n", markdown.Machine(r.loadBefore, r.loadAfter))
	if rows := r.placed(); len(rows) > 1 {
		b.WriteString("Seconds run from leadership to the last binding, " +
			"and are what pods/s are counted by. The ratio is to kube-scheduler's\n" +
			"pods/s for as many pods without gangs in the same round, with its least and its greatest; of gangs\n" +
			"that gather in racks, and of an earlier tegen-scheduler, to tegen-scheduler's for the same gangs\n" +
			"anywhere.\n\n")
		markdown.Table(&b, rows)
		b.WriteByte('\n')
	}
	rows := [][]string{{"target", "measured", "", "by scheduler's CPU"}}
	for _, t := range r.targets() {
		rows = append(rows, t.row())
	}
	if len(rows) > 1 {
		markdown.Table(&b, rows)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// placed are the figures of the trials that placed pods, in the order of the first round.
func (r report) placed() [][]string {
	rows := [][]string{{
		"nodes", "pods", "scheduler", "rounds", "first binding", "seconds", "pods/s",
		"ratio", "", "CPU/pod", "calls/pod", "memory",
	}}
	for _, nodes := range r.nodes {
		for _, t := range r.trials(nodes) {
			fs := r.results[t]
			if t.refuse || len(fs) == 0 {
				continue
			}
			last := medianOf(fs, figure.last)
			row := []string{
				strconv.Itoa(nodes), t.load(), t.by + and(inRack[t.gathers]), strconv.Itoa(len(fs)),
				markdown.Seconds(duration(medianOf(fs, figure.first))),
				fmt.Sprintf("%.2f", last), fmt.Sprintf("%.0f", float64(t.pods)/last), "", "",
				fmt.Sprintf("%.2f ms", 1000*medianOf(fs, figure.cpu)/float64(t.pods)),
				fmt.Sprintf("%.1f", medianOf(fs, figure.calls)/float64(t.pods)), megabytes(medianOf(fs, figure.memory)),
			}
			if base := t.base(); base != t {
				if all := r.ratios(base, t, figure.last); len(all) > 0 {
					row[7], row[8] = fmt.Sprintf("%.2f", median(all)), fmt.Sprintf("%.2f to %.2f", slices.Min(all),
						slices.Max(all))
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// base is what a trial is compared with: kube-scheduler with as many pods on their own, or where topology is measured
// tegen-scheduler with the same gangs without one.
func (t trial) base() trial {
	if t.gathers != "" || t.by == earlier {
		return trial{nodes: t.nodes, pods: t.pods, gang: t.gang, by: tegen}
	}
	return trial{nodes: t.nodes, pods: t.pods, by: stock}
}

func and(words string) string {
	if words == "" {
		return ""
	}
	return ", " + words
}

// ratios are what a took of what b took, per pod, round by round; nothing where one of them did not run.
func (r report) ratios(a, b trial, of func(figure) float64) []float64 {
	var out []float64
	for i := range min(len(r.results[a]), len(r.results[b])) {
		if took := of(r.results[b][i]); took > 0 {
			out = append(out, of(r.results[a][i])/float64(a.pods)/(took/float64(b.pods)))
		}
	}
	return out
}

func (f figure) first() float64 { return f.First.Seconds() }
func (f figure) last() float64  { return f.Last.Seconds() }
func (f figure) cpu() float64   { return f.CPU.Seconds() }
func (f figure) calls() float64 { return float64(f.Calls) }

func (f figure) verdict() float64 { return f.Verdict.Seconds() }

func (f figure) memory() float64 { return float64(f.Memory) }

func megabytes(n float64) string { return fmt.Sprintf("%.0f MB", n/1e6) }

func medianOf(fs []figure, of func(figure) float64) float64 {
	all := make([]float64, len(fs))
	for i, f := range fs {
		all[i] = of(f)
	}
	return median(all)
}

// median of some numbers; 0 of none.
func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

func duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
