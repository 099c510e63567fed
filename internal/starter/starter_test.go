package starter

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

var first = Options{Framework: "torchelastic", Target: "job", Overlay: "overlays/eks", CI: GitHub, Version: "v1.2.3"}

// TestEveryJob: each framework starts with a job that is valid in its place on each of its targets.
func TestEveryJob(t *testing.T) {
	for _, target := range target.All {
		o := first
		o.Framework, o.Target = target.Framework, target.Name
		all, err := Files(o)
		if err != nil {
			t.Errorf("%s on %s: %v", o.Framework, o.Target, err)
			continue
		}
		jobs, err := schema.Load([]schema.Source{
			{Name: JobFile, Data: all[JobFile]},
			{
				Name: "environment.yaml", Data: all["overlays/eks/environment.yaml"],
				Environment: schema.AnyEnvironment,
			},
		})
		if err != nil || len(jobs) != 1 {
			t.Errorf("%s on %s: %d jobs, %v", o.Framework, o.Target, len(jobs), err)
			continue
		}
		if s := jobs[0].Spec; s.Framework != o.Framework || s.Target != o.Target {
			t.Errorf("%s on %s: the job is of %s on %s", o.Framework, o.Target, s.Framework, s.Target)
		}
	}
}

// TestFiles: what is written is YAML without a placeholder, each CI has its own workflow, and what no release has is
// asked of the latest.
func TestFiles(t *testing.T) {
	const github, gitlab = ".github/workflows/tegen.yaml", ".gitlab-ci.yml"
	for ci, want := range map[string]string{GitHub: github, GitLab: gitlab, None: ""} {
		for version, tag := range map[string]string{"v1.2.3": "v1.2.3", "v1.2.4-0.2026+dirty": "latest", "": "latest"} {
			o := first
			o.CI, o.Version = ci, version
			all, err := Files(o)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{github, gitlab} {
				text, there := all[name]
				if there != (name == want) {
					t.Errorf("%s: %s is there: %v", ci, name, there)
				}
				if there && !strings.Contains(string(text), "cmd/tegen@"+tag+"\n") {
					t.Errorf("%s, version %q: installs another\n%s", ci, version, text)
				}
			}
			for name, text := range all {
				var any map[string]any
				if err := yaml.UnmarshalStrict(text, &any); err != nil || strings.Contains(string(text), "<") {
					t.Errorf("%s: %v\n%s", name, err, text)
				}
			}
		}
	}
}

// TestConfiguration: the configuration of kustomize has every image of a job, and the specs of all pods.
func TestConfiguration(t *testing.T) {
	var want []string
	var walk func(t reflect.Type, at string, above []reflect.Type)
	walk = func(t reflect.Type, at string, above []reflect.Type) {
		switch {
		case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice:
			walk(t.Elem(), at, above)
		case t.Kind() == reflect.Struct && !slices.Contains(above, t):
			for i := range t.NumField() {
				f := t.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if f.Type.Kind() == reflect.String && (name == "image" || strings.HasSuffix(at, "/images")) {
					want = append(want, at+"/"+name)
				}
				walk(f.Type, at+"/"+name, append(slices.Clone(above), t))
			}
		}
	}
	walk(reflect.TypeFor[job.Spec](), "spec", nil)
	const path = "spec/script/image" // a file in the image
	want = slices.DeleteFunc(want, func(field string) bool { return field == path })
	if got := slices.Sorted(slices.Values(imageFields)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("images of a job:\n%q\nof the configuration:\n%q", want, got)
	}
	for _, target := range target.All {
		o := first
		o.Framework, o.Target = target.Framework, target.Name
		all, err := Files(o)
		if err != nil {
			t.Fatal(err)
		}
		builtIn := o.Target == job.TargetJob || o.Target == job.TargetPods
		text := string(all["overlays/eks/kustomizeconfig.yaml"])
		if has := strings.Contains(text, "/spec/volumes/configMap/name, kind: "); has == builtIn {
			t.Errorf("%s on %s:\n%s", o.Framework, o.Target, text)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		words  string
	}{
		"no such framework":  {func(o *Options) { o.Framework = "torch" }, "torchelastic, dlrover"},
		"no such target":     {func(o *Options) { o.Target = "mxjob" }, "job, pods"},
		"no such CI":         {func(o *Options) { o.CI = "jenkins" }, "github, gitlab, none"},
		"above":              {func(o *Options) { o.Overlay = "../eks" }, "lower-case letters"},
		"absolute":           {func(o *Options) { o.Overlay = "/eks" }, "lower-case letters"},
		"a space":            {func(o *Options) { o.Overlay = "overlays/my eks" }, "lower-case letters"},
		"the directory":      {func(o *Options) { o.Overlay = "." }, "lower-case letters"},
		"among the jobs":     {func(o *Options) { o.Overlay = "jobs/eks" }, "jobs and rendered"},
		"among the rendered": {func(o *Options) { o.Overlay = "rendered" }, "jobs and rendered"},
	} {
		o := first
		c.change(&o)
		if all, err := Files(o); err == nil || all != nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %d files, %v", name, len(all), err)
		}
	}
}
