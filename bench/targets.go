package main

import (
	"fmt"
	"time"
)

// target is what tegen is to reach. A missed one is printed like a met one: the bench measures, it passes no verdict.
type target struct {
	words  string
	a, b   point // a's figure in terms of b's; alone if b is zero
	format string
	limit  float64
	least  bool // the limit is the least that is met, not the most
}

// point is one program at one size.
type point struct {
	tool string
	jobs int
}

var targets = []target{
	{"1 job in at most half of helm's time", point{"tegen", 1}, point{"helm", 1}, "%.2f of helm's", 0.5, false},
	{
		"4000 jobs in at most a fifth of helm's time",
		point{"tegen", 4000},
		point{"helm", 4000},
		"%.2f of helm's", 0.2,
		false,
	},
	{
		"400 jobs at least 50 times as fast as kustomize",
		point{"kustomize", 400},
		point{"tegen", 400},
		"%.0f times", 50,
		true,
	},
	{
		"400 jobs in at most 4.4 times the time of 100",
		point{"tegen", 400},
		point{"tegen", 100},
		"%.1f times", 4.4,
		false,
	},
	{
		"4000 jobs in at most 4.4 times the time of 1000",
		point{"tegen", 4000},
		point{"tegen", 1000},
		"%.1f times", 4.4,
		false,
	},
	{"4000 jobs in at most 200 MB", point{"tegen", 4000}, point{}, "%.0f MB", 200, false},
}

// row compares wall time, which is what people wait for. Beside it stands the same of user CPU, which other load on the
// machine bends far less.
func (t target) row(r report) []string {
	a, b := r.of(t.a.tool, t.a.jobs), r.of(t.b.tool, t.b.jobs)
	var figure float64
	cpu := ""
	switch {
	case a == nil, b == nil && t.b != point{}:
		return []string{t.words, "not measured", "", ""}
	case b == nil:
		figure = float64(a.peak()) / 1e6
	default:
		figure = per(a.wall(), b.wall())
		cpu = fmt.Sprintf(t.format, per(a.user(), b.user()))
	}
	verdict := "missed"
	if t.least && figure >= t.limit || !t.least && figure <= t.limit {
		verdict = "met"
	}
	return []string{t.words, fmt.Sprintf(t.format, figure), verdict, cpu}
}

func per(a, b time.Duration) float64 { return a.Seconds() / b.Seconds() }
