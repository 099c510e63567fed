// Package diff says what becomes of a cluster when the objects of one state are applied over those of another: each
// changed field with its class, by the rules of the object's kind. In go objects as they are written or as a cluster
// printed them; out comes a Report. The same objects give the same report, in whatever order they come, and no value of
// a Secret is ever in it.
package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/spelling"
)

// Class is what happens when a change is applied.
type Class string

// The classes.
const (
	Data     Class = "data"     // data is deleted
	Refused  Class = "refused"  // the API server, or a webhook, refuses it, and a reconciler stops
	Overlap  Class = "overlap"  // a new run begins while the pods of the old one still end
	Recreate Class = "recreate" // the object is deleted and made anew: its run begins again
	Restart  Class = "restart"  // pods are replaced, or their containers restarted
	Removed  Class = "removed"  // the object is deleted
	Unknown  Class = "unknown"  // nothing is known of the kind: its controller and webhooks decide
	InPlace  Class = "in-place" // the object is changed
	Added    Class = "added"    // the object is made
)

// Classes are all of them, the worst first.
var Classes = []Class{Data, Refused, Overlap, Recreate, Restart, Removed, Unknown, InPlace, Added}

// Meaning is what a class says, in a few words.
func (c Class) Meaning() string {
	switch c {
	case Data:
		return "loses data"
	case Refused:
		return "refused by the API server"
	case Overlap:
		return "two runs overlap"
	case Recreate:
		return "made anew"
	case Restart:
		return "restarts pods"
	case Unknown:
		return "not known"
	case InPlace:
		return "changed in place"
	}
	return string(c)
}

func (c Class) rank() int { return slices.Index(Classes, c) }

// Ref names an object.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func (r Ref) String() string { return r.Kind + " " + r.Name }

// Change is one field of an object that differs, or an object that only one of the two states has.
type Change struct {
	Class  Class  `json:"class"`
	Object Ref    `json:"object"`
	Path   string `json:"path,omitempty"` // of the field, such as spec.template.spec.containers[worker].image
	// Old and New are the field's values; a field that is not there, and what must not be shown, has none.
	Old    any    `json:"old,omitempty"`
	New    any    `json:"new,omitempty"`
	Hidden bool   `json:"hidden,omitempty"` // the values are a Secret's
	Why    string `json:"why,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Job is what changes of one job, or of all that belongs to none.
type Job struct {
	Name      string   `json:"name,omitempty"`
	Namespace string   `json:"namespace,omitempty"`
	Worst     Class    `json:"worst"`
	Changes   []Change `json:"changes"`

	Rendered *Rendered `json:"rendered,omitempty"` // not there where a side has no record of it
}

// Report is all that changes, the worst first.
type Report struct {
	KubernetesVersion string        `json:"kubernetesVersion"`
	Worst             Class         `json:"worst,omitempty"` // none where nothing changes
	Counts            map[Class]int `json:"counts"`          // of objects that have a change of the class
	Jobs              []Job         `json:"jobs"`
	// Warnings say what the comparison could not see.
	Warnings []string `json:"warnings,omitempty"`
}

// Options of a comparison.
type Options struct {
	Minor int // of Kubernetes 1.x
}

// Compare returns what applying the new objects over the old ones does, and deleting the old ones that are not among
// the new.
func Compare(before, after []map[string]any, o Options) (*Report, error) {
	old, err := newState("old", before)
	if err != nil {
		return nil, err
	}
	next, err := newState("new", after)
	if err != nil {
		return nil, err
	}
	c := &comparison{Options: o, old: old, next: next}
	old.leaveOut(next)
	next.leaveOut(old)
	for _, key := range old.keys() {
		was := old.objects[key]
		if is := next.objects[key]; is != nil {
			c.changed(was, is)
		} else {
			c.gone = append(c.gone, was)
		}
	}
	for _, key := range next.keys() {
		if old.objects[key] == nil {
			c.come = append(c.come, next.objects[key])
		}
	}
	c.replaced()
	for _, was := range c.gone {
		c.removed(was)
	}
	for _, is := range c.come {
		c.add(is, Change{Class: Added})
	}
	return c.report(), nil
}

// comparison is one call of Compare.
type comparison struct {
	Options
	old, next  *state
	gone, come []*object // only in old, only in next
	found      []found
	bound      map[key]*object // of volumes
	blind      [2]bool         // an object of old, or of next, is live and does not say who applied its fields
}

// found is a change with the job that it belongs to.
type found struct {
	job, namespace string
	Change
}

func (c *comparison) add(o *object, change Change) {
	change.Object = o.Ref
	c.found = append(c.found, found{o.job, o.belongsTo().namespace, change})
}

func (c *comparison) report() *Report {
	r := &Report{
		KubernetesVersion: version(c.Minor), Counts: map[Class]int{}, Jobs: []Job{}, Warnings: c.warnings(),
	}
	type counted struct {
		Class
		Ref
	}
	seen := map[counted]bool{}
	slices.SortFunc(c.found, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.job, b.job),
			cmp.Compare(a.Class.rank(), b.Class.rank()), cmp.Compare(a.Object.Kind, b.Object.Kind),
			cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Name, b.Object.Name),
			cmp.Compare(a.Why, b.Why), cmp.Compare(a.Path, b.Path))
	})
	for _, f := range c.found {
		last := len(r.Jobs) - 1
		if last < 0 || r.Jobs[last].Name != f.job || r.Jobs[last].Namespace != f.namespace {
			r.Jobs = append(r.Jobs, Job{Name: f.job, Namespace: f.namespace, Worst: f.Class})
			last++
		}
		r.Jobs[last].Changes = append(r.Jobs[last].Changes, f.Change)
		if one := (counted{f.Class, f.Object}); !seen[one] {
			seen[one] = true
			r.Counts[f.Class]++
		}
	}
	slices.SortStableFunc(r.Jobs, func(a, b Job) int { return cmp.Compare(a.Worst.rank(), b.Worst.rank()) })
	c.rendered(r.Jobs)
	if len(r.Jobs) > 0 {
		r.Worst = r.Jobs[0].Worst
	}
	return r
}

// ParseClasses reads a list of classes, as --fail-on has it. The error of a name that is none lists them.
func ParseClasses(list string) ([]Class, error) {
	var classes []Class
	for name := range strings.SplitSeq(list, ",") {
		c := Class(strings.TrimSpace(name))
		if !slices.Contains(Classes, c) {
			var names []string
			for _, c := range Classes {
				names = append(names, string(c))
			}
			return nil, fmt.Errorf("there is no class %q; there are: %s%s", name, strings.Join(names, ", "),
				spelling.Suggest(string(c), names))
		}
		classes = append(classes, c)
	}
	return classes, nil
}
