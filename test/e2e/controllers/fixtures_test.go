package controllers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/test/e2e/objects"
)

// fixture is a file of jobs.
type fixture struct {
	name    string
	text    []byte
	bundles map[string]*bundle // as it is, by overlay
}

// bundle is a fixture rendered with an overlay into a namespace of its own.
type bundle struct {
	namespace string
	domain    string // of the cluster's DNS
	jobs      []*plan.Job
	schema    []*job.Job
	objects   []*unstructured.Unstructured // as the YAML has them, in its order
	typed     []runtime.Object
}

// edit changes a job before it is rendered: its whole document.
type edit func(job map[string]any)

// set is an edit of one field.
func set(value any, path ...string) edit {
	return func(job map[string]any) {
		if err := unstructured.SetNestedField(job, value, path...); err != nil {
			panic(err) // of a fixture that is valid
		}
	}
}

// load renders all fixtures and says of which the pods come of core controllers; foreign are the others.
func load(t *testing.T) (core []*fixture, foreign []string) {
	t.Helper()
	files := fixtureFiles(t)
	all := make([]*fixture, len(files))
	errs := make([]error, len(files))
	var wg sync.WaitGroup
	for i, file := range files {
		wg.Go(func() {
			text, err := os.ReadFile(file)
			f := &fixture{
				name: strings.TrimSuffix(filepath.Base(file), ".yaml"), text: text,
				bundles: map[string]*bundle{},
			}
			for _, overlay := range overlays {
				if err == nil {
					f.bundles[overlay], err = f.render(overlay, f.name+"-"+overlay)
				}
			}
			all[i], errs[i] = f, err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if why := f.bundles["base"].foreign(); why != "" {
			foreign = append(foreign, f.name+" ("+why+")")
			continue
		}
		core = append(core, f)
	}
	return core, foreign
}

// render does what tegen render and tegen plan do, with the jobs in another namespace.
func (f *fixture) render(overlay, namespace string, edits ...edit) (*bundle, error) {
	text, err := f.edited(append(edits, moveTo(namespace)))
	if err != nil {
		return nil, err
	}
	sources := []schema.Source{{Name: f.name + ".yaml", Data: text}}
	out := &krm.Output{}
	if overlay == "base" {
		var jobs []*job.Job
		if jobs, err = schema.Load(sources); err == nil {
			out.Bundles, err = render.Jobs(jobs, render.Options{})
		}
	} else {
		out, err = krm.Overlay(root+"/overlays/"+overlay, sources)
	}
	if err != nil {
		return nil, fmt.Errorf("rendering %s with %s: %w", f.name, overlay, err)
	}
	return newBundle(namespace, out)
}

func newBundle(namespace string, out *krm.Output) (*bundle, error) {
	b := &bundle{namespace: namespace}
	concerns, err := out.Objects()
	if err != nil {
		return nil, err
	}
	for i, of := range concerns {
		j := out.Bundles[i].Job
		b.domain = j.Spec.Network.ClusterDomain
		b.schema = append(b.schema, j)
		b.jobs = append(b.jobs, plan.Of(j, of))
		b.typed = slices.Concat(append([][]runtime.Object{b.typed}, objectsOf(of)...)...)
	}
	var text bytes.Buffer
	if err := out.Write(&text); err != nil {
		return nil, err
	}
	all, err := objects.Read("what was rendered", text.Bytes())
	for _, o := range all {
		b.objects = append(b.objects, o.Unstructured)
	}
	return b, err
}

func objectsOf(concerns []generators.Concern) (all [][]runtime.Object) {
	for _, c := range concerns {
		all = append(all, c.Objects)
	}
	return all
}

// edited is the file with edits in every job.
func (f *fixture) edited(edits []edit) ([]byte, error) {
	var out []byte
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(f.text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		content := map[string]any{}
		if err == nil {
			err = sigsyaml.Unmarshal(document, &content)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", f.name, err)
		}
		if content["kind"] == names.KindTrainingJob {
			for _, e := range edits {
				e(content)
			}
		}
		text, err := sigsyaml.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", f.name, err)
		}
		out = append(append(out, "---\n"...), text...)
	}
}

// moveTo puts a job, and the gangs that it names, into a namespace.
func moveTo(namespace string) edit {
	return func(job map[string]any) {
		set(namespace, "metadata", "namespace")(job)
		groups, found, err := unstructured.NestedStringSlice(job, "spec", "gang", "groups")
		if err != nil || !found {
			return
		}
		renamed := make([]any, len(groups))
		for i, group := range groups {
			_, name, _ := strings.Cut(group, "/")
			renamed[i] = namespace + "/" + name
		}
		set(renamed, "spec", "gang", "groups")(job)
	}
}

// foreign names the kind whose pods no core controller makes, or what they wait for that none brings; "" where there is
// none.
func (b *bundle) foreign() string {
	for _, j := range b.jobs {
		for _, s := range j.PodSets {
			kind, _, _ := strings.Cut(s.Owner, "/")
			if !apis.IsBuiltIn(kind) {
				return kind
			}
		}
	}
	for _, of := range b.templates() {
		if len(of.ResourceClaims) > 0 {
			return "claims of a device driver"
		}
	}
	return ""
}

// template is pods that come of one object.
type template struct {
	corev1.PodSpec
	pods int
}

// templates of all objects of the bundle.
func (b *bundle) templates() (all []template) {
	for _, obj := range b.typed {
		if w := apis.WorkloadOf(obj); w != nil {
			for _, set := range w.PodSets() {
				all = append(all, template{set.Template.Spec, int(set.Replicas)})
			}
		}
	}
	return all
}

// shapes are one fixture of each combination of framework, target and pods: what suspension has to do with.
func shapes(fixtures []*fixture) (some []*fixture) {
	seen := map[string]bool{}
	for _, f := range fixtures {
		var words []string
		for _, j := range f.bundles["base"].jobs {
			words = append(words, j.Framework, j.Target)
			for _, s := range j.PodSets {
				words = append(words, s.Role)
			}
			if j.Queue != "" { // Kueue's, which suspends by itself
				words = nil
				break
			}
		}
		key := strings.Join(words, " ")
		if key != "" && !seen[key] {
			some = append(some, f)
		}
		seen[key] = true
	}
	return some
}

// elastic are the fixtures of one job that may have more or fewer workers while it runs.
func elastic(fixtures []*fixture) (some []*fixture) {
	for _, f := range fixtures {
		jobs := f.bundles["base"].schema
		if w := jobs[0].Spec.Workers; len(jobs) == 1 && w.Min < w.Max {
			some = append(some, f)
		}
	}
	return some
}
