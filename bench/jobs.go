package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxJobs keeps names at one length and the input below tegen's limit for one file.
const maxJobs = 10000

// job is what authors would write of one; all else is the same in every job.
type job struct {
	name, image   string
	args          []string
	replicas, min int
}

// newJob gives every job a name, an image tag and arguments that no other has: the worst case for a program that
// remembers what it has seen.
func newJob(i int) job {
	replicas := 2 + i%15
	return job{
		name:     fmt.Sprintf("train-%04d", i),
		image:    fmt.Sprintf("registry.example/train/model:2.%d.%d", i/100, i%100),
		args:     []string{"train.py", "--epochs=" + strconv.Itoa(1+i%90), "--seed=" + strconv.Itoa(i)},
		replicas: replicas,
		min:      1 + replicas/2,
	}
}

// input is the same jobs in the form that each program takes them in.
type input struct {
	jobs          int
	trainingJobs  string // tegen: TrainingJobs, a document each
	values        string // helm and cue: a list of what varies
	kustomization string // kustomize: a directory with all objects in one file
}

// prepare writes the inputs of n jobs. The plain manifests come from tegen.
func (b *bench) prepare(ctx context.Context, n int) (input, error) {
	dir := filepath.Join(b.dir, strconv.Itoa(n))
	in := input{
		jobs:          n,
		trainingJobs:  filepath.Join(dir, "trainingjobs.yaml"),
		values:        filepath.Join(dir, "values.yaml"),
		kustomization: filepath.Join(dir, "kustomize"),
	}
	if err := os.MkdirAll(in.kustomization, 0o755); err != nil {
		return in, fmt.Errorf("making a directory for inputs: %w", err)
	}
	for path, text := range map[string]string{
		in.trainingJobs: trainingJobs(n),
		in.values:       values(n),
		filepath.Join(in.kustomization, "kustomization.yaml"): "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: " +
			"Kustomization\nresources: [manifests.yaml]\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return in, fmt.Errorf("writing an input: %w", err)
		}
	}
	_, err := b.execute(ctx, b.tools[0], in, filepath.Join(in.kustomization, "manifests.yaml"))
	return in, err
}

func trainingJobs(n int) string {
	var s strings.Builder
	for i := range n {
		j := newJob(i)
		fmt.Fprintf(&s, `---
apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata:
  name: %s
spec:
  image: %s
  args: [%s]
  workers:
    replicas: %d
    min: %d
`, j.name, j.image, strings.Join(j.args, ", "), j.replicas, j.min)
	}
	return s.String()
}

func values(n int) string {
	var s strings.Builder
	s.WriteString("jobs:\n")
	for i := range n {
		j := newJob(i)
		fmt.Fprintf(&s, `- name: %s
  image: %s
  args: [%s]
  workers:
    replicas: %d
    min: %d
`, j.name, j.image, strings.Join(j.args, ", "), j.replicas, j.min)
	}
	return s.String()
}
