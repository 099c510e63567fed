package main

import "fmt"

// target is what tegen is to reach. A missed one is printed like a met one: the bench measures, it does not judge.
type target struct {
	words  string
	figure func(report) (figure float64, ok bool) // ok where both sides were measured
	format string
	met    func(figure float64) bool
}

var targets = []target{
	{"1 job in at most half of helm's time", times("tegen", 1, "helm", 1), "%.2f of helm's", atMost(0.5)},
	{"4000 jobs in at most half of helm's time", times("tegen", 4000, "helm", 4000), "%.2f of helm's", atMost(0.5)},
	{"400 jobs at least 50 times as fast as kustomize", times("kustomize", 400, "tegen", 400), "%.0f times", atLeast(50)},
	{"400 jobs in at most 4.4 times the time of 100", times("tegen", 400, "tegen", 100), "%.1f times", atMost(4.4)},
	{"4000 jobs in at most 4.4 times the time of 1000", times("tegen", 4000, "tegen", 1000), "%.1f times", atMost(4.4)},
	{"4000 jobs in at most 200 MB", peakOf("tegen", 4000), "%.0f MB", atMost(200)},
}

func (t target) row(r report) []string {
	figure, ok := t.figure(r)
	if !ok {
		return []string{t.words, "not measured", ""}
	}
	verdict := "missed"
	if t.met(figure) {
		verdict = "met"
	}
	return []string{t.words, fmt.Sprintf(t.format, figure), verdict}
}

// times is one median wall time in terms of another: what people wait for.
func times(tool string, jobs int, other string, otherJobs int) func(report) (float64, bool) {
	return func(r report) (float64, bool) {
		a, b := r.of(tool, jobs), r.of(other, otherJobs)
		if a == nil || b == nil || b.wall() == 0 {
			return 0, false
		}
		return a.wall().Seconds() / b.wall().Seconds(), true
	}
}

func peakOf(tool string, jobs int) func(report) (float64, bool) {
	return func(r report) (float64, bool) {
		s := r.of(tool, jobs)
		if s == nil {
			return 0, false
		}
		return float64(s.peak()) / 1e6, true
	}
}

func atMost(limit float64) func(float64) bool  { return func(f float64) bool { return f <= limit } }
func atLeast(limit float64) func(float64) bool { return func(f float64) bool { return f >= limit } }
