package main

import (
	"strings"
	"testing"
)

// TestNotes: what is no mistake is told on standard error, with a position, and changes neither manifests nor success.
func TestNotes(t *testing.T) {
	const job = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: mnist, namespace: ml}
spec: {framework: dlrover, target: elasticjob, image: "x:1", command: [python, train.py], workers: {replicas: 2}, suspend: true}
`
	for _, command := range []string{"render", "vet"} {
		out, msg, code := tegen(job, command, "-")
		if code != exitOK || strings.Contains(out, "note:") {
			t.Errorf("%s: exit %d, standard output:\n%s", command, code, out)
		}
		if want := "<stdin>:1:1: note: spec.suspend: DLRover starts the job's master all the same"; !strings.HasPrefix(msg, want) {
			t.Errorf("%s: %q on standard error, want %q", command, msg, want)
		}
	}
}

// TestNoteOfDeadline: what a lost pod leaves behind is told where nothing ends it.
func TestNoteOfDeadline(t *testing.T) {
	const job = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: mnist, namespace: ml}
spec: {framework: mxnet, image: "x:1", command: [python, train.py], workers: {replicas: 2}, failure: {%}}
`
	for failure, noted := range map[string]bool{"": true, "deadline: 1h": false} {
		_, msg, code := tegen(strings.Replace(job, "%", failure, 1), "vet", "-")
		if code != exitOK || strings.Contains(msg, "note: spec.failure.deadline: none is set") != noted {
			t.Errorf("failure {%s}: exit %d, %q on standard error", failure, code, msg)
		}
	}
}
