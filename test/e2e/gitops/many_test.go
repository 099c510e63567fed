package gitops

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/test/gitops"
)

// manyJobs is how many jobs one Application or Kustomization has in the case that measures it: 200, as docs/gitops.md
// says, or TEGEN_GITOPS_JOBS, for a run that does not measure.
func manyJobs(p *place) int {
	text := cmp.Or(os.Getenv("TEGEN_GITOPS_JOBS"), "200")
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 || n > 200 {
		p.Fatalf("TEGEN_GITOPS_JOBS: must be a number from 2 to 200, not %q", text)
	}
	return n
}

// many measures what docs/gitops.md says of many jobs in one place: that it works, and what it costs.
func many(p *place) {
	jobs := manyJobs(p)
	for i := range jobs {
		p.job(fmt.Sprintf("job-%03d", i), "suspend: true", volume)
	}
	p.commit(fmt.Sprintf("Queue %d jobs", jobs))
	p.measure("first sync", func() { p.followed() })
	p.commit("Say something elsewhere")
	if written := p.measure("nothing changed", func() { p.synced() }); written > 0 {
		p.Errorf("nothing changed, and %d requests wrote", written)
	}
	p.job("job-000", volume)
	p.commit("Train one of them")
	p.measure("one of them resumed", func() { p.synced() })
	p.running(2)
}

// measure logs what a step took, and returns how many requests of it may have changed an object of the case.
func (p *place) measure(step string, do func()) (written int) {
	p.Helper()
	before, begin := p.requests(), time.Now()
	do()
	took := time.Since(begin)
	sent := p.requests()[len(before):]
	verbs := map[string]int{}
	for _, r := range sent {
		verb := r.Verb
		if r.DryRun {
			verb += " (dry run)"
		}
		verbs[verb]++
	}
	var counts []string
	for _, verb := range slices.Sorted(maps.Keys(verbs)) {
		counts = append(counts, fmt.Sprintf("%s %d", verb, verbs[verb]))
	}
	memory, err := p.Memory()
	if err != nil {
		p.Fatal(err)
	}
	p.Logf("%s: %.0f s; %d requests: %s; memory in MiB: %v", step, took.Seconds(), len(sent),
		strings.Join(counts, ", "), memory)
	return len(sent.In(p.namespace).Changing())
}

func (p *place) requests() gitops.Requests {
	p.Helper()
	requests, err := p.Requests()
	if err != nil {
		p.Fatal(err)
	}
	return requests
}
