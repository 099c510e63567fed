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
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// Bundle is what one job becomes.
type Bundle struct {
	Job     *job.Job // nil where Printed made it
	Summary *schema.Summary
	Files   []File
	Expects []string // Kind/name of what its objects name and others make

	Left []generators.Concern // what tegen's other generators would make of the job, where only some ran

	ids  []string
	made []madeServices
	more []generators.Concern // of generators that are not tegen's own
}

// madeServices are Services that a controller makes, for numbers that the job has; base is their name without number,
// in the form of an id.
type madeServices struct {
	base string
	apis.ServiceSet
}

// File is the objects of one concern as a YAML stream.
type File struct {
	Concern string
	YAML    []byte
}

// Options are how jobs are rendered. The zero value is tegen's own generators, for callers that need the jobs later.
type Options struct {
	Generators generators.Set
	// Only names the generators to run; none means all. With a part of the generators references are not checked, since
	// they may lead to the other part.
	Only []string
	// Printed is for callers that print and need nothing else: the bundles have no jobs, and the list of jobs has none
	// afterwards. Thousands of them are as large as their YAML.
	Printed bool
}

// maxOutput bounds the YAML of all bundles, which is held in memory: 8 MiB of jobs may have millions of pods.
const maxOutput = 256 << 20

func (b *Bundle) size() (bytes int64) {
	for _, f := range b.Files {
		bytes += int64(len(f.YAML))
	}
	return bytes
}

// Jobs renders jobs on all cores, in their order.
func Jobs(jobs []*job.Job, o Options) ([]Bundle, error) {
	bundles := make([]Bundle, len(jobs))
	errs := make([]error, len(jobs))
	var next, size atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(jobs); i = int(next.Add(1)) - 1 {
				if size.Load() > maxOutput {
					return
				}
				bundles[i], errs[i] = guardedBundle(jobs[i], o)
				size.Add(bundles[i].size())
				if o.Printed {
					bundles[i].Job, bundles[i].more, jobs[i] = nil, nil, nil
				}
			}
		})
	}
	wg.Wait()
	if size.Load() > maxOutput {
		return nil, fmt.Errorf("the objects of these jobs exceed the limit of %d MiB: render fewer jobs at a time",
			maxOutput>>20)
	}
	if err := errors.Join(append(errs, duplicates(bundles))...); err != nil {
		return nil, err
	}
	return bundles, nil
}

// buffers are for a file's text while it grows.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// guardedBundle is bundle that turns a panic, which would end the whole program, into an error about the one job.
func guardedBundle(j *job.Job, o Options) (b Bundle, err error) {
	defer func() {
		if r := recover(); r != nil {
			f := finding.Finding{
				Rule: finding.InternalRule, Level: finding.Error,
				Message: fmt.Sprintf("job %q: %s", j.Metadata.Name, finding.Internal(r)),
			}
			b, err = Bundle{Summary: &schema.Summary{Name: j.Metadata.Name}}, finding.List{f.At(j.Position())}
		}
	}()
	return bundle(j, o)
}

func bundle(j *job.Job, o Options) (Bundle, error) {
	b := Bundle{Job: j, Summary: schema.Summarize(j)}
	concerns := generators.Generate(j)
	all, err := b.encode(concerns, o.Only) // before other code has the job, whose memory they share
	if err != nil {
		return b, err
	}
	if b.more, err = added(j, o.Generators.More(), concerns, o.Only); err != nil {
		return b, err
	}
	more, err := b.encode(b.more, nil)
	if err != nil {
		return b, err
	}
	all = append(all, more...)
	if len(o.Only) > 0 { // what the others would render is expected from elsewhere, so references do not resolve
		return b, located(Violations(all, j.Policy()), j.Position())
	}
	return b, Judge(j.Position(), all, j.Policy())
}

// encode makes a file of each selected concern, and returns their objects.
func (b *Bundle) encode(concerns []generators.Concern, only []string) (all []k8sruntime.Object, err error) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	for _, concern := range concerns {
		if len(only) > 0 && !slices.Contains(only, concern.Name) {
			b.Left = append(b.Left, concern)
			continue
		}
		text := (*buffer)[:0]
		for i, obj := range concern.Objects {
			if i > 0 {
				text = append(text, manifest.Separator...)
			}
			if text, err = manifest.Append(text, obj); err != nil {
				return nil, fmt.Errorf("encoding %s: %w", concern.Name, err)
			}
			b.enter(obj)
		}
		*buffer = text
		b.Files = append(b.Files, File{concern.Name, slices.Clone(text)}) // without the room that it grew into
		all = append(all, concern.Objects...)
	}
	return all, nil
}

// enter records an object, what its controller makes, and what it expects of others.
func (b *Bundle) enter(obj k8sruntime.Object) {
	b.ids = append(b.ids, id(obj))
	if w := apis.WorkloadOf(obj); w != nil {
		for _, set := range w.Services() { // which its controller makes
			if base := objectID("Service", w.GetNamespace(), set.Name); set.Numbered {
				b.made = append(b.made, madeServices{base, set})
			} else {
				b.ids = append(b.ids, base)
			}
		}
	}
	if m, err := meta.Accessor(obj); err == nil && m.GetAnnotations()[names.Expects] != "" {
		b.Expects = append(b.Expects, strings.Split(m.GetAnnotations()[names.Expects], ",")...)
	}
}

// Join adds what other generators made of the same job.
func (b *Bundle) Join(other Bundle) {
	b.Files, b.Expects = append(b.Files, other.Files...), append(b.Expects, other.Expects...)
	b.ids, b.made = append(b.ids, other.ids...), append(b.made, other.made...)
	b.more = append(b.more, other.more...)
}

// IDs are the objects of a bundle, and those that controllers make of them, as "Kind namespace/name".
func (b *Bundle) IDs() []string { return b.ids }

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
