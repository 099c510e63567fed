package tree

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

// A workload is what runs pods: the objects in whose metadata tegen records which version rendered them, of which
// input. A new version of tegen that renders another workload of the same input would restart it: a reconciler deletes
// the Job of the old name. So a folder stays as it is where its input is the same and the version is another, until
// Place.Upgrade. It is an error where the cause is unclear: the folder records no input, its files are not as tegen
// rendered them, or what changes them after tegen has changed too.

// unknownVersion is recorded for a workload that Place.Keep keeps: its version recorded nothing.
const unknownVersion = "unknown"

// Restart is a job of an earlier render whose workload this version of tegen renders differently.
type Restart struct {
	Job      string // namespace/name
	From, To string // versions of tegen

	why string // the cause is unclear
}

// Why the cause of a change can be unclear.
const (
	unrecorded = "the files record no input, because an older tegen rendered them"
	edited     = "the files are not as tegen rendered them"
	transforms = "a transformer after tegen has changed, or a file that it reads"
)

// workload is what a folder has of one, by object. Without the record, objects are as other versions render them too.
type workload struct {
	version, input string // "" where its objects record none, or do not agree
	objects        map[string]string
	kinds          map[string]bool
	doubt          string // why the cause of a change is unclear, even of the same input
}

// documents are those of a file. Each ends with a line.
func documents(text []byte) [][]byte {
	docs := bytes.Split(text, []byte("\n---\n"))
	for i := range docs[:len(docs)-1] {
		docs[i] = append(slices.Clone(docs[i]), '\n')
	}
	return docs
}

// workloadOf reads the workload of documents: the objects that record an input, and those of kinds. Without any, it is
// the objects with containers: an older tegen rendered them for another target.
func workloadOf(docs [][]byte, kinds map[string]bool) workload {
	w := workloadOfKinds(docs, func(kind string, _ []byte) bool { return kinds[kind] })
	if len(w.objects) == 0 {
		w = workloadOfKinds(docs, func(_ string, doc []byte) bool { return bytes.Contains(doc, []byte("containers:")) })
	}
	return w
}

func workloadOfKinds(docs [][]byte, counts func(kind string, doc []byte) bool) workload {
	w := workload{objects: map[string]string{}, kinds: map[string]bool{}}
	agree := true
	for _, doc := range docs {
		o := objectOf(doc)
		kind := o["apiVersion"] + " " + o["kind"]
		version, input, rest := recorded(doc)
		if input == "" && !counts(kind, doc) || o["kind"] == "" {
			continue
		}
		if len(w.objects) > 0 && (w.version != version || w.input != input) {
			agree = false
		}
		w.version, w.input, w.kinds[kind] = version, input, true
		w.objects[kind+" "+o["namespace"]+"/"+o["name"]] = rest
	}
	if !agree {
		w.version, w.input = "", ""
	}
	return w
}

const (
	annotationsLine = "  annotations:\n"
	versionLine     = "    " + names.Version + ": "
	inputLine       = "    " + names.Input + ": "
)

// recorded reads the record in an object's metadata, and returns the document without it. Both are read line by line,
// as in objectOf.
func recorded(doc []byte) (version, input, rest string) {
	var kept []string
	metadata := false
	for line := range strings.Lines(string(doc)) {
		if !strings.HasPrefix(line, " ") {
			metadata = strings.TrimRight(line, "\n") == "metadata:"
		}
		value, isVersion := strings.CutPrefix(line, versionLine)
		if metadata && isVersion {
			version = strings.Trim(strings.TrimSpace(value), `'"`)
			continue
		}
		value, isInput := strings.CutPrefix(line, inputLine)
		if metadata && isInput {
			input = strings.Trim(strings.TrimSpace(value), `'"`)
			continue
		}
		if n := len(kept); n > 0 && kept[n-1] == annotationsLine && !strings.HasPrefix(line, "   ") {
			kept = kept[:n-1] // it held nothing else
		}
		kept = append(kept, line)
	}
	return version, input, strings.Join(kept, "")
}

// record puts a record into an object's metadata, in the place that the encoder gives it.
func record(doc []byte, version, input string) []byte {
	_, _, text := recorded(doc)
	lines := slices.Collect(strings.Lines(text))
	start := slices.Index(lines, "metadata:\n")
	if start < 0 {
		return doc
	}
	at := slices.Index(lines[start:], annotationsLine)
	added := []string{inputLine + input + "\n", versionLine + version + "\n"}
	end := start + 1
	for end < len(lines) && strings.HasPrefix(lines[end], " ") {
		end++
	}
	if at < 0 || start+at >= end { // the encoder's order: name, namespace, labels, annotations
		return []byte(strings.Join(slices.Insert(lines, end, append([]string{annotationsLine}, added...)...), ""))
	}
	for _, line := range added {
		at := start + at + 1
		for at < len(lines) && strings.HasPrefix(lines[at], "    ") && (lines[at] < line ||
			strings.HasPrefix(lines[at], "     ")) {
			at++
		}
		lines = slices.Insert(lines, at, line)
	}
	return []byte(strings.Join(lines, ""))
}

// decision is what becomes of a job's workload.
type decision int

const (
	replaced  decision = iota // this version's takes its place
	held                      // it stays, with all of the folder
	unclear                   // nobody can tell: an error
	taken                     // it stays, and the present input is recorded
	unchanged                 // it is the same but for the version: nothing is written
)

// decide says what becomes of a workload, and notes a restart.
func (w *writer) decide(job string, was, is workload, same bool) decision {
	restart := Restart{Job: job, From: was.version, To: is.version}
	switch {
	case len(is.objects) == 0 || len(was.objects) == 0:
		return replaced
	case same && was.input == is.input:
		return unchanged
	case maps.Equal(was.objects, is.objects):
		return replaced // and the record with it
	case was.input == "":
		restart.why = unrecorded
	case was.version == is.version: // an author's change, to the job or after tegen
		return replaced
	case was.input == is.input:
		restart.why = was.doubt
	default:
		w.moved = append(w.moved, restart)
		return replaced
	}
	switch {
	case w.Upgrade:
		return replaced
	case restart.why == "":
		w.held = append(w.held, restart)
		return held
	case w.Keep:
		return taken
	}
	w.unclear = append(w.unclear, restart)
	return unclear
}

// upgrade decides about the folder of a job, whose planned files it returns: all, those that are there already, or
// none, if the folder stays as it is.
func (w *writer) upgrade(job string, plan []*file) ([]*file, error) {
	var before, after [][]byte
	texts := map[*file][]byte{}
	same := true
	for _, f := range plan {
		after = append(after, documents(f.content)...)
		if !f.exists {
			same = false
			continue
		}
		texts[f] = f.content
		if !f.same {
			text, err := w.read(f.path)
			if err != nil {
				return nil, err
			}
			texts[f] = text
			_, _, was := recorded(text)
			_, _, is := recorded(f.content)
			same = same && f.content != nil && was == is
		}
		before = append(before, documents(texts[f])...)
	}
	is := workloadOf(after, nil)
	was := workloadOf(before, is.kinds)
	files := map[string][]byte{}
	for f, text := range texts {
		files[filepath.Base(f.path)] = text
	}
	if ok, _ := intact(files); !ok {
		was.doubt = edited
	}
	switch w.decide(job, was, is, same) {
	case held, unchanged:
		for f := range texts {
			w.listed = append(w.listed, f.path)
		}
		return nil, nil
	case taken:
		var kept []*file
		for f, text := range texts {
			docs := documents(text)
			for i, doc := range docs {
				if o := objectOf(doc); was.kinds[o["apiVersion"]+" "+o["kind"]] {
					docs[i] = record(doc, unknownVersion, is.input)
				}
			}
			content := bytes.Join(docs, []byte("---\n"))
			kept = append(kept, &file{path: f.path, content: content, exists: true, same: bytes.Equal(content, text)})
		}
		slices.SortFunc(kept, func(a, b *file) int { return strings.Compare(a.path, b.path) })
		w.reseal(kept)
		return kept, nil
	}
	return plan, nil
}

// refuseUnclear is the error of jobs for which the cause of a change is unclear.
func (w *writer) refuseUnclear() error {
	of := map[string][]string{}
	for _, r := range w.unclear {
		of[r.why] = append(of[r.why], r.Job)
	}
	var errs []error
	for _, why := range slices.Sorted(maps.Keys(of)) {
		errs = append(errs, fmt.Errorf("%s: tegen %s renders another workload for %s, and the cause can be the job or "+
			"tegen: %s. To render the jobs with this version, which restarts them once a cluster has the change, use "+
			"--upgrade. To keep the files and record the present input, use --keep", w.Dir, w.unclear[0].To,
			strings.Join(of[why], ", "), why))
	}
	return errors.Join(errs...)
}

// upgradeRest does the same for the objects of jobs in the folder of an overlay, where transformers behind tegen have
// them: job by job, since they are in one file.
func (w *writer) upgradeRest() error {
	const path = RestFolder + "/resources.yaml"
	if w.origin(filepath.FromSlash(path)) == "" {
		return nil
	}
	text, err := w.read(filepath.FromSlash(path))
	if err != nil {
		return err
	}
	kustomization, err := w.read(filepath.Join(RestFolder, kustomizationFile))
	if err != nil {
		return err
	}
	doubt := ""
	ok, behind := intact(map[string][]byte{"resources.yaml": text, kustomizationFile: kustomization})
	switch {
	case !ok:
		doubt = edited
	case behind != w.Behind:
		doubt = transforms
	}
	_, text, _ = bytes.Cut(text, []byte("\n")) // the signature
	before, after := byJob(documents(text)), byJob(documents(w.Rest))
	var docs [][]byte
	done := map[string]bool{}
	for _, doc := range documents(w.Rest) {
		job := jobOf(doc)
		if done[job] {
			continue
		}
		if job == "" {
			docs = append(docs, doc)
			continue
		}
		done[job] = true
		is := workloadOf(after[job], nil)
		was := workloadOf(before[job], is.kinds)
		was.doubt = doubt
		same := slices.EqualFunc(before[job], after[job], func(a, b []byte) bool {
			_, _, was := recorded(a)
			_, _, is := recorded(b)
			return was == is
		})
		switch w.decide(job, was, is, same) {
		case held, unchanged:
			docs = append(docs, before[job]...)
		case taken:
			for _, doc := range before[job] {
				if o := objectOf(doc); was.kinds[o["apiVersion"]+" "+o["kind"]] {
					doc = record(doc, unknownVersion, is.input)
				}
				docs = append(docs, doc)
			}
		default:
			docs = append(docs, after[job]...)
		}
	}
	if len(done) > 0 {
		w.Rest = bytes.Join(docs, []byte("---\n"))
	}
	return nil
}

func byJob(docs [][]byte) map[string][][]byte {
	of := map[string][][]byte{}
	for _, doc := range docs {
		if job := jobOf(doc); job != "" {
			of[job] = append(of[job], doc)
		}
	}
	return of
}

// jobOf is the job that an object was rendered for, by its labels, "" for what tegen did not render.
func jobOf(doc []byte) string {
	found := map[string]string{}
	metadata := false
	for line := range strings.Lines(string(doc)) {
		if !strings.HasPrefix(line, " ") {
			metadata = strings.TrimRight(line, "\n") == "metadata:"
		}
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\n"), ": "); ok && metadata {
			found[key] = strings.Trim(value, `'"`)
		}
	}
	name := names.JobOf(func(key string) string { return found["    "+key] })
	if name == "" || found["    "+names.LabelManagedBy] != names.ManagedBy {
		return ""
	}
	namespace := found["  namespace"]
	if namespace == "" {
		namespace = found["    "+names.LabelNamespace]
	}
	return namespace + "/" + name
}
