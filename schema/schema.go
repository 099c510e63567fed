// Package schema turns what authors write into what generators read: bytes in, checked and completed *Job out, or every
// mistake with its position. The CUE files hold the contract (job.cue: shapes, defaults.cue: defaults, environment.cue:
// an overlay's facts) and rules.go what must hold between fields. After Load nothing can be wrong with a job, so
// generators return no error. The package reads no files and starts nothing.
package schema

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/tegen-dev/tegen/internal/contract"
)

// Load reads every document of every source: TrainingJobs, and at most one Environment, which is merged into each of
// them. The jobs come back sorted by namespace and name, whatever the order of the input. The error is an Errors
// with every mistake of all documents; sources without any document of ours are one too.
func Load(sources []Source) ([]*Job, error) {
	docs, errs := readAll(sources)
	var jobs []*node
	var unread []Errors
	var env *Environment
	for _, d := range docs {
		errs = append(errs, d.errs...)
		if d.root == nil {
			continue
		}
		switch kind, err := kindOf(d.root); {
		case err != nil:
			errs = append(errs, *err)
		case kind == contract.KindTrainingJob:
			jobs, unread = append(jobs, d.root), append(unread, d.errs)
		case env != nil:
			errs = append(errs, d.root.fail("", "duplicate", "a second Environment; the first stands at %s:%d", env.root.at.file, env.root.at.line))
		default:
			e, mistakes := loadEnvironment(d.root)
			env, errs = e, append(errs, mistakes...)
		}
	}
	if len(jobs) == 0 && env == nil && len(errs) == 0 && len(sources) > 0 {
		errs = Errors{{File: sources[0].Name, Line: 1, Col: 1, Rule: "empty", Msg: "no TrainingJob is in it"}}
	}
	out := make([]*Job, len(jobs))
	mistakes := make([]Errors, len(jobs))
	parallel(len(jobs), func(i int) { out[i], mistakes[i] = loadJob(jobs[i], env, unread[i]) })
	for _, m := range mistakes {
		errs = append(errs, m...)
	}
	errs = append(errs, clashes(out, jobs)...)
	if len(errs) > 0 {
		errs.sort()
		return nil, errs
	}
	slices.SortStableFunc(out, func(a, b *Job) int {
		return strings.Compare(a.Metadata.Namespace+"/"+a.Metadata.Name, b.Metadata.Namespace+"/"+b.Metadata.Name)
	})
	return out, nil
}

// readAll parses the documents of all sources, in their order.
func readAll(sources []Source) ([]document, Errors) {
	var texts []Source
	var lines []int
	var errs Errors
	for _, src := range sources {
		t, l, e := split(src)
		texts, lines, errs = append(texts, t...), append(lines, l...), append(errs, e...)
	}
	docs := make([]document, len(texts))
	parallel(len(texts), func(i int) { docs[i] = parse(texts[i], lines[i]) })
	return docs, errs
}

// parallel calls f for each index below n, on all cores.
func parallel(n int, f func(i int)) {
	const batch = 16 // jobs are small: hand out several at a time
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := 0
	for range min(runtime.GOMAXPROCS(0), (n+batch-1)/batch) {
		wg.Go(func() {
			for {
				mu.Lock()
				from := next
				next += batch
				mu.Unlock()
				if from >= n {
					return
				}
				for i := from; i < min(from+batch, n); i++ {
					f(i)
				}
			}
		})
	}
	wg.Wait()
}

// kindOf says what a document is, by the two fields that every object has.
func kindOf(root *node) (string, *Error) {
	wrong := func(path, format string, args ...any) *Error {
		e := root.fail(path, "kind", format, args...)
		return &e
	}
	if root.kind != mapKind {
		return "", wrong("", "must be a mapping with apiVersion, kind, metadata and spec, not %s", kindWords[root.kind])
	}
	version, kind := root.field("apiVersion"), root.field("kind")
	kinds := []string{contract.KindTrainingJob, contract.KindEnvironment}
	switch {
	case version == nil:
		return "", wrong("apiVersion", "required field is missing: %s", contract.APIVersion)
	case version.text != contract.APIVersion:
		return "", wrong("apiVersion", "must be %s, not %s", contract.APIVersion, version.show())
	case kind == nil:
		return "", wrong("kind", "required field is missing: one of %s", strings.Join(kinds, ", "))
	case !slices.Contains(kinds, kind.text):
		return "", wrong("kind", "must be one of %s, not %s%s", strings.Join(kinds, ", "), kind.show(), suggest(kind.text, kinds))
	}
	return kind.text, nil
}

func (n *node) fail(path, rule, format string, args ...any) Error {
	at := n.find(path)
	return Error{File: at.file, Line: at.line, Col: at.col, Path: path, Rule: rule, Msg: fmt.Sprintf(format, args...)}
}

func loadEnvironment(root *node) (*Environment, Errors) {
	var c checker
	s := environmentShape()
	c.check(root, s, nil, root.at)
	env := &Environment{root: root}
	if len(c.errs) > 0 {
		return &Environment{root: &node{kind: mapKind, at: root.at, fields: []entry{{key: "spec", value: &node{kind: mapKind}}}}}, c.errs
	}
	if storage := root.field("spec").field("storage"); storage != nil {
		completeIn(storage, s.field("spec").shape.field("storage").shape, root)
	}
	return env, decode(root, env)
}

// loadJob takes a job's tree through check, merge, defaults, decoding and the rules.
// It goes on as far as it can: a mistake in one part of a job hides no mistake in another. unread is what the reader
// found in the document already.
func loadJob(root *node, env *Environment, unread Errors) (*Job, Errors) {
	c := checker{}
	s := jobShape()
	if env != nil { // before the check: an environment may give what is required
		if spec := root.field("spec"); spec != nil && spec.kind == mapKind && root.field("metadata") != nil {
			env.mergeInto(root, s)
		}
	}
	c.check(root, s, nil, root.at)
	unsound := sections(append(unread, c.errs...), s.field("spec").shape.names())
	if unsound["spec"] || unsound["metadata"] && root.field("metadata") == nil {
		return nil, c.errs
	}
	root.without(c.bad)
	complete(root, s)
	job := &Job{}
	if errs := decode(root, job); errs != nil {
		if len(c.errs) == 0 {
			return nil, errs
		}
		return nil, c.errs
	}
	job.at = root.at
	tidy(job)
	if env != nil {
		env.apply(job)
		c.errs = append(c.errs, env.checkImages(job, s)...)
	}
	return job, append(c.errs, check(job, root, unsound)...)
}

// sections names the parts of a job in which mistakes were found, so that no rule about them is asked: the fields of
// spec, or spec or metadata themselves. A field that nobody knows is most likely one of spec's, mistyped.
func sections(errs Errors, known []string) map[string]bool {
	out := map[string]bool{}
	for _, e := range errs {
		names := strings.FieldsFunc(e.Path, func(r rune) bool { return r == '.' || r == '[' })
		switch {
		case len(names) == 0:
			out["spec"] = true
		case len(names) > 1 && names[0] == "spec":
			out[names[1]] = true
			if e.Rule == "unknown-field" {
				out[nearest(names[1], known)] = true
			}
		default:
			out[names[0]] = true
		}
	}
	return out
}

// decode fills a struct from a tree that was checked. What still fails here is a gap in the schema, reported as such
// at the document's start rather than as a crash.
func decode(root *node, into any) Errors {
	if err := json.Unmarshal(root.appendJSON(nil), into); err != nil {
		return Errors{root.fail("", "decode", "cannot be read: %v", err)}
	}
	return nil
}

// tidy drops what tools leave on a job for themselves, and gives volumes without a source the default one.
func tidy(job *Job) {
	for key := range job.Metadata.Annotations {
		for _, domain := range []string{"config.kubernetes.io/", "internal.config.kubernetes.io/", "config.k8s.io/", "kustomize.config.k8s.io/", "kubectl.kubernetes.io/"} {
			if strings.HasPrefix(key, domain) {
				delete(job.Metadata.Annotations, key)
			}
		}
	}
	for i := range job.Spec.Storage {
		if v := &job.Spec.Storage[i]; v.VolumeSource == (VolumeSource{}) {
			v.Dynamic = defaultVolume()
		}
	}
}

// defaultVolume is a claim with every default of defaults.cue.
func defaultVolume() *Dynamic {
	n := &node{kind: mapKind}
	s := jobShape().field("spec").shape.field("storage").shape.elem.field("dynamic").shape
	completeIn(n, s, n)
	d := &Dynamic{}
	if errs := decode(n, d); errs != nil {
		panic(errs) // the schema's own defaults; TestDefaults decodes them
	}
	return d
}
