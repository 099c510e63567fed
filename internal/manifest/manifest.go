// Package manifest is the last hop between Kubernetes objects and YAML text.
//
// Input: runtime objects to print (typed, or unstructured for foreign kinds),
// or the bytes of a multi-document manifest to read.
// Output: YAML text in the style of kubectl and kustomize, or the objects.
// Invariant: the text depends on the objects' values alone, so equal objects
// give equal bytes, and every YAML 1.1 or 1.2 parser reads the same values
// back from it.
package manifest

import (
	"fmt"
	"io"
	"reflect"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Separator stands between the documents of a stream.
const Separator = "---\n"

// flushSize bounds what Write holds back: large enough that a stream to a file
// costs few system calls, small enough to stay in the processor's cache.
const flushSize = 64 << 10

// Write prints the objects to w as one stream, with "---" between documents.
func Write(w io.Writer, objs []runtime.Object) error {
	enc := &encoder{}
	var out []byte
	for i, obj := range objs {
		if i > 0 {
			out = append(out, Separator...)
		}
		var err error
		if out, err = enc.append(out, obj); err != nil {
			return fmt.Errorf("writing document %d: %w", i+1, err)
		}
		if len(out) >= flushSize {
			if _, err := w.Write(out); err != nil {
				return fmt.Errorf("writing manifests: %w", err)
			}
			out = out[:0]
		}
	}
	if len(out) == 0 {
		return nil
	}
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("writing manifests: %w", err)
	}
	return nil
}

// Append prints obj at the end of dst as one document that ends in a newline,
// with no separator. On error it gives dst back as it was.
func Append(dst []byte, obj runtime.Object) ([]byte, error) {
	enc := encoders.Get().(*encoder)
	defer encoders.Put(enc)
	return enc.append(dst, obj)
}

// GVK names the group, version and kind of obj. For the API groups of this
// package the Go type decides, since such objects usually come without
// TypeMeta; for all others what the object says of itself does.
func GVK(obj runtime.Object) (schema.GroupVersionKind, error) {
	if obj == nil {
		return schema.GroupVersionKind{}, fmt.Errorf("naming the kind of an object: it is nil")
	}
	if gvk, ok := typedGVK(obj); ok {
		return gvk, nil
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" || gvk.Version == "" {
		return gvk, fmt.Errorf("naming the kind of a %T: apiVersion or kind is missing", obj)
	}
	return gvk, nil
}

type apiGroup struct {
	path string // import path of the Go types
	gv   schema.GroupVersion
	add  func(*runtime.Scheme) error
}

func apiGroups() [7]apiGroup {
	return [...]apiGroup{
		{"k8s.io/api/core/v1", corev1.SchemeGroupVersion, corev1.AddToScheme},
		{"k8s.io/api/apps/v1", appsv1.SchemeGroupVersion, appsv1.AddToScheme},
		{"k8s.io/api/batch/v1", batchv1.SchemeGroupVersion, batchv1.AddToScheme},
		{"k8s.io/api/networking/v1", networkingv1.SchemeGroupVersion, networkingv1.AddToScheme},
		{"k8s.io/api/policy/v1", policyv1.SchemeGroupVersion, policyv1.AddToScheme},
		{"k8s.io/api/storage/v1", storagev1.SchemeGroupVersion, storagev1.AddToScheme},
		{"k8s.io/api/rbac/v1", rbacv1.SchemeGroupVersion, rbacv1.AddToScheme},
	}
}

// typedGVK needs no scheme: in k8s.io/api the package is the group version and
// the type's name is the kind, which is also how AddKnownTypes names them.
// That keeps the scheme's half millisecond out of a process that only prints.
func typedGVK(obj runtime.Object) (schema.GroupVersionKind, bool) {
	t := reflect.TypeOf(obj)
	if t.Kind() != reflect.Pointer {
		return schema.GroupVersionKind{}, false
	}
	t = t.Elem()
	path := t.PkgPath()
	for _, g := range apiGroups() {
		if g.path == path {
			return g.gv.WithKind(t.Name()), true
		}
	}
	return schema.GroupVersionKind{}, false
}

// readScheme maps the kinds of apiGroups to Go types, for Read alone.
var readScheme = sync.OnceValues(func() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, g := range apiGroups() {
		if err := g.add(s); err != nil {
			return nil, fmt.Errorf("registering %s: %w", g.gv, err)
		}
	}
	return s, nil
})

// Types are the Go types of all kinds of Kubernetes itself that Read knows.
func Types() map[schema.GroupVersionKind]reflect.Type {
	s, err := readScheme()
	if err != nil { // Read reports it
		return nil
	}
	return s.AllKnownTypes()
}

// encoders are for Append, which is called for one object after another.
var encoders = sync.Pool{New: func() any { return &encoder{} }}

func (e *encoder) append(dst []byte, obj runtime.Object) ([]byte, error) {
	gvk, err := GVK(obj)
	if err != nil {
		return dst, err
	}
	e.out, e.err = dst, nil
	top := object{body: len(dst)}
	if u, ok := obj.(runtime.Unstructured); ok {
		e.typed = false
		e.ordered(u.UnstructuredContent(), top, "apiVersion", "kind", "metadata")
	} else {
		v := reflect.ValueOf(obj)
		if v.Kind() != reflect.Pointer || v.IsNil() {
			return dst, fmt.Errorf("encoding %s: the object is nil", gvk.Kind)
		}
		e.typed = true
		// Printing the head here spares copying the caller's object to fill in its TypeMeta.
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		e.head("apiVersion: ", apiVersion)
		e.head("kind: ", kind)
		if p := planOf(v.Type()).elem; p.form == asStruct {
			e.fields(p, v.Elem(), top)
		} else {
			e.fail(fmt.Errorf("a %s has no fields to print", v.Type().Elem()))
		}
	}
	out := e.out
	e.out = nil // which is the caller's
	if e.err != nil {
		return dst, fmt.Errorf("encoding %s: %w", gvk.Kind, e.err)
	}
	return out, nil
}

func (e *encoder) head(key, value string) {
	e.out = append(append(append(e.out, key...), value...), '\n')
}
