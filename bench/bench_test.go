package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// BenchmarkRender is tegen's work on 4,000 jobs without the process around it, to profile:
//
//	go test ./bench -run '^$' -bench Render -cpuprofile cpu.out -memprofile mem.out
func BenchmarkRender(b *testing.B) {
	source := []schema.Source{{Name: "jobs.yaml", Data: []byte(trainingJobs(4000))}}
	b.ReportAllocs()
	for b.Loop() {
		jobs, err := schema.Load(source)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := render.Jobs(jobs, render.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestReadObjectsIgnoresOrderAndComments(t *testing.T) {
	read := func(text string) objects {
		path := filepath.Join(t.TempDir(), "manifest.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readObjects(path)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	one := read("kind: A\nmetadata: {name: x, namespace: ns}\nspec: {a: 1, " +
		"b: \"1\"}\n---\nkind: B\nmetadata:\n  name: x\n")
	other := read("# Source: y\n---\nmetadata:\n  name: x\nkind: B\n---\n# nothing\n---\nkind: A\nspec:\n  b: '1'\n " +
		" a: 1\nmetadata: {namespace: ns, name: x}\n")
	if err := differ(one, other); err != nil {
		t.Error(err)
	}
	changed := read("kind: A\nmetadata: {name: x, namespace: ns}\nspec: {a: 1, " +
		"b: 1}\n---\nkind: B\nmetadata:\n  name: x\n")
	if err := differ(one, changed); err == nil ||
		!strings.Contains(err.Error(), "1 objects differ, the first is A ns/x") {
		t.Errorf("a string and a number: %v", err)
	}
	for _, pair := range [][2]objects{{one, {}}, {{}, one}} {
		if differ(pair[0], pair[1]) == nil {
			t.Error("missing objects are not seen")
		}
	}
}

func TestMedian(t *testing.T) {
	wall := func(m sample) time.Duration { return m.Wall }
	for _, test := range []struct {
		in   []sample
		want time.Duration
	}{
		{nil, 0},
		{[]sample{{Wall: 3}}, 3},
		{[]sample{{Wall: 9}, {Wall: 1}, {Wall: 2}}, 2},
		{[]sample{{Wall: 8}, {Wall: 1}, {Wall: 2}, {Wall: 4}}, 3},
	} {
		if got := median(test.in, wall); got != test.want {
			t.Errorf("%v: got %d, want %d", test.in, got, test.want)
		}
	}
}

func TestReport(t *testing.T) {
	run := func(wall time.Duration) []sample { return []sample{{User: wall, Wall: wall, Peak: 300e6}} }
	r := report{tools: tools()[:2], loadBefore: "0.50", loadAfter: "1.00", sizes: []size{
		{jobs: 1, series: []series{
			{tool: "tegen", samples: run(10 * time.Millisecond)},
			{tool: "helm", samples: run(40 * time.Millisecond)},
		}},
		{jobs: 4000, series: []series{{tool: "tegen", samples: run(time.Second)}, {tool: "helm", skipped: "left out"}}},
	}}
	var got strings.Builder
	if err := r.print(&got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"load 0.50 before and 1.00 after",
		"| 1    | helm    | 1    | 40 ms    | 40 ms  | 300 MB      | 0.250          | 0.250 | 1.000  |",
		"| 1 job in at most half of helm's time            | 0.25 of helm's | met    | 0.25 of helm's |",
		"| 4000 jobs in at most a fifth of helm's time     | not measured   |        |                |",
		"| 4000 jobs in at most 200 MB                     | 300 MB         | missed |                |",
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, got.String())
		}
	}
}

func TestInputsAreWhatTheProgramsTake(t *testing.T) {
	jobs, err := schema.Load([]schema.Source{{Name: "jobs.yaml", Data: []byte(trainingJobs(equalSize))}})
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]bool{}
	for _, j := range jobs {
		images[j.Spec.Image] = true
	}
	if len(images) != equalSize {
		t.Errorf("%d jobs have %d images: every job has one of its own", equalSize, len(images))
	}
}

func TestFlags(t *testing.T) {
	opts, err := parseFlags([]string{"-sizes", "100, 1,100", "-tools", "cue"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range opts.tools {
		names = append(names, tool.name)
	}
	if diff := cmp.Diff([]int{1, 100}, opts.sizes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"tegen", "cue"}, names); diff != "" {
		t.Error(diff)
	}
	for _, args := range [][]string{
		{"-sizes", "0"},
		{"-sizes", "x"},
		{"-sizes", "10001"},
		{"-runs", "0"},
		{"-tools", "jsonnet"},
	} {
		if _, err := parseFlags(args); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
