package render

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// added returns the objects of generators that a program adds to tegen's own, whose concerns are given. Every fault of
// such a generator is an error of the job: one generator does not hide those of another.
func added(j *job.Job, more []generators.Generator, own []generators.Concern) ([]generators.Concern, error) {
	if len(more) == 0 {
		return nil, nil
	}
	var all Bundle // of the objects so far
	for _, concern := range own {
		for _, obj := range concern.Objects {
			all.enter(obj)
		}
	}
	var concerns []generators.Concern
	var list finding.List
	for _, g := range more {
		objects, err := guarded(g, j, &all)
		for _, one := range separate(err) {
			list = append(list, finding.Finding{
				Rule: "render/generator", Level: finding.Error,
				Message: fmt.Sprintf("generator %s: %v", g.Name, one),
			})
		}
		if len(objects) > 0 {
			concerns = append(concerns, generators.Concern{Name: g.Name, Objects: objects})
		}
	}
	return concerns, located(list, j.Position())
}

// guarded runs a generator and checks what it returns. Its panic is an error, since it is no fault of tegen.
func guarded(g generators.Generator, j *job.Job, all *Bundle) (objects []k8sruntime.Object, err error) {
	defer func() {
		if r := recover(); r != nil {
			objects, err = nil, errors.New(finding.Panic(r))
		}
	}()
	if objects, err = g.Generate(j); err != nil {
		return nil, err
	}
	var errs []error
	for i, obj := range objects {
		if err := all.admit(obj, j); err != nil {
			errs = append(errs, fmt.Errorf("object %d: %w", i+1, err))
		}
	}
	return objects, errors.Join(errs...)
}

// admit enters an object of an added generator, unless it lacks what every object of tegen's own has: by these labels,
// annotations and names the KRM function, directories and controllers know whose an object is.
func (b *Bundle) admit(obj k8sruntime.Object, j *job.Job) error {
	if _, err := manifest.GVK(obj); err != nil {
		return fmt.Errorf("%w; set them in the object", err)
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	labels := m.GetLabels()
	named := names.JobOf(func(key string) string { return labels[key] })
	switch {
	case m.GetName() == "":
		return fmt.Errorf("%T has no name; set metadata.name", obj)
	case m.GetNamespace() != j.Metadata.Namespace && m.GetNamespace() != "":
		return fmt.Errorf("%s: its namespace is not that of the job, %q; make its metadata with generators.Meta",
			id(obj), j.Metadata.Namespace)
	case named != j.Metadata.Name || labels[names.LabelManagedBy] != names.ManagedBy:
		return fmt.Errorf("%s: it lacks the labels of the job; make its metadata with generators.Meta", id(obj))
	case m.GetNamespace() == "" && labels[names.LabelNamespace] != j.Metadata.Namespace:
		return fmt.Errorf("%s: it has no namespace; make its metadata with generators.Meta, or with "+
			"generators.ClusterMeta if its kind has none", id(obj))
	case apis.WorkloadOf(obj) != nil && m.GetAnnotations()[names.Input] != j.Input():
		return fmt.Errorf("%s: it runs pods and does not record its input; make its metadata with "+
			"generators.VersionedMeta", id(obj))
	case slices.Contains(b.ids, id(obj)):
		return fmt.Errorf("%s: the job has another object of this name; give it another one", id(obj))
	}
	if _, err := manifest.Append(nil, obj); err != nil {
		return fmt.Errorf("encoding %s: %w", id(obj), err)
	}
	b.enter(obj)
	return nil
}

// separate are the errors that one error joins, so that each has a line.
func separate(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
