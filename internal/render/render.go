// Package render is the one pipeline of every command: checked jobs in, the YAML of their objects out, a bundle a job
// and a file a concern, in a fixed order. Every reference inside a bundle resolves and no object occurs twice, or
// nothing comes out. It holds the YAML of all bundles, but the objects of only those that are being encoded.
package render

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/schema"
)

// Bundle is what one job becomes.
type Bundle struct {
	Job     *schema.Job // nil where Printed made it
	Summary *schema.Summary
	Files   []File
	Expects []string // Kind/name of what its objects name and others make

	ids []string
}

// File is the objects of one concern as a YAML stream.
type File struct {
	Concern string
	YAML    []byte
}

// Jobs renders jobs on all cores, in their order. only names the generators to run, none means all; with a part of
// the generators references are not checked, since they may lead to the other part.
func Jobs(jobs []*schema.Job, only []string) ([]Bundle, error) { return renderAll(jobs, only, false) }

// Printed is Jobs for callers that print and need nothing else: the bundles have no jobs, and jobs has none afterwards.
// Thousands of them are as large as their YAML.
func Printed(jobs []*schema.Job, only []string) ([]Bundle, error) { return renderAll(jobs, only, true) }

func renderAll(jobs []*schema.Job, only []string, printed bool) ([]Bundle, error) {
	bundles := make([]Bundle, len(jobs))
	errs := make([]error, len(jobs))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(jobs); i = int(next.Add(1)) - 1 {
				bundles[i], errs[i] = bundle(jobs[i], only)
				if printed {
					bundles[i].Job, jobs[i] = nil, nil
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(append(errs, duplicates(bundles))...); err != nil {
		return nil, err
	}
	return bundles, nil
}

// buffers are for a file's text while it grows.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func bundle(job *schema.Job, only []string) (Bundle, error) {
	b := Bundle{Job: job, Summary: job.Summary()}
	var all []k8sruntime.Object
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	for _, concern := range generators.Generate(job, only...) {
		text := (*buffer)[:0]
		for i, obj := range concern.Objects {
			if i > 0 {
				text = append(text, manifest.Separator...)
			}
			var err error
			if text, err = manifest.Append(text, obj); err != nil {
				return b, fmt.Errorf("encoding %s: %w", concern.Name, err)
			}
			b.ids = append(b.ids, id(obj))
			if w := apis.WorkloadOf(obj); w != nil {
				for _, name := range w.Services() { // which its controller makes
					b.ids = append(b.ids, objectID("Service", w.GetNamespace(), name))
				}
			}
			if m, err := meta.Accessor(obj); err == nil && m.GetAnnotations()[names.Expects] != "" {
				b.Expects = append(b.Expects, strings.Split(m.GetAnnotations()[names.Expects], ",")...)
			}
		}
		*buffer = text
		b.Files = append(b.Files, File{concern.Name, slices.Clone(text)}) // without the room that it grew into
		all = append(all, concern.Objects...)
	}
	if len(only) > 0 {
		return b, nil
	}
	if broken := refs.Check(all); len(broken) > 0 {
		return b, Broken(job.Position(), broken)
	}
	return b, nil
}

// Broken makes one error of references that do not resolve, a line each; nil of none. place, if any, is where what they
// stand in was written: file:line:col, a file or the name of an object.
func Broken(place string, broken []refs.Broken) error {
	list := make(finding.List, len(broken))
	for i, b := range broken {
		list[i] = b.Finding().At(place)
	}
	return list.Err()
}

// id is what an API server tells objects apart by.
func id(obj k8sruntime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	gvk, err := manifest.GVK(obj)
	if err != nil {
		return ""
	}
	return objectID(gvk.Kind, m.GetNamespace(), m.GetName())
}

func objectID(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// duplicates finds objects that two bundles both hold, or the controllers of their custom resources make: applied one
// after the other, each would undo the other.
func duplicates(bundles []Bundle) error {
	var list finding.List
	owner := make(map[string]*schema.Summary, 6*len(bundles))
	for _, b := range bundles {
		for _, id := range b.ids {
			if first, ok := owner[id]; ok && first != b.Summary {
				advice := "give it another name in one of them, or name it there as existing"
				if strings.HasPrefix(id, objectID("Namespace", "", "")) {
					advice = "leave createNamespace out in one of them"
				}
				list = append(list, finding.Finding{
					Rule: "render/duplicate", Level: finding.Error,
					Message: fmt.Sprintf("%s would be rendered by job %q too (%s): %s", id, first.Name,
						first.Position(), advice),
				}.At(b.Summary.Position()))
			}
			owner[id] = b.Summary
		}
	}
	return list.Err()
}

// Write writes bundles as one YAML stream.
func Write(w io.Writer, bundles []Bundle) error {
	first := true
	for _, b := range bundles {
		for _, f := range b.Files {
			if !first {
				if _, err := io.WriteString(w, manifest.Separator); err != nil {
					return err
				}
			}
			first = false
			if _, err := w.Write(f.YAML); err != nil {
				return err
			}
		}
	}
	return nil
}
