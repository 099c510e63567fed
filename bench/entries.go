package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/bench/internal/markdown"
)

// The cluster of the inventory that plan reads.
const (
	inventoryNodes = 5000
	inventoryPods  = 50_000
)

// largestBuild is the most jobs that kustomize is given here, which takes them by more than their square; largestPlan
// that of plan, which places each of them on the large cluster.
const (
	largestBuild = 100
	largestPlan  = 1000
)

// throughOverlay is the entry whose growth has a row of its own.
const throughOverlay = "render --overlay"

// entry is one way into tegen, or a program that one is held against.
type entry struct {
	jobs    int
	name    string
	partOf  string // the entry of as many jobs that its ratios are to
	limit   string // of these, for people
	program []string
	samples []sample
}

// measureEntries runs the ways into tegen beside what they are held against, in turn, and prints one table.
func (b *bench) measureEntries(ctx context.Context, out io.Writer) error {
	var entries []*entry
	for _, n := range b.sizes {
		in, err := b.prepare(ctx, n)
		if err != nil {
			return err
		}
		list, err := b.entries(in)
		if err != nil {
			return err
		}
		entries = append(entries, list...)
	}
	before := markdown.Load()
	env := []string{"HOME=" + b.dir, "PATH=" + filepath.Join(b.dir, "bin") + ":" + os.Getenv("PATH")}
	for round := range b.runs {
		for _, e := range entries {
			s, err := launch(ctx, env, filepath.Join(b.dir, "output"), e.program)
			if err != nil {
				return fmt.Errorf("running %s on %d jobs: %w", e.name, e.jobs, err)
			}
			e.samples = append(e.samples, s)
		}
		b.progress.Printf("measured round %d of %d", round+1, b.runs)
	}
	rows := [][]string{{"jobs", "entry", "user CPU", "wall", "peak memory", "held to", "CPU", "memory", "at most"}}
	for _, e := range entries {
		own := series{samples: e.samples}
		row := []string{
			strconv.Itoa(e.jobs), e.name, markdown.Seconds(own.user()), markdown.Seconds(own.wall()),
			megabytes(own.peak()), e.partOf, "", "", e.limit,
		}
		i := slices.IndexFunc(entries, func(o *entry) bool { return o.jobs == e.jobs && o.name == e.partOf })
		if i >= 0 {
			other := series{samples: entries[i].samples}
			row[6], row[7] = quotient(own.user(), other.user()), quotient(own.peak(), other.peak())
		}
		rows = append(rows, row)
		if e.name == throughOverlay {
			rows = append(rows, growth(entries, e)...)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\nMedians of %d runs; MB is a million bytes.\n\n", markdown.Machine(before, markdown.Load()),
		b.runs)
	markdown.Table(&text, rows)
	_, err := io.WriteString(out, text.String())
	return err
}

// growth is a row with an entry in terms of the same with a quarter of its jobs, none where that was not measured.
func growth(entries []*entry, e *entry) [][]string {
	i := slices.IndexFunc(entries, func(o *entry) bool { return o.name == e.name && 4*o.jobs == e.jobs })
	if i < 0 {
		return nil
	}
	own, other := series{samples: e.samples}, series{samples: entries[i].samples}
	return [][]string{{
		strconv.Itoa(e.jobs), e.name, "", "", "", fmt.Sprintf("the same of %d jobs", entries[i].jobs),
		quotient(own.user(), other.user()), quotient(own.peak(), other.peak()), "4.4 by CPU",
	}}
}

// entries are those of as many jobs as an input has.
func (b *bench) entries(in input) ([]*entry, error) {
	const plain, rendered, finished = "render", "render, for git", "kustomize, finished objects"
	tegen := b.tools[0].binary
	resourceList, function, dropping, err := writeFunction(filepath.Dir(in.trainingJobs), in)
	if err != nil {
		return nil, err
	}
	forGit := filepath.Join(filepath.Dir(in.trainingJobs), "git.yaml") // as fn renders, with hashes in names
	text := strings.ReplaceAll(trainingJobs(in.jobs), "spec:\n", "spec:\n  gitops: true\n")
	if err := os.WriteFile(forGit, []byte(text), 0o644); err != nil {
		return nil, fmt.Errorf("writing an input: %w", err)
	}
	overlay, patched, err := writeOverlays(filepath.Dir(in.trainingJobs))
	if err != nil {
		return nil, err
	}
	list := []*entry{
		{jobs: in.jobs, name: plain, program: []string{tegen, "render", in.trainingJobs}},
		{jobs: in.jobs, name: rendered, program: []string{tegen, "render", forGit}},
		{
			jobs: in.jobs, name: throughOverlay, partOf: plain, limit: "2 by CPU; 250 MB",
			program: []string{tegen, "render", in.trainingJobs, "--overlay", overlay},
		},
		{
			jobs: in.jobs, name: "render --overlay, a patch by label", partOf: plain,
			program: []string{tegen, "render", in.trainingJobs, "--overlay", patched},
		},
		{
			jobs: in.jobs, name: "fn", partOf: rendered, limit: "1.5",
			program: []string{"/bin/sh", "-c", `exec "$0" fn <"$1"`, tegen, resourceList},
		},
	}
	i := slices.IndexFunc(b.tools, func(t tool) bool { return t.name == "kustomize" })
	if i >= 0 && in.jobs <= largestBuild {
		kustomize := b.tools[i].binary
		list = append(list,
			&entry{jobs: in.jobs, name: finished, program: []string{kustomize, "build", in.kustomization}},
			&entry{
				jobs: in.jobs, name: "kustomize, tegen as exec function", partOf: finished, limit: "1.1 by CPU",
				program: []string{kustomize, "build", "--enable-alpha-plugins", "--enable-exec", function},
			},
			&entry{
				jobs: in.jobs, name: "the same, with jobs: drop", partOf: finished, limit: "1.1 by CPU",
				program: []string{kustomize, "build", "--enable-alpha-plugins", "--enable-exec", dropping},
			})
	}
	if in.jobs > largestPlan {
		return list, nil
	}
	inventory, err := b.inventory()
	if err != nil {
		return nil, err
	}
	return append(list, &entry{
		jobs: in.jobs, name: "plan --inventory", limit: "30 s, 12 s of one job; 400 MB of one job",
		program: []string{
			"/bin/sh", "-c", `"$0" plan "$1" --inventory "$2" -o json || test $? = 1`, // where jobs have no place
			tegen, in.trainingJobs, inventory,
		},
	}), nil
}

// inventory is the file of the large cluster, which is written once.
func (b *bench) inventory() (name string, err error) {
	name = filepath.Join(b.dir, "inventory.json")
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return name, fmt.Errorf("making an inventory: %w", err)
	}
	if err := writeInventory(file, inventoryNodes, inventoryPods, false); err != nil {
		return name, fmt.Errorf("writing an inventory: %w", err)
	}
	return name, file.Close()
}

// writeOverlays writes two kustomizations for jobs from outside, with one of their own, which gives way to these: one
// with a namespace and a prefix, and one that also has a patch of all jobs without a label.
func writeOverlays(dir string) (plain, patched string, err error) {
	plain, patched = filepath.Join(dir, "overlay"), filepath.Join(dir, "patched")
	const text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [jobs.yaml]\n" +
		"namespace: production\nnamePrefix: eu-\ntransformers: [tegen.yaml]\n"
	const patch = "patches:\n- target: {kind: TrainingJob, labelSelector: '!tier'}\n  patch: |\n" +
		"    - {op: add, path: /spec/placement, value: {nodeSelector: {pool: train}}}\n"
	return plain, patched, errors.Join(writeKustomization(plain, text, trainingJobs(1), generator),
		writeKustomization(patched, text+patch, trainingJobs(1), generator))
}

// generator has kustomize run tegen.
const generator = "apiVersion: tegen.dev/v1alpha1\nkind: Generator\nmetadata:\n  name: tegen\n  annotations:\n" +
	"    config.kubernetes.io/function: |\n      exec: {path: tegen, args: [fn]}\n"

// writeFunction writes the jobs as a ResourceList, and as resources of a kustomization that has tegen make the rest: of
// one as it is by default, and of one that has jobs dropped.
func writeFunction(dir string, in input) (resourceList, kustomization, dropping string, err error) {
	jobs := trainingJobs(in.jobs)
	list := bufio.NewReader(strings.NewReader(jobs))
	var items strings.Builder
	items.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n")
	lead := "  "
	for {
		line, err := list.ReadString('\n')
		if err != nil {
			break // the text ends in a newline
		}
		if line == "---\n" {
			lead = "- "
			continue
		}
		items.WriteString(lead + line)
		lead = "  "
	}
	resourceList = filepath.Join(dir, "list.yaml")
	kustomization, dropping = filepath.Join(dir, "function"), filepath.Join(dir, "dropping")
	if err := os.WriteFile(resourceList, []byte(items.String()), 0o644); err != nil {
		return "", "", "", fmt.Errorf("writing an input: %w", err)
	}
	const text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [jobs.yaml]\n" +
		"transformers: [tegen.yaml]\n"
	return resourceList, kustomization, dropping, errors.Join(
		writeKustomization(kustomization, text, jobs, generator),
		writeKustomization(dropping, text, jobs, generator+"spec: {jobs: drop}\n"))
}

// writeKustomization writes a directory with jobs, and a configuration of tegen.
func writeKustomization(dir, text, jobs, function string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making a directory for inputs: %w", err)
	}
	for name, text := range map[string]string{
		"kustomization.yaml": text, "jobs.yaml": jobs, "tegen.yaml": function,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing an input: %w", err)
		}
	}
	return nil
}
