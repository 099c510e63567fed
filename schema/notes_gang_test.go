package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/note"
)

// TestPodsReadyNotes: Kueue evicts a job that lacks a pod, which only matters to one that could do without, or that
// waits for a dataset.
func TestPodsReadyNotes(t *testing.T) {
	const kueue = "gang: {scheduler: kueue, queue: q, minAvailable: 4}, "
	const elastic, fixed = "workers: {min: 2, replicas: 4, max: 4}", "workers: {replicas: 4}"
	const data = ", storage: [{mountPath: /d, dataset: {url: 'https://a.example/x.tgz'"
	const waits = "spec.storage[0].dataset.deadline: the workers wait up to 2h"
	for spec, want := range map[string]string{
		kueue + elastic: "spec.workers.min: Kueue 0.19 and newer evicts all pods of the job if one of 4",
		kueue + "workers: {min: 4, replicas: 4, max: 8}": "",
		kueue + fixed:                                           "",
		kueue + fixed + data + "}}]":                            waits,
		kueue + fixed + data + ", deadline: 30m}}]":             "",
		elastic + data + "}}]":                                  "",
		"gang: {scheduler: volcano}, " + elastic + data + "}}]": "",
	} {
		notes := note.Of(loadOne(t, jobHead+spec+"}\n"))
		var got []string
		for _, note := range notes {
			if strings.Contains(note, "30 minutes") {
				got = append(got, note)
			}
		}
		if (want == "") != (len(got) == 0) || len(got) > 1 || !strings.Contains(strings.Join(got, ""), want) {
			t.Errorf("%s: notes %q, want one of %q", spec, got, want)
		}
	}
}

// TestKeygenQueueNotes: who waits for keys, and what makes them, wait for Kueue in ways of which an author must know.
func TestKeygenQueueNotes(t *testing.T) {
	const kueue, image = "gang: {scheduler: kueue, queue: q}, ", "images: {rendezvous: 'a/tegen-rendezvous:1'}, "
	const companion = image + "rendezvous: {companion: {storage: {size: 1Gi}}}, "
	for spec, want := range map[string]string{
		kueue + companion:              "spec.gang.queue: the Job <job>-keygen and the rendezvous have no queue",
		kueue + image:                  "",
		kueue + "framework: horovod, ": "spec.gang.queue: the Job <job>-keygen waits in the workers' queue",
		kueue + "framework: horovod, ssh: {secret: s}, ": "",
		kueue:     "",
		companion: "",
	} {
		var got []string
		for _, note := range note.Of(loadOne(t, jobHead+spec+"workers: {replicas: 2}}\n")) {
			if strings.HasPrefix(note, "spec.gang.queue: ") {
				got = append(got, note)
			}
		}
		if (want == "") != (len(got) == 0) || len(got) > 1 || !strings.Contains(strings.Join(got, ""), want) {
			t.Errorf("%s: notes %q, want one of %q", spec, got, want)
		}
	}
}
