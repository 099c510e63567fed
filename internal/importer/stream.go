package importer

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
)

// stream is all objects of the input.
type stream struct {
	objects []*object
	notes   []Note
}

func (s *stream) read(src schema.Source) {
	found, errs := manifest.ReadLoosely(src.Name, src.Data)
	for _, err := range errs {
		file, why, _ := strings.Cut(err.Error(), ": ")
		if bytes.Contains(src.Data, []byte("{{")) {
			why += "; it has {{ }} of a template in it: import what the template makes"
		}
		s.notes = append(s.notes, Note{File: file, Verdict: Unread, Why: why})
	}
	for _, l := range found {
		o := newObject(l)
		for _, t := range l.Duplicates {
			s.notes = append(s.notes, Note{
				File: l.Stream(), Line: t.Line, Object: o.String(), Field: dotted(t.Path),
				Verdict: Error, Why: "the key stands twice in one mapping, which strict readers refuse: the last one was taken",
			})
		}
		if notes := stringify(o.view()); len(notes) > 0 {
			s.notes = append(s.notes, notes...)
			o = newObject(l) // whose name may be among the mended
		}
		s.secrets(o.view())
		s.objects = append(s.objects, s.convert(o)...)
	}
}

// texts are the mappings and lists of which the API takes nothing but strings.
var texts = map[string]bool{"labels": true, "annotations": true, "nodeSelector": true, "matchLabels": true, "command": true, "args": true}

// textFields are fields that are strings wherever they are, and a variable's value is one too.
var textFields = map[string]bool{"name": true, "namespace": true, "key": true, "image": true, "claimName": true}

// stringify puts quotes where the author forgot them, around what was written: an API server refuses the object, or
// drops the value.
func stringify(v view) (notes []Note) {
	mend := func(child view, put func(string)) {
		switch child.value.(type) {
		case bool, int64, float64:
			note := child.note(Error, "must be a string, and is %s, which an API server refuses or drops: it was put in quotes", kindOfScalar(child.value))
			if text := child.object.Text(child.path); text != "" {
				note.Value = text
			}
			notes = append(notes, note)
			put(note.Value)
		default:
			notes = append(notes, stringify(child)...)
		}
	}
	last := ""
	if len(v.path) > 0 {
		last = v.path[len(v.path)-1]
	}
	switch x := v.value.(type) {
	case tree:
		for _, key := range sortedKeys(x) {
			isEnv := key == "value" && x["name"] != nil && len(v.path) > 1 && v.path[len(v.path)-2] == "env"
			if child := v.at(key); texts[last] || textFields[key] || isEnv {
				mend(child, func(text string) { x[key] = text })
			} else {
				notes = append(notes, stringify(child)...)
			}
		}
	case []any:
		for i, child := range v.items() {
			if texts[last] {
				mend(child, func(text string) { x[i] = text })
			} else {
				notes = append(notes, stringify(child)...)
			}
		}
	}
	return notes
}

func kindOfScalar(value any) string {
	if _, ok := value.(bool); ok {
		return "a boolean"
	}
	return "a number"
}

// find returns an object by group, kind, namespace and name; no namespace is the default one.
func (s *stream) find(group, kind, namespace, name string) *object {
	for _, o := range s.objects {
		if o.is(group, kind) && o.name == name && sameNamespace(o.namespace, namespace) {
			return o
		}
	}
	return nil
}

func sameNamespace(a, b string) bool { return a == b || a+b == "default" }

// readers know the kinds that make the pods of training jobs.
func readers() []reader {
	return []reader{
		{"batch", "Job", readJob},
		{"", "Pod", readPods},
		{"jobset.x-k8s.io", "JobSet", readJobSet},
		{"trainer.kubeflow.org", "TrainJob", readTrainJob},
		{"batch.volcano.sh", "Job", readVCJob},
		{"elastic.pytorch.org", "ElasticJob", readTorchElasticJob},
		{"kubeflow.org", "PyTorchJob", readPyTorchJob},
		{"kubeflow.org", "MXJob", readMXJob},
		{"kubeflow.org", "MPIJob", readMPIJob},
		{"mlkube.io", "MxJob", readMlkube},
		{"mxnet.mlkube.io", "MxJob", readMlkube},
		{"elastic.iml.github.io", "ElasticJob", readDLRoverJob},
	}
}

type reader struct {
	group, kind string
	read        func(*stream, *object) (*draft, error)
}

// errNotTraining says that an object is of a kind that could be a job, and is none.
var errNotTraining = errors.New("not a training job")

// drafts are the training jobs of the stream, in its order.
func (s *stream) drafts() (all []*draft) {
	for _, o := range s.objects {
		i := slices.IndexFunc(readers(), func(r reader) bool { return o.is(r.group, r.kind) })
		if o.draft != nil || o.replacedBy != "" {
			continue
		}
		if i < 0 {
			if unknownJob(o) {
				s.notes = append(s.notes, o.note(Dropped, "this kind is not read"))
				o.reported = true
			}
			continue
		}
		d, err := readers()[i].read(s, o)
		if err != nil {
			if !errors.Is(err, errNotTraining) {
				s.notes = append(s.notes, o.note(Dropped, "%v", err))
				o.reported = true
			}
			continue
		}
		all = append(all, d)
	}
	if len(all) == 0 { // a Job that nothing tells from one that fetches data is taken for training where it is alone
		for _, o := range s.objects {
			if o.is("batch", "Job") && o.draft == nil && !o.reported && !isPrefetch(o) {
				all = append(all, readPlainJob(s, o))
			}
		}
	}
	return all
}

// isPrefetch says whether an object is a Job by which tegen fetches a dataset.
func isPrefetch(o *object) bool {
	component := o.view().at("spec", "template", "metadata", "labels", "app.kubernetes.io/component").text()
	return component == "prefetch" || component == "keygen"
}

// unknownJob says whether an object of a kind without a reader makes pods that train.
func unknownJob(o *object) bool {
	if o.gvk.Group == "kubeflow.org" && strings.HasSuffix(o.gvk.Kind, "Job") {
		return true
	}
	return slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}, o.gvk.Kind) &&
		newProgram(trainingContainer(o.view().at("spec", "template", "spec"))).launcher != ""
}

// remaining says what became of the objects that are no workload themselves.
func (s *stream) remaining(drafts []*draft) (notes []Note) {
	for _, o := range s.objects {
		if o.draft != nil || o.reported {
			continue
		}
		if o.replacedBy != "" {
			notes = append(notes, o.replaced()...)
			continue
		}
		counterpart := rendered(drafts, o)
		if counterpart == nil {
			notes = append(notes, o.note(Beside, "not part of a training job: keep it beside"))
			continue
		}
		for _, g := range gaps(o, counterpart) {
			notes = append(notes, g.note(o, g.reason()))
		}
	}
	return notes
}

// rendered is the object of that kind and name that a job renders, nil for none.
func rendered(drafts []*draft, o *object) tree {
	for _, d := range drafts {
		for _, r := range d.objects {
			v := view{value: r}
			if v.at("kind").text() == o.gvk.Kind && v.at("apiVersion").text() == o.gvk.GroupVersion().String() &&
				v.at("metadata", "name").text() == o.name && sameNamespace(v.at("metadata", "namespace").text(), o.namespace) {
				return r
			}
		}
	}
	return nil
}
