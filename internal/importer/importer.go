// Package importer takes over what others wrote: manifests of training jobs go in, the TrainingJobs that render to the
// same objects come out, with a note for whatever they do not say. It trusts no reader: each job is rendered, the
// result is compared with what was read, field by field, and every field that differs is a note, unless it was
// translated into another form.
//
// A file's name begins with its part of the way: input_ reads manifests into objects, kind_ makes a draft of one kind
// of object each (kinds.go lists them), read_ has what several kinds share, compare_ holds objects against what is
// rendered, and job_ finishes the job: what it may hold, its podTemplate, what can be left out, its text.
package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// Result is what came out of manifests.
type Result struct {
	YAML    []byte // TrainingJobs, in the order of the input
	Jobs    int
	Notes   []Note
	Invalid bool // a job was refused, or does not load as it is, or a key of the input has two values
	Lossy   bool // something of the input is neither in the jobs nor in what they render
}

// Note is one thing that a person should know, on one line.
type Note struct {
	File   string
	Line   int
	Chart  string // file of the Helm chart that the object is made of, where its document says so
	Object string // Kind namespace/name
	Field  string // empty for the whole object
	Value  string // what was there, shortened
	Verdict
	Why string
}

// Verdict is what became of it.
type Verdict string

// The verdicts.
const (
	Dropped    Verdict = "dropped"    // neither the job nor what it renders has it
	Changed    Verdict = "changed"    // the job means something else here
	Error      Verdict = "error"      // the source was wrong: it was corrected, or must be
	Refused    Verdict = "refused"    // the source was right, but the schema refuses it: the job must be corrected
	Translated Verdict = "translated" // its meaning is kept in another form
	Added      Verdict = "added"      // the job renders more than the source had
	Beside     Verdict = "beside"     // not part of the job: it stays a manifest of its own
	Warning    Verdict = "warning"    // kept as it was, and worth a second look
	Unread     Verdict = "unread"     // could not be read
)

func (n Note) String() string {
	parts := []string{n.at()}
	for _, part := range []string{n.Object, n.Field, n.Value} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(append(parts, string(n.Verdict), n.Why), ": ")
}

// Finding is the note as what machines read too.
func (n Note) Finding() finding.Finding {
	f := finding.Finding{
		Rule: "import/" + string(n.Verdict), Level: finding.Note, File: n.File, Line: n.Line, Object: n.Object,
		Field: n.Field, Message: n.Why, Text: n.String(),
	}
	switch n.Verdict {
	case Error, Refused:
		f.Level = finding.Error
	case Dropped, Changed, Unread:
		f.Level = finding.Warning
	}
	if n.Value != "" {
		f.Message = n.Value + ": " + f.Message
	}
	if n.Chart != "" {
		f.Message += " (" + n.Chart + ")"
	}
	return f
}

func (n Note) at() string {
	at := n.File
	if n.Line > 0 {
		at = fmt.Sprintf("%s:%d", n.File, n.Line)
	}
	if n.Chart != "" {
		at += " (" + n.Chart + ")"
	}
	return at
}

// Jobs reads every training job that the sources hold.
func Jobs(sources []schema.Source) Result {
	s := &stream{}
	for _, src := range sources {
		s.read(src)
	}
	if note := tooMany(len(s.objects), maxObjects, "objects", sources); note != nil {
		return Result{Notes: append(s.notes, *note), Invalid: true}
	}
	drafts := s.drafts()
	if note := tooMany(len(drafts), maxJobs, "training jobs", sources); note != nil {
		return Result{Notes: append(s.notes, *note), Invalid: true}
	}
	for _, d := range drafts {
		d.finalize()
	}
	out := Result{Jobs: len(drafts), Notes: s.notes}
	for i, d := range drafts {
		if i > 0 {
			out.YAML = append(out.YAML, manifest.Separator...)
		}
		out.YAML = append(out.YAML, d.yaml...)
		out.Notes = append(out.Notes, d.notes...)
	}
	wrong := checkTogether(drafts)
	out.Notes = append(out.Notes, wrong...)
	out.Invalid = s.invalid || len(wrong) > 0 || slices.ContainsFunc(drafts,
		func(d *draft) bool { return d.incomplete || len(d.invalid) > 0 })
	out.Notes = append(out.Notes, s.remaining(drafts)...)
	out.Notes = append(out.Notes, s.staleNames(drafts)...)
	sortNotes(&out)
	return out
}

// Limits of one import. A job takes some 40 ms, because import renders it again for each field that it leaves out.
const (
	maxJobs    = 200
	maxObjects = 20_000
)

// tooMany is the note about more of something than one import takes, nil if there are not.
func tooMany(n, limit int, what string, sources []schema.Source) *Note {
	if n <= limit {
		return nil
	}
	return &Note{
		File: sources[0].Name, Line: 1, Verdict: Error,
		Why: fmt.Sprintf("%d %s, more than the limit of %d: import them in parts", n, what, limit),
	}
}

// checkTogether holds the finished jobs against the schema, and renders them, as a person's next command will.
func checkTogether(drafts []*draft) (notes []Note) {
	sources := make([]schema.Source, len(drafts))
	for i, d := range drafts {
		sources[i] = schema.Source{Name: fmt.Sprint(i), Data: d.yaml}
	}
	if len(sources) == 0 {
		return nil
	}
	jobs, err := schema.Load(sources)
	for _, e := range schemaErrors(err) {
		i, _ := strconv.Atoi(e.File)
		if d := drafts[i]; !d.recorded[e.Path+e.Msg] {
			e.Msg = located(e, d, drafts[:i])
			notes = append(notes, d.schemaNotes(e)...)
		}
	}
	if err == nil {
		notes = append(notes, renderErrors(jobs, drafts)...)
	}
	return notes
}

// renderErrors reports why jobs that load do not render: a reference in one of them does not resolve.
func renderErrors(jobs []*job.Job, drafts []*draft) (notes []Note) {
	_, err := render.Jobs(jobs, render.Options{})
	if err == nil {
		return nil
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		d, why := drafts[0], line
		if file, rest, ok := strings.Cut(line, ":"); ok {
			if i, err := strconv.Atoi(file); err == nil && i < len(drafts) {
				d, why = drafts[i], position().ReplaceAllString(rest, "")
			}
		}
		notes = append(notes, d.workload[0].note(Refused, "what it renders does not hold together: %s", why))
	}
	return notes
}

var position = lazy.Regexp(`^[0-9]+:[0-9]+: `)

// located says of which job a name is already by its place in the input: the schema knows its place in the output.
func located(e schema.Error, d *draft, before []*draft) string {
	for _, other := range before {
		if e.Rule == "duplicate" && e.Path == "metadata.name" && other.name() == d.name() &&
			sameNamespace(other.namespace(), d.namespace()) {
			n := other.workload[0].view().at("metadata", "name").note(Error, "")
			return fmt.Sprintf("%q is the name of the job at %s already", d.name(), n.at())
		}
	}
	return e.Msg
}

// sortNotes puts the notes in the order of the input, each once.
func sortNotes(out *Result) {
	slices.SortStableFunc(out.Notes, func(a, b Note) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Object, b.Object),
			strings.Compare(a.Field, b.Field))
	})
	out.Notes = slices.Compact(out.Notes)
	for _, n := range out.Notes {
		out.Lossy = out.Lossy || slices.Contains([]Verdict{Dropped, Changed, Unread}, n.Verdict)
	}
}
