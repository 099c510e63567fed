package main

import (
	"fmt"
	"time"

	"github.com/tegen-dev/tegen/scheduler/bench/internal/markdown"
)

// target is what tegen-scheduler is to reach. A missed one is printed like a met one: the bench measures, it passes no
// verdict.
type target struct {
	words    string
	measured string
	met      bool
	cpu      string // the same by the CPU time of the schedulers, which other load on the machine bends less
}

func (t target) row() []string {
	verdict := "missed"
	if t.met {
		verdict = "met"
	}
	return []string{t.words, t.measured, verdict, t.cpu}
}

// The limits of the targets.
const (
	leastPlain    = 0.95 // of kube-scheduler's rate
	leastGangs    = 0.9  // of kube-scheduler's rate for as many pods without gangs
	leastTopology = 0.9  // of the rate for the same gangs that may be anywhere
	mostGrowth    = 1.3  // of the time per pod
	mostRefusal   = time.Second
	mostVerdict   = 50 * time.Millisecond // of CPU, until the first word of a refusal
)

// targets are those of which both sides were measured.
func (r report) targets() []target {
	var out []target
	for _, nodes := range r.nodes {
		var refusals []target
		for _, t := range r.trials(nodes) {
			if len(r.results[t]) == 0 || t.by != tegen && t.by != tegenNative {
				continue
			}
			switch {
			case t.gathers != "":
				out = append(out, r.atLeast(t, t.base(), leastTopology)...)
			case t.refuse:
				refusals = append(refusals, r.refusal(t))
			case t.gang > 0:
				out = append(out, r.atLeast(t, t.base(), leastGangs)...)
				out = append(out, r.atLeast(t, t.like(inTree), 1)...)
				if t.by == tegen {
					for _, rival := range r.rivals {
						out = append(out, r.atLeast(t, t.like(rival.name), 1)...)
					}
					out = append(out, r.scale(t)...)
				}
			case r.wants(plainPart):
				out = append(out, r.atLeast(t, t.base(), leastPlain)...)
			}
		}
		out = append(append(out, refusals...), r.growth(nodes)...)
	}
	return out
}

// like is the same trial of another scheduler.
func (t trial) like(by string) trial { t.by = by; return t }

// scale compares CPU per pod of a trial on the largest number of nodes with the same on the smallest.
func (r report) scale(t trial) []target {
	if !r.wants(scalePart) || t.nodes == r.nodes[0] {
		return nil
	}
	few := t
	few.nodes = r.nodes[0]
	cpu := r.ratios(t, few, figure.cpu)
	if len(cpu) == 0 {
		return nil
	}
	return []target{{
		words:    fmt.Sprintf("%s: CPU per pod at most %.1f of that on %d", t, mostGrowth, few.nodes),
		measured: fmt.Sprintf("%.2f of the time", median(r.ratios(t, few, figure.last))),
		met:      median(cpu) <= mostGrowth, cpu: fmt.Sprintf("%.2f", median(cpu)),
	}}
}

// atLeast compares the rate of one trial with that of another.
func (r report) atLeast(t, other trial, least float64) []target {
	all := r.ratios(other, t, figure.last)
	if len(all) == 0 {
		return nil
	}
	of := "of " + other.by
	switch {
	case t.gathers != "":
		of = "of the same gangs anywhere"
	case t.gang > 0 && other.gang == 0:
		of += " without gangs"
	}
	words := fmt.Sprintf("%s: at least %.2f %s", t, least, of)
	if least == 1 {
		words = fmt.Sprintf("%s: ahead %s", t, of)
	}
	return []target{{
		words: words, measured: fmt.Sprintf("%.2f", median(all)), met: median(all) >= least &&
			(least != 1 || median(all) > 1),
		cpu: fmt.Sprintf("%.2f", median(r.ratios(other, t, figure.cpu))),
	}}
}

// refusal counts the first that is reported.
func (r report) refusal(t trial) target {
	fs := r.results[t]
	first, verdict := duration(medianOf(fs, figure.first)), duration(medianOf(fs, figure.verdict))
	return target{
		words: fmt.Sprintf("%s: refused within %v and %v of CPU", t, mostRefusal, mostVerdict),
		measured: fmt.Sprintf("%s, all pods reported after %s", markdown.Seconds(first),
			markdown.Seconds(duration(medianOf(fs, figure.last)))),
		met: first < mostRefusal && verdict <= mostVerdict, cpu: markdown.Seconds(verdict),
	}
}

// growth compares the time per pod of the largest number of pods with that of the smallest, and kube-scheduler's
// beside.
func (r report) growth(nodes int) []target {
	few, many := r.pods[0], r.pods[len(r.pods)-1]
	if few == many || !r.wants(growthPart) {
		return nil
	}
	of := func(by string, f func(figure) float64) []float64 {
		return r.ratios(trial{nodes: nodes, pods: many, by: by}, trial{nodes: nodes, pods: few, by: by}, f)
	}
	own := of(tegen, figure.last)
	if len(own) == 0 {
		return nil
	}
	return []target{{
		words: fmt.Sprintf("time per pod of %d pods at most %.1f of that of %d, on %d nodes", many, mostGrowth, few,
			nodes),
		measured: fmt.Sprintf("%.2f, %s %.2f", median(own), stock,
			median(of(stock, figure.last))), met: median(own) <= mostGrowth,
		cpu: fmt.Sprintf("%.2f, %s %.2f", median(of(tegen, figure.cpu)), stock, median(of(stock, figure.cpu))),
	}}
}
