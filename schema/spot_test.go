package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/note"
)

// TestSpotNotes: whose pods get no SIGTERM, and what is lost with them.
func TestSpotNotes(t *testing.T) {
	const checkpoint = "checkpoint: {path: /c}, storage: [{mountPath: /c, claim: c}]"
	const elastic, whole = "workers: {replicas: 2, min: 1}, ", "workers: {replicas: 2}, "
	spot := func(provisioner, more string) string {
		return "placement: {provisioner: " + provisioner + ", spot: true}, " + more
	}
	const evicted = "disruption: {safeToEvict: true}, "
	for says, want := range map[string]string{
		elastic + spot("karpenter", evicted):                            "spec.placement.spot",
		elastic + spot("karpenter", checkpoint):                         "spec.disruption.safeToEvict",
		elastic + "placement: {provisioner: karpenter}, " + checkpoint:  "",
		elastic + spot("eks", checkpoint):                               "",
		whole + spot("eks", checkpoint):                                 "spec.disruption.budget",
		whole + spot("karpenter", evicted+checkpoint):                   "spec.disruption.budget",
		whole + spot("eks", "disruption: {budget: false}, "+checkpoint): "",
		whole + spot("gke", "gracePeriod: 15s, "+checkpoint):            "",
		whole + spot("gke", "gracePeriod: 16s, "+checkpoint):            "spec.gracePeriod",
	} {
		j := loadOne(t, jobHead+says+"}\n")
		got := ""
		for _, note := range note.SpotNotes(&j.Spec) {
			at, _, _ := strings.Cut(note, ": ")
			got += at
		}
		if got != want {
			t.Errorf("%s: notes at %q, want %q", says, got, want)
		}
	}
}
