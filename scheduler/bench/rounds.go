package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// trial is what one scheduler does in one go: it places pods, or refuses them.
type trial struct {
	nodes, pods int
	gang        int // pods of one gang; 0 for pods without one
	by          string
	refuse      bool   // the gang does not fit
	gathers     string // in a rack: mustGather or preferGather; "" where its pods may be anywhere
}

func (t trial) String() string {
	s := fmt.Sprintf("%s: %s on %d nodes", t.by, t.load(), t.nodes)
	if t.gathers != "" {
		s += ", " + inRack[t.gathers]
	}
	if t.refuse {
		s += ", which do not fit"
	}
	return s
}

// The strategies by which gangs gather in racks.
const (
	mustGather   = "MustGather"
	preferGather = "PreferGather"
)

var inRack = map[string]string{mustGather: "each in one rack", preferGather: "each in one rack if it can be"}

// load is the pods in words.
func (t trial) load() string {
	switch n := t.pods / max(t.gang, 1); {
	case t.gang == 0:
		return fmt.Sprintf("%d pods", t.pods)
	case n == 1:
		return fmt.Sprintf("1 gang of %d", t.gang)
	default:
		return fmt.Sprintf("%d gangs of %d", n, t.gang)
	}
}

// results are the figures of each trial by round. Every trial has one of each round that the nodes had.
type results map[trial][]figure

// trials are what is measured on a number of nodes, in the order of the first round.
func (o options) trials(nodes int) []trial {
	smallest, largest := nodes == o.nodes[0], nodes == o.nodes[len(o.nodes)-1]
	var out []trial
	add := func(t trial) {
		t.nodes = nodes
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	if o.wants(plainPart) || o.wants(growthPart) && largest {
		for _, pods := range o.pods {
			add(trial{pods: pods, by: stock})
			add(trial{pods: pods, by: tegen})
		}
	}
	if o.wants(gangsPart) && smallest {
		add(trial{pods: o.pods[0], by: stock})
		by := []string{tegen, tegenNative, inTree}
		for _, r := range o.rivals {
			by = append(by, r.name)
		}
		for _, size := range o.gangs() {
			for _, by := range by {
				add(trial{pods: o.pods[0] / size * size, gang: size, by: by})
			}
		}
	}
	if o.wants(topologyPart) && largest {
		for _, size := range o.gangs() {
			t := trial{pods: o.pods[0] / size * size, gang: size, by: tegen}
			add(t)
			if o.earlier != "" {
				add(trial{pods: t.pods, gang: size, by: earlier})
			}
			for _, t.gathers = range []string{mustGather, preferGather} {
				add(t)
			}
		}
	}
	if o.wants(scalePart) && (smallest || largest) {
		for _, size := range o.gangs() {
			add(trial{pods: o.pods[0] / size * size, gang: size, by: tegen})
		}
	}
	if o.wants(refusalPart) && smallest {
		for _, by := range []string{tegen, tegenNative} {
			add(trial{pods: o.pods[0], gang: o.pods[0], by: by, refuse: true})
		}
	}
	return out
}

// gangs are the sizes of gangs: those asked for, or tens of pods, hundreds, and all in one.
func (o options) gangs() []int {
	if len(o.sizes) > 0 {
		return o.sizes
	}
	var out []int
	for _, size := range []int{10, 100} {
		if size < o.pods[0] {
			out = append(out, size)
		}
	}
	return append(out, o.pods[0])
}

// gpusToRefuse is how many GPUs each pod of the smallest number must ask for, so that they do not fit as one gang
// although most of them do; 0 where they fit with any number.
func (o options) gpusToRefuse() int {
	for gpus := 1; gpus <= gpusPerNode; gpus++ {
		if o.nodes[0]*(gpusPerNode/gpus) < o.pods[0] {
			return gpus
		}
	}
	return 0
}

// rounds measures everything, one number of nodes after the other. Of each, all trials run in turn (A B C), then again
// backwards (C B A), and so on, so that whatever else the machine does, and whatever grows, falls on all alike. A trial
// that is not counted goes before.
func (b *bench) rounds(ctx context.Context, o options) (results, error) {
	out := results{}
	begin := time.Now()
	for i, nodes := range o.nodes {
		trials := o.trials(nodes)
		if len(trials) == 0 {
			continue
		}
		if err := b.grow(ctx, nodes); err != nil {
			return nil, err
		}
		// The first trial is not counted: the API server sizes the buffers of watches by what it has seen, and closes
		// those that are still too small for a thousand pods.
		if _, err := b.try(ctx, trials[0], o); err != nil {
			return nil, fmt.Errorf("warming up, %s: %w", trials[0], err)
		}
		share := o.budget * time.Duration(i+1) / time.Duration(len(o.nodes))
		var longest time.Duration
		for round := 1; round <= o.rounds; round++ {
			if round > 1 && time.Since(begin)+longest > share {
				b.progress.Printf("%d nodes: no time for round %d of %d", nodes, round, o.rounds)
				break
			}
			start := time.Now()
			for _, t := range trials {
				f, err := b.try(ctx, t, o)
				if err != nil {
					return nil, fmt.Errorf("round %d, %s: %w", round, t, err)
				}
				out[t] = append(out[t], f)
				b.progress.Printf("round %d, %s: %s", round, t, f)
			}
			slices.Reverse(trials)
			longest = max(longest, time.Since(start))
		}
	}
	return out, nil
}
