package runbook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// edit is what becomes of a job's objects when a field of the job changes.
type edit struct {
	Patches  []patch
	Gone     []string // objects as kind/name
	added    []string
	Replaces bool // an object that no API server changes so is made anew
}

// patch changes fields of one object that stays.
type patch struct {
	Object string // as kind/name
	fields []field
}

// field is a place in an object, of keys and of indexes of lists, with what is to be there; nil where nothing is.
type field struct {
	path   []any
	before any
	after  any
}

// change is an edit of the job with what the template needs to print it.
type change struct {
	*book
	edit
	Fields  string // what to write in the job's file
	Message string // of the commit
	Unknown bool   // the overlay had the last word on the objects: no patch of theirs can be printed
}

// Saying is the job with the message of a commit.
func (b *book) Saying(message string) *change { return &change{book: b, Message: message} }

// change is what becomes of the job's objects if the job is edited.
func (b *book) change(fields, message string, set func(*job.Spec)) *change {
	e, known := b.edited(set)
	return &change{book: b, edit: e, Fields: fields, Message: message, Unknown: !known}
}

// Resume lets a suspended job go; nil where it is not suspended.
func (b *book) Resume() *change {
	if !b.job.Spec.Suspend {
		return nil
	}
	return b.change("suspend: false", "Resume "+b.Name, func(s *job.Spec) { s.Suspend = false })
}

// Scale changes how many workers there are; nil where no fewer may train than do.
func (b *book) Scale() *change {
	n := b.Other()
	if n == 0 {
		return nil
	}
	c := b.change(fmt.Sprintf("workers.replicas: %d", n), fmt.Sprintf("Scale %s to %d workers", b.Name, n),
		func(s *job.Spec) { s.Workers.Replicas = n })
	if !c.Unknown && len(c.Patches)+len(c.Gone)+len(c.added) == 0 {
		return nil
	}
	return c
}

// Suspend stops a job that trains; nil where that is not possible. Bare pods take no gate once they are there, DLRover
// stops no workers, and Kueue's jobs are held by their Workload.
func (b *book) Suspend() *change {
	t := target.Of(b.job.Spec.Framework, b.job.Spec.Target)
	if b.Queue != "" || b.job.Spec.Suspend || t == nil || !t.Carries("suspend") || t.Name == job.TargetPods ||
		t.Framework == job.FrameworkDLRover {
		return nil
	}
	c := b.change("suspend: true", "Suspend "+b.Name, func(s *job.Spec) { s.Suspend = true })
	if !c.Unknown && !c.InPlace() {
		return nil
	}
	return c
}

// Back is what undoes a suspension.
func (c *change) Back() *change {
	back := &change{book: c.book, Fields: "suspend: false", Message: "Resume " + c.Name}
	for _, p := range c.Patches {
		undone := patch{Object: p.Object}
		for _, f := range p.fields {
			undone.fields = append(undone.fields, field{f.path, f.after, f.before})
		}
		back.Patches = append(back.Patches, undone)
	}
	return back
}

// edited renders a job as it is and with a change, and compares. The generators are asked, and not a list of which kind
// has which field, so that it holds for every target. ok is false where the overlay renders other objects than these.
func (b *book) edited(change func(*job.Spec)) (e edit, ok bool) {
	other := *b.job
	change(&other.Spec)
	before, after := byName(b.job), byName(&other)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if !slices.ContainsFunc(b.objects, func(o runtime.Object) bool { return nameOf(o) == name }) {
			return edit{}, false
		}
		if _, stays := after[name]; !stays {
			e.Gone = append(e.Gone, name)
			continue
		}
		if fields := differ(nil, before[name], after[name]); len(fields) > 0 {
			e.Patches = append(e.Patches, patch{name, fields})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, was := before[name]; !was {
			e.added = append(e.added, name)
		}
	}
	if e.Replaces = b.replaces(change); e.Replaces && len(e.added) == 0 {
		for _, p := range e.Patches {
			e.Gone = append(e.Gone, p.Object)
		}
	}
	return e, true
}

// InPlace says whether objects change and none comes or goes.
func (e *edit) InPlace() bool { return len(e.Patches) > 0 && len(e.Gone)+len(e.added) == 0 }

// replaces says whether a change is of what no API server changes: the name of an object is another then, where it has
// a hash of that.
func (b *book) replaces(change func(*job.Spec)) bool {
	t := target.Of(b.job.Spec.Framework, b.job.Spec.Target)
	if t == nil || !t.Carries("hashedNames") {
		return false
	}
	before := *b.job
	before.Spec.HashedNames = true
	after := before
	change(&after.Spec)
	names := func(j *job.Job) []string { return slices.Sorted(maps.Keys(byName(j))) }
	return !slices.Equal(names(&before), names(&after))
}

// byName are a job's objects as maps.
func byName(j *job.Job) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, c := range generators.Generate(j) {
		for _, obj := range c.Objects {
			if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err == nil {
				all[nameOf(obj)] = fields
			}
		}
	}
	return all
}

// nameOf is an object as kubectl takes it: kind.group/name.
func nameOf(obj runtime.Object) string {
	gvk, err := manifest.GVK(obj)
	m, ok := obj.(metav1.Object)
	if err != nil || !ok {
		return ""
	}
	return resource(gvk.Group, gvk.Kind) + "/" + m.GetName()
}

// resource is a kind as kubectl takes it. Groups without a dot are Kubernetes' own, and no other has their kinds alone.
func resource(group, kind string) string {
	name := strings.ToLower(kind)
	if strings.Contains(group, ".") {
		name += "." + group
	}
	return name
}

// differ lists the places in which two values differ, as deep down as can be.
func differ(path []any, before, after any) (fields []field) {
	at := func(step any) []any { return append(slices.Clone(path), step) }
	switch was := before.(type) {
	case map[string]any:
		is, ok := after.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(was)
		maps.Copy(keys, is)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			fields = append(fields, differ(at(key), was[key], is[key])...)
		}
		return fields
	case []any:
		is, ok := after.([]any)
		if !ok || len(was) != len(is) {
			break
		}
		for i := range was {
			fields = append(fields, differ(at(i), was[i], is[i])...)
		}
		return fields
	}
	if reflect.DeepEqual(before, after) {
		return nil
	}
	return []field{{path, before, after}}
}

// Args are what 'kubectl patch' takes: a merge patch, or the steps of a JSON patch where it leads through a list, which
// a merge patch would replace.
func (p *patch) Args() []string {
	for _, f := range p.fields {
		if slices.ContainsFunc(f.path, func(step any) bool { _, isIndex := step.(int); return isIndex }) {
			return []string{"--type", "json", "-p", p.steps()}
		}
	}
	merged := map[string]any{}
	for _, f := range p.fields {
		in := merged
		for _, step := range f.path[:len(f.path)-1] {
			key := step.(string)
			if in[key] == nil {
				in[key] = map[string]any{}
			}
			in = in[key].(map[string]any)
		}
		in[f.path[len(f.path)-1].(string)] = f.value()
	}
	return []string{"--type", "merge", "-p", asJSON(merged)}
}

// value is what is to be there. A switch that is left out is off, and says so.
func (f *field) value() any {
	if f.before == true && f.after == nil {
		return false
	}
	return f.after
}

func (p *patch) steps() string {
	type step struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	steps := make([]step, len(p.fields))
	for i, f := range p.fields {
		s := step{Op: "replace", Value: f.value()}
		switch {
		case f.before == nil:
			s.Op = "add"
		case s.Value == nil:
			s.Op = "remove"
		}
		for _, at := range f.path {
			s.Path += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(at))
		}
		steps[i] = s
	}
	return asJSON(steps)
}

// asJSON is a value on one line.
func asJSON(value any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(fmt.Errorf("encoding a patch: %w", err)) // all of it was read as JSON
	}
	return strings.TrimSpace(out.String())
}
