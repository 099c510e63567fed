package runbook

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// bookOf is a job's, applied with kubectl.
func bookOf(j *job.Job) *book {
	concerns := generators.Generate(j)
	b := &book{Options: Options{With: Kubectl}, Job: plan.Of(j, concerns), job: j}
	for _, c := range concerns {
		b.objects = append(b.objects, c.Objects...)
	}
	return b
}

// fixtureJobs are the jobs of all valid fixtures.
func fixtureJobs(t *testing.T) (all []*job.Job) {
	t.Helper()
	files, err := filepath.Glob("../../fixtures/valid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := schema.Load([]schema.Source{{Name: name, Data: text}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, jobs...)
	}
	return all
}

// TestPatches: what kubectl is told to patch makes of a rendered object what a changed job renders, for every fixture,
// and both forms of patches are among them.
func TestPatches(t *testing.T) {
	seen := map[string]int{}
	for _, j := range fixtureJobs(t) {
		b := bookOf(j)
		for what, change := range map[string]func(*job.Spec){
			"suspend": func(s *job.Spec) { s.Suspend = !s.Suspend },
			"scale":   func(s *job.Spec) { s.Workers.Replicas = b.Other() },
		} {
			row := target.Of(j.Spec.Framework, j.Spec.Target)
			if what == "scale" && b.Other() == 0 || what == "suspend" && (!row.Carries("suspend") || b.Queue != "") {
				continue
			}
			e, ok := b.edited(change)
			if !ok {
				t.Fatalf("%s: %s: its own objects are not found", j.Position(), what)
			}
			changed := *j
			change(&changed.Spec)
			after := byName(&changed)
			for _, p := range e.Patches {
				args := p.Args()
				seen[what+" "+args[1]]++
				got := patched(t, byName(j)[p.Object], args[1], args[3])
				if diff := cmp.Diff(withoutFalse(t, after[p.Object]), got); diff != "" {
					t.Errorf("%s: %s: %s (-rendered +patched):\n%s", j.Position(), p.Object, args[3], diff)
				}
			}
		}
	}
	for _, want := range []string{"suspend merge", "scale merge", "scale json"} {
		if seen[want] == 0 {
			t.Errorf("no fixture has a patch to %s: %v", want, seen)
		}
	}
}

// patched is an object with a patch as an API server applies it.
func patched(t *testing.T, object map[string]any, form, text string) map[string]any {
	t.Helper()
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var after []byte
	if form == "merge" {
		after, err = jsonpatch.MergePatch(before, []byte(text))
	} else {
		var steps jsonpatch.Patch
		if steps, err = jsonpatch.DecodePatch([]byte(text)); err == nil {
			after, err = steps.Apply(before)
		}
	}
	if err != nil {
		t.Fatalf("applying %s: %v", text, err)
	}
	var out map[string]any
	if err := json.Unmarshal(after, &out); err != nil {
		t.Fatal(err)
	}
	return withoutFalse(t, out)
}

// withoutFalse is an object as an API server would see it, to which a switch that is off is as good as none.
func withoutFalse(t *testing.T, object map[string]any) (out map[string]any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range [][]string{{"spec"}, {"spec", "runPolicy"}} {
		in, ok := out, true
		for _, key := range path {
			if in, ok = in[key].(map[string]any); !ok {
				break
			}
		}
		if ok && in["suspend"] == false {
			delete(in, "suspend")
		}
	}
	return out
}

// TestReplaced: a number of workers that no API server changes is no patch.
func TestReplaced(t *testing.T) {
	for name, want := range map[string]bool{
		"torchelastic-jobset-full": true, "torchelastic-vcjob-full": false, "minimal": false, "imagenet": false,
		"companion-pytorchjob": false,
	} {
		text, err := os.ReadFile("../../fixtures/valid/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := schema.Load([]schema.Source{{Name: name, Data: text}})
		if err != nil {
			t.Fatal(err)
		}
		b := bookOf(jobs[0])
		if n := b.Other(); n < b.Least() || n > jobs[0].Spec.Workers.Max || n == jobs[0].Spec.Workers.Replicas {
			t.Errorf("%s: %d is no other number of workers", name, n)
		}
		e, ok := b.edited(func(s *job.Spec) { s.Workers.Replicas = b.Other() })
		if !ok || e.Replaces != want {
			t.Errorf("%s: replaced: %t, want %t", name, e.Replaces, want)
		}
		if want && !slices.ContainsFunc(e.Gone, func(n string) bool { return n != "" }) {
			t.Errorf("%s: nothing is deleted first", name)
		}
	}
}

// TestOtherObjects: where an overlay made other objects than the job's own, no patch names one that is not there, and
// each section says what it takes.
func TestOtherObjects(t *testing.T) {
	for _, j := range fixtureJobs(t) {
		if j.Metadata.Name != "resnet" || !j.Spec.Elastic() {
			continue
		}
		b := bookOf(j)
		b.objects = nil
		held := *b
		suspended := *j
		suspended.Spec.Suspend = true
		held.job = &suspended
		text := string(b.markdown()) + string(held.markdown())
		for heading, field := range map[string]string{
			"Scale": "`workers.replicas: 2`", "Suspend and resume": "`suspend: true`", "Resume": "`suspend: false`",
		} {
			_, section, _ := strings.Cut(text, ". "+heading+"\n\n")
			section, _, _ = strings.Cut(section, "\n## ")
			if !strings.Contains(section, "\n"+field+" does") && !strings.Contains(section, " "+field+" does") ||
				strings.Contains(section, "```sh") {
				t.Errorf("%s: %s: %s", j.Position(), heading, section)
			}
		}
		return
	}
	t.Error("no job is looked at")
}

// TestDiffer: places are found below maps and lists, and what comes or goes is one place.
func TestDiffer(t *testing.T) {
	read := func(text string) (value any) {
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	for _, c := range []struct{ before, after, want string }{
		{`{"a": 1}`, `{"a": 1}`, `[]`},
		{`{"a": 1, "b": 2}`, `{"a": 1, "c": 3}`, `[{[b] 2 <nil>} {[c] <nil> 3}]`},
		{`{"a": [{"b": 1}, {"b": 2}]}`, `{"a": [{"b": 1}, {"b": 3}]}`, `[{[a 1 b] 2 3}]`},
		{`{"a": [1]}`, `{"a": [1, 2]}`, `[{[a] [1] [1 2]}]`},
		{`{"a": {"b": 1}}`, `{"a": 1}`, `[{[a] map[b:1] 1}]`},
	} {
		if got := fmt.Sprint(differ(nil, read(c.before), read(c.after))); got != c.want {
			t.Errorf("%s and %s: got %s, want %s", c.before, c.after, got, c.want)
		}
	}
	p := patch{"x/y", []field{{[]any{"a", "b/c~d"}, nil, true}, {[]any{"l", 0}, "x", nil}, {[]any{"s"}, true, nil}}}
	want := `[{"op":"add","path":"/a/b~1c~0d","value":true},{"op":"remove","path":"/l/0"},` +
		`{"op":"replace","path":"/s","value":false}]`
	if got := p.Args()[3]; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
