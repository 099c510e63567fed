package importer

import (
	"errors"
	"slices"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
)

// tree is a mapping as it was read.
type tree = map[string]any

// object is one Kubernetes object of the input.
type object struct {
	*manifest.Loose
	gvk             apischema.GroupVersionKind
	namespace, name string
	label           string              // what notes call it, where it was converted from another kind
	places          []place             // where its values stand in the input, where that is elsewhere
	synthetic       bool                // the input names it and does not hold it
	draft           *draft              // the draft whose workload it is part of, nil for none
	reported        bool                // a note says already that it could not be read
	replacedBy      string              // what is rendered in its place, in words, where that is of another kind
	replacement     func() tree         // the same in the object's own form, once it is rendered; nil for nothing
	translated      map[string]struct{} // paths whose meaning a draft keeps in another form, with all below them
}

func newObject(l *manifest.Loose) *object {
	o := &object{Loose: l, translated: map[string]struct{}{}}
	v := o.view()
	o.gvk = apischema.FromAPIVersionAndKind(v.at("apiVersion").text(), v.at("kind").text())
	o.name, o.namespace = v.at("metadata", "name").text(), v.at("metadata", "namespace").text()
	if o.name == "" { // an API server puts letters behind it
		o.name = strings.TrimRight(v.at("metadata", "generateName").text(), "-.")
	}
	o.dropServerFields()
	return o
}

// dropServerFields drops what the cluster and its tools write for themselves.
func (o *object) dropServerFields() {
	delete(o.Object, "status")
	metadata, _ := o.Object["metadata"].(tree)
	if spec := o.view().at("spec").mapping(); metadata["uid"] != nil {
		switch {
		case o.is("", "Pod"):
			dropAdmitted(spec)
		case o.is("", "Service"): // the addresses that the cluster gave it
			delete(spec, "clusterIPs")
			delete(spec, "ipFamilies")
		}
	}
	if finalizers, _ := metadata["finalizers"].([]any); len(finalizers) == 1 && finalizers[0] == podGroupProtection {
		delete(metadata, "finalizers")
	}
	for _, key := range []string{
		"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation",
		"selfLink",
	} {
		delete(metadata, key)
	}
	annotations, _ := metadata["annotations"].(tree)
	for _, key := range []string{
		"kubectl.kubernetes.io/last-applied-configuration",
		"batch.kubernetes.io/job-tracking",
		names.Version, names.Input,
	} {
		delete(annotations, key)
	}
	if o.gvk.GroupKind() == batchJobKind {
		dropControllerFields(o)
	}
	if o.isQueued() {
		dropAdmission(o.Object)
	}
}

// podGroupProtection keeps a PodGroup of Kubernetes' own for as long as it has pods.
const podGroupProtection = "scheduling.k8s.io/podgroup-protection"

// dropAdmitted drops what a cluster's admission and its scheduler write into a pod, which no author means: a job that
// kept it would be bound to the nodes that it had.
func dropAdmitted(spec tree) {
	for _, key := range []string{"nodeName", "priority"} {
		delete(spec, key)
	}
	for key, value := range map[string]string{
		"schedulerName": "default-scheduler", "preemptionPolicy": "PreemptLowerPriority",
	} {
		if spec[key] == value {
			delete(spec, key)
		}
	}
	if spec["priorityClassName"] != nil { // admission writes the class's, and refuses another
		delete(spec, "preemptionPolicy")
	}
	tolerations, _ := spec["tolerations"].([]any)
	tolerations = slices.DeleteFunc(slices.Clone(tolerations), func(entry any) bool {
		v := view{value: entry}
		key := v.at("key").text()
		seconds, _ := v.at("tolerationSeconds").number()
		return (key == "node.kubernetes.io/not-ready" || key == "node.kubernetes.io/unreachable") && seconds == 300 &&
			v.at("operator").text() == "Exists" && v.at("effect").text() == "NoExecute"
	})
	if len(tolerations) > 0 {
		spec["tolerations"] = tolerations
	} else {
		delete(spec, "tolerations")
	}
}

// copy is the same object of the input with values of its own.
func (o *object) copy() *object {
	l := *o.Loose
	l.Object = clone(o.Object).(tree)
	return newObject(&l)
}

// is says whether the object is of a group and kind, of whatever version.
func (o *object) is(group, kind string) bool { return o.gvk.Group == group && o.gvk.Kind == kind }

func (o *object) String() string {
	if o.label != "" {
		return o.label
	}
	if o.name == "" {
		return o.gvk.Kind
	}
	if o.namespace == "" {
		return o.gvk.Kind + " " + o.name
	}
	return o.gvk.Kind + " " + o.namespace + "/" + o.name
}

func (o *object) view() view { return view{o, nil, o.Object} }

func (o *object) note(verdict Verdict, format string, args ...any) Note {
	return o.view().note(verdict, format, args...)
}

// isTranslated says whether the meaning of a place is kept in another form.
func (o *object) isTranslated(steps []string) bool {
	for i := range steps {
		if _, ok := o.translated[strings.Join(steps[:i+1], "\n")]; ok {
			return true
		}
	}
	return false
}

// schemaErrors are the lines of an error of schema.Load.
func schemaErrors(err error) schema.Errors {
	var all schema.Errors
	if errors.As(err, &all) {
		return all
	}
	return nil
}
