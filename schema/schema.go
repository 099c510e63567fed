// Package schema turns what authors write into what generators read.
//
// Input: the bytes of TrainingJobs and at most one Environment.
// Output: a checked and completed *[Job] of each, or every mistake with its position.
// Invariant: after [Load] nothing can be wrong with a job, so generators return no error.
//
// job.cue has the shapes, defaults.cue the defaults, environment.cue an overlay's facts, complete.go the defaults that
// depend on other fields. Package rule says what must hold between fields, and note what is worth knowing. Package
// structural reads documents and checks them by the CUE files. The package reads no files and starts nothing.
package schema

import (
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/environment"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/rule"
)

// Load reads every document of every source: TrainingJobs, and at most one Environment, which is merged into each of
// them and which its source has to name. The jobs come back sorted by namespace and name, whatever the order of the
// input. The error is an Errors with every mistake of all documents; sources without any document of ours are one too.
func Load(sources []Source, opts ...Option) ([]*job.Job, error) { return loadFor(sources, opts) }

// LoadForGit is Load of jobs that a reconciler is to apply: gitops is true where neither a job nor the Environment says
// otherwise.
func LoadForGit(sources []Source, opts ...Option) ([]*job.Job, error) {
	return loadFor(sources, append(slices.Clone(opts), func(o *loading) { o.git = true }))
}

func loadFor(sources []Source, opts []Option) ([]*job.Job, error) {
	var o loading
	for _, option := range opts {
		option(&o)
	}
	docs, errs := readAll(sources)
	var jobs []*structural.Node
	var unread []Errors
	var env *environment.Environment
	for _, d := range docs {
		errs = append(errs, d.Errs...)
		if d.Root == nil {
			continue
		}
		kind, mistakes := kindOf(d.Root)
		if mistakes == nil {
			errs = append(errs, misplaced(d.Root, kind, d.environment)...) // and goes on: jobs may need it
		}
		switch {
		case mistakes != nil:
			errs = append(errs, mistakes...)
		case kind == names.KindTrainingJob:
			jobs, unread = append(jobs, d.Root), append(unread, d.Errs)
		case env != nil:
			errs = append(errs,
				d.Root.Errorf("", "duplicate",
					"a second Environment, and only one can apply: leave one out; the first is at %s:%d",
					env.Root.At.File,
					env.Root.At.Line))
		default:
			failed := guarded(d.Root.At, titleOf(d.Root), func() { env, mistakes = loadEnvironment(d.Root, d.Errs) })
			errs = append(append(errs, mistakes...), failed...)
		}
	}
	if len(jobs) == 0 && env == nil && len(errs) == 0 && len(sources) > 0 {
		errs = Errors{{File: sources[0].Name, Line: 1, Col: 1, Rule: "empty", Msg: "no TrainingJob is in it"}}
	}
	if env == nil && len(errs) == 0 {
		errs = append(errs, lacking(sources)...)
	}
	if o.fence != nil && env != nil {
		*o.fence = env.Fence
	}
	if large := tooMuch(jobs, env); large != nil {
		return nil, append(errs, large...)
	}
	out := make([]rule.Loaded, len(jobs))
	parallel(len(jobs), func(i int) {
		load := func() { out[i] = loadJob(jobs[i], env, unread[i], &o) }
		if errs := guarded(jobs[i].At, titleOf(jobs[i]), load); errs != nil {
			out[i] = rule.Loaded{Errs: errs, Invalid: part.Set{}}
		}
	})
	for _, l := range out {
		errs = append(errs, l.Errs...)
	}
	errs = append(errs, rule.Clashes(out, jobs)...)
	errs = append(errs, rule.SharedGangs(out, jobs)...)
	errs = append(errs, rule.GangGroups(out, jobs)...)
	errs = append(errs, rule.DlroverNames(out, jobs)...)
	errs = append(errs, rule.SharedPorts(out, jobs)...)
	errs = append(errs, sharedNamespaces(out, jobs)...)
	if len(errs) > 0 {
		errs.Tidy()
		return nil, errs
	}
	sorted := make([]*job.Job, len(out))
	for i, l := range out {
		sorted[i] = l.Job
	}
	slices.SortStableFunc(sorted, func(a, b *job.Job) int {
		return strings.Compare(a.Metadata.Namespace+"/"+a.Metadata.Name, b.Metadata.Namespace+"/"+b.Metadata.Name)
	})
	return sorted, nil
}

// document is one of a source that names an Environment, or none.
type document struct {
	structural.Document
	environment string
}

// readAll parses the documents of all sources, in their order.
func readAll(sources []Source) ([]document, Errors) {
	var texts []yamldoc.Document
	var named []string
	var errs Errors
	for _, src := range sources {
		t, e := structural.Split(src)
		texts, errs = append(texts, t...), append(errs, e...)
		named = append(named, slices.Repeat([]string{src.Environment}, len(t))...)
	}
	docs := make([]document, len(texts))
	parallel(len(texts), func(i int) {
		at := structural.Position{File: texts[i].Stream, Line: texts[i].Line, Col: 1}
		failed := guarded(at, "document", func() { docs[i] = document{structural.Parse(texts[i]), named[i]} })
		docs[i].Errs = append(docs[i].Errs, failed...)
	})
	return docs, errs
}

// guarded calls f about a document. A panic, which would end the whole program, becomes a mistake of this document, so
// that all others are checked.
func guarded(at structural.Position, title string, f func()) (errs Errors) {
	defer func() {
		if r := recover(); r != nil {
			errs = Errors{at.Errorf("", "internal", "%s: %s", title, finding.Internal(r))}
		}
	}()
	f()
	return nil
}

// titleOf names a document in a message: job "a".
func titleOf(root *structural.Node) string {
	title := "job"
	if kind := root.Field("kind"); kind != nil && kind.Text == names.KindEnvironment {
		title = "environment"
	}
	if name := root.Below("metadata", "name"); name != nil {
		title += " " + strconv.Quote(name.Text)
	}
	return title
}

// parallel calls f for each index below n, on all cores.
func parallel(n int, f func(i int)) {
	const batch = 16 // jobs are small: hand out several at a time
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := 0
	work := func() {
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
	}
	for range min(runtime.GOMAXPROCS(0), (n+batch-1)/batch) - 1 {
		wg.Go(work)
	}
	work() // here too: a new goroutine's stack would have to grow for every single job
	wg.Wait()
}

func loadEnvironment(root *structural.Node, unread Errors) (*environment.Environment, Errors) {
	c := newChecker(names.KindEnvironment)
	s := definition.Environment()
	c.Check(root, s, nil, root.At)
	root.Without(c.Bad)
	env := &environment.Environment{
		Root: root, Written: writtenSpec(root), Invalid: part.Set{}, Reported: map[structural.Position]bool{},
	}
	if spec := root.Field("spec"); spec == nil || spec.Kind != yamldoc.Map {
		root.Add("spec", structural.Position{}, &structural.Node{Kind: yamldoc.Map})
	}
	if storage := root.Field("spec").Field("storage"); storage != nil && storage.Kind == yamldoc.Map {
		structural.CompleteIn(storage, s.Field("spec").Schema.Field("storage").Schema, root)
	}
	// what jobs would have got from a part that is broken, they do not lack
	for _, e := range append(unread, c.Errs...) {
		reach(env.Invalid, e.Path)
		env.Reported[e.At()] = true
	}
	if errs := decode(root, env); errs != nil && len(env.Reported) == 0 {
		return env, errs
	}
	if errs := append(c.Errs, env.CheckLevels()...); len(errs) > 0 {
		return env, errs
	}
	return env, env.SetFence()
}

// loadJob takes a job's tree through check, merge, defaults, decoding and the rules. It goes on as far as it can: a
// mistake in one part of a job hides no mistake in another. unread is what the reader found in the document already.
func loadJob(root *structural.Node, env *environment.Environment, unread Errors, o *loading) rule.Loaded {
	c := newChecker(names.KindTrainingJob)
	s := definition.Job()
	input := inputOf(root, env)
	asked := askedOf(root, env)
	var machine *job.Machine
	var again Errors
	if spec := root.Field("spec"); spec != nil && spec.Kind == yamldoc.Map {
		noneBeside(spec)
		if env != nil {
			again = env.Conflicts(root)
		}
		machine = env.Furnish(spec)
		if env != nil { // before the check: it may give what is required
			env.MergeInto(root, s)
			noneBeside(spec) // with an environment's own words
		}
	}
	c.Check(root, s, nil, root.At)
	invalid := invalidParts(append(unread, c.Errs...), s.Field("spec").Schema)
	if env != nil && len(env.Reported) > 0 {
		maps.Copy(invalid, env.Invalid)
		c.Errs = slices.DeleteFunc(c.Errs, func(e Error) bool {
			return e.Rule == "required" && strings.HasPrefix(e.Path, "spec.") || env.Reported[e.At()]
		})
	}
	derive(invalid, root)
	if invalid["spec"] {
		return rule.Loaded{Errs: c.Errs, Invalid: invalid}
	}
	texts := rule.Texts(root, c.Bad) // while every item has its place
	secret := secretNotes(root, env)
	c.Errs = append(c.Errs, texts...)
	root.Without(c.Bad)
	asked.GitOps = root.IsSet("spec.gitops")
	asked.Fabric = root.IsSet("spec.network.fabric")
	asked.Volumes(root)
	j := &job.Job{Origin: job.Origin{Input: input, Asked: asked, Machine: machine, Secrets: secret}}
	if errs := decodeCompleted(root, s, j); errs != nil {
		if len(c.Errs)+len(unread) == 0 {
			return rule.Loaded{Errs: errs, Invalid: invalid}
		}
		return rule.Loaded{Errs: c.Errs, Invalid: invalid}
	}
	j.Origin.At = root.At
	if !asked.GitOps {
		j.Spec.GitOps = o.git
	}
	tidy(j)
	if env != nil {
		env.Apply(j)
	}
	complete(j, root, env)
	if env != nil {
		c.Errs = append(c.Errs, env.CheckImages(j, s, invalid)...)
	}
	errs := append(c.Errs, rule.Validate(j, root, invalid)...)
	if j.Origin.Policy = o.policy; env != nil {
		j.Origin.Fence = env.Fence
	}
	if len(errs)+len(unread) == 0 { // a job with mistakes is not complete
		errs = o.judge(j, root, again)
	}
	return rule.Loaded{Job: j, Errs: errs, Invalid: invalid}
}

// invalidParts are those in which mistakes were found. A field that nobody knows is most likely one of its neighbours,
// mistyped, or one that stands elsewhere.
func invalidParts(errs Errors, spec *structural.Schema) part.Set {
	out := part.Set{}
	for _, e := range errs {
		if e.Readable {
			continue
		}
		path, isSpec := strings.CutPrefix(e.Path, "spec.")
		path, _, _ = strings.Cut(path, "[") // of a list, all of it
		names := strings.Split(path, ".")
		switch {
		case !isSpec && e.Rule == "unknown-field":
			out[spelling.Nearest(names[0], []string{"metadata", "spec"})] = true
		case !isSpec && names[0] == "":
			out["spec"] = true
		case !isSpec:
			out[names[0]] = true
		case e.Rule == "unknown-field":
			guess(out, names, spec)
		default:
			out[strings.Join(names[:min(len(names), 2)], ".")] = true
		}
	}
	return out
}

// guess adds what an unknown field may have been meant to be.
func guess(p part.Set, names []string, spec *structural.Schema) {
	if len(names) > 1 {
		meant := ""
		if f := spec.Field(names[0]); f != nil && len(names) == 2 {
			meant = spelling.Nearest(names[1], f.Schema.Names())
		}
		if meant == "" {
			p[names[0]] = true
		} else {
			p[names[0]+"."+meant] = true
		}
		return
	}
	p[spelling.Nearest(names[0], spec.Names())] = true
	words := func(r rune) bool { return strings.ContainsRune(".,: ", r) }
	for _, field := range []string{elsewhere(names[0]), foreign("spec."+names[0], names[0])} {
		if path := strings.FieldsFunc(field, words); len(path) > 1 {
			p[strings.Join(path[1:min(len(path), 3)], ".")] = true
		}
	}
}

// decode fills a struct from a tree that was checked. What still fails here is a gap in the schema, reported as such
// at the document's start rather than as a crash.
func decode(root *structural.Node, into any) Errors {
	if err := root.Decode(into); err != nil {
		return Errors{root.Errorf("", "decode", "cannot be read: %v", err)}
	}
	return nil
}

// decodeCompleted is decode of a tree that lacks its defaults.
func decodeCompleted(root *structural.Node, s *structural.Schema, into any) Errors {
	if err := root.DecodeCompleted(s, into); err != nil {
		return Errors{root.Errorf("", "decode", "cannot be read: %v", err)}
	}
	return nil
}

// tidy drops what tools leave on a job for themselves.
func tidy(j *job.Job) {
	for key := range j.Metadata.Annotations {
		if ofTool(key) {
			delete(j.Metadata.Annotations, key)
		}
	}
}

// ofTool says whether an annotation is one that tools leave for themselves.
func ofTool(key string) bool {
	return slices.ContainsFunc([]string{
		"config.kubernetes.io/", "internal.config.kubernetes.io/", "config.k8s.io/",
		"kustomize.config.k8s.io/", "kubectl.kubernetes.io/",
	}, func(domain string) bool { return strings.HasPrefix(key, domain) })
}
