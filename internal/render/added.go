package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// admission checks what added generators return for one job. taken has the ids of all objects so far, after their API
// groups.
type admission struct {
	j     *job.Job
	taken map[string]bool
}

// added returns the objects of generators that a program adds to tegen's own, whose concerns are given. Every fault of
// such a generator is an error of the job: one generator does not hide those of another. only is as in Options.
func added(j *job.Job, more []generators.Generator, own []generators.Concern, only []string,
) ([]generators.Concern, error) {
	if len(more) == 0 {
		return nil, nil
	}
	a := admission{j, map[string]bool{}}
	for _, concern := range own {
		for _, obj := range concern.Objects {
			a.enter(obj)
		}
	}
	var concerns []generators.Concern
	var list finding.List
	before := stateOf(j)
	for _, g := range more {
		if len(only) > 0 && !slices.Contains(only, g.Name) {
			continue
		}
		objects, faults := a.run(g)
		changed := stateOf(j) != before
		if changed {
			faults = append(faults, "it changed the job; copy what it changes")
		}
		for _, fault := range faults {
			list = append(list, finding.Finding{
				Rule: "render/generator", Level: finding.Error, Message: "generator " + g.Name + ": " + fault,
			})
		}
		if changed {
			break // the others would read the changed job
		}
		if len(objects) > 0 {
			concerns = append(concerns, generators.Concern{Name: g.Name, Objects: objects})
		}
	}
	return concerns, located(list, j.Position())
}

// stateOf is everything that objects and checks depend on.
func stateOf(j *job.Job) string {
	o := &j.Origin
	text, err := json.Marshal([]any{j, o.Input, o.Machine, o.Levels})
	return fmt.Sprintf("%s%v%v%p%p", text, err, j.Spec.Groups, o.Policy, o.Fence) // groups have fields that JSON lacks
}

// run runs a generator and returns its objects, or what is wrong with it. A panic is no fault of tegen. The generator
// has a goroutine to itself, because runtime.Goexit ends that without a panic.
func (a *admission) run(g generators.Generator) (objects []k8sruntime.Object, faults []string) {
	var wg sync.WaitGroup
	wg.Go(func() {
		faults = []string{"it called runtime.Goexit; return an error instead"} // replaced if it did not
		defer func() {
			if r := recover(); r != nil {
				faults = []string{finding.Panic(r)}
			}
		}()
		made, err := g.Generate(a.j)
		if err != nil {
			made = nil
		}
		wrong := separate(err)
		for i, obj := range made {
			if err := a.admit(obj); err != nil {
				wrong = append(wrong, fmt.Sprintf("object %d: %v", i+1, err))
			}
		}
		objects, faults = made, wrong
	})
	wg.Wait()
	return objects, faults
}

// enter records an object, and those that its controller makes.
func (a *admission) enter(obj k8sruntime.Object) {
	var b Bundle
	b.enter(obj)
	a.taken[key(obj)] = true
	for _, service := range b.ids[1:] {
		a.taken["/"+service] = true
	}
}

// key tells objects of one job apart: kinds of two API groups may have the same name.
func key(obj k8sruntime.Object) string {
	gvk, _ := manifest.GVK(obj) // checked before
	return gvk.Group + "/" + id(obj)
}

// admit enters an object of an added generator, unless it lacks what every object of tegen's own has: by these labels,
// annotations and names the KRM function, directories and controllers know whose an object is.
func (a *admission) admit(obj k8sruntime.Object) error {
	switch v := reflect.ValueOf(obj); {
	case obj == nil:
		return errors.New("it is nil; leave it out")
	case v.Kind() == reflect.Pointer && v.IsNil():
		return fmt.Errorf("it is a nil %T; leave it out", obj)
	case meta.IsListType(obj):
		return fmt.Errorf("it is a list, %T; return its items instead", obj)
	}
	gvk, err := manifest.GVK(obj)
	if err != nil {
		return fmt.Errorf("%w; set them in the object", err)
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if m.GetName() == "" {
		return fmt.Errorf("%T has no name; set metadata.name", obj)
	}
	labels := m.GetLabels()
	named := names.JobOf(func(key string) string { return labels[key] })
	switch err := a.place(gvk, m); {
	case err != nil:
		return fmt.Errorf("%s: %w", id(obj), err)
	case named != a.j.Metadata.Name || labels[names.LabelManagedBy] != names.ManagedBy:
		return fmt.Errorf("%s: it lacks the labels of the job; make its metadata with generators.Meta", id(obj))
	case m.GetNamespace() == "" && labels[names.LabelNamespace] != a.j.Metadata.Namespace:
		return fmt.Errorf("%s: it has no namespace; make its metadata with generators.Meta, or with "+
			"generators.ClusterMeta if its kind has none", id(obj))
	case apis.WorkloadOf(obj) != nil && m.GetAnnotations()[names.Input] != a.j.Input():
		return fmt.Errorf("%s: it runs pods and does not record its input; make its metadata with "+
			"generators.VersionedMeta", id(obj))
	case a.taken[key(obj)]:
		return fmt.Errorf("%s: the job has another object of this name; give it another one", id(obj))
	}
	if _, err := manifest.Append(nil, obj); err != nil {
		return fmt.Errorf("encoding %s: %w", id(obj), err)
	}
	a.enter(obj)
	return nil
}

// place checks the API group, name and namespace of an object.
func (a *admission) place(gvk schema.GroupVersionKind, m metav1.Object) error {
	known := manifest.Types()[gvk] != nil
	clustered := known && apis.ClusterScoped(gvk.Kind)
	switch of, is := a.j.Metadata.Namespace, m.GetNamespace(); {
	case strings.HasPrefix(names.APIVersion, gvk.Group+"/"):
		return fmt.Errorf("%s is for the input of tegen; return an object of another API group", gvk.GroupVersion())
	case gvk.Group != rbacv1.GroupName && len(validation.IsDNS1123Subdomain(m.GetName())) > 0:
		return errors.New("its name is not valid; use at most 253 lower-case letters, digits, '-' and '.'")
	case clustered && is != "":
		return errors.New("its kind has no namespace; make its metadata with generators.ClusterMeta")
	case known && !clustered && is == "" && of != "":
		return errors.New("it has no namespace; make its metadata with generators.Meta")
	case is != of && is != "":
		return fmt.Errorf("its namespace is not that of the job, %q; make its metadata with generators.Meta", of)
	}
	return nil
}

// separate are the texts of the errors that err joins, so that each has a line. An error with a text of its own stays
// as it is.
func separate(err error) (texts []string) {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		parts := joined.Unwrap()
		if all := errors.Join(parts...); all != nil && all.Error() == err.Error() {
			for _, part := range parts {
				texts = append(texts, separate(part)...)
			}
			return texts
		}
	}
	return []string{cmp.Or(err.Error(), "it returned an error without text")}
}
