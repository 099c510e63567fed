package importer

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// draft is a TrainingJob in the making.
type draft struct {
	stream *stream
	job    tree
	origin map[string]view // where a field of the job comes from, by its path

	workload      []*object         // what it was read from, in the order in which its counterparts are rendered
	container     string            // the name of the container that trains
	volume        map[string]string // the rendered names of the input's volumes
	taken         map[string]bool   // names of volumes that are in use
	numbered      int               // how many of them have a number
	otherRolePods int64             // pods of roles other than the workers
	template      view              // the workers' pod template; while another role's patch is made, that role's
	role          string            // the role of the template
	templates     map[string]view   // the templates of the other roles

	unrenderedPods int64               // pods of templates that the job has no place for
	invalid        []schema.Error      // what the schema refuses of it
	recorded       map[string]bool     // the same, by path and message
	waitingFields  map[string][]string // which fields wait for a placeholder, by the place of the placeholder
	incomplete     bool                // it waits for a value that nobody has filled in
	elsewhere      map[string]bool     // placeholders outside of longer variables; nil until asked for
	reasons        map[string]string   // by the place of the input, how the job keeps what it lacks
	shifted        map[string]int      // by the start of pods' names, by how much their numbers are others
	torchSet       map[string]bool     // variables of torchrun that the source sets, or has an option for

	objects []tree // what it renders
	notes   []Note
	yaml    []byte
}

// newDraft starts a job of a framework and target from an object.
func newDraft(s *stream, o *object, framework, target, name string) *draft {
	d := &draft{
		stream: s, job: tree{"metadata": tree{}, "spec": tree{}}, origin: map[string]view{},
		volume: map[string]string{}, role: job.RoleWorker, templates: map[string]view{},
		recorded: map[string]bool{}, waitingFields: map[string][]string{}, torchSet: map[string]bool{},
		shifted: map[string]int{}, reasons: map[string]string{},
	}
	d.addWorkload(o)
	metadata := o.view().at("metadata")
	d.set("metadata.name", name, orElse(metadata.at("name"), metadata.at("generateName")))
	if prefix := metadata.at("generateName"); prefix.isSet() && !metadata.at("name").isSet() {
		d.note(prefix, Changed, "what is applied again and again has one name, and kubectl create makes no second job "+
			"of it: change metadata.name to run it again")
		prefix.markTranslated()
	}
	d.set("metadata.namespace", o.namespace, metadata.at("namespace"))
	d.set("spec.framework", framework, o.view())
	d.set("spec.target", target, o.view())
	if metadata.at("annotations", names.ContentHash).isSet() {
		d.set("spec.hashedNames", true, metadata.at("annotations"))
	}
	for _, field := range []string{"labels", "annotations"} {
		d.keys(metadata.at(field), "metadata."+field)
	}
	return d
}

// addWorkload takes an object as part of the workload.
func (d *draft) addWorkload(o *object) {
	o.draft = d
	d.workload = append(d.workload, o)
}

func (d *draft) name() string { return d.get("metadata.name").text() }

func (d *draft) namespace() string { return d.workload[0].namespace }

// set gives a field of the job its value, unless there is nothing to say; from is where it stood.
func (d *draft) set(field string, value any, from view) {
	switch x := value.(type) {
	case string:
		if x == "" {
			return
		}
	case []string:
		if len(x) == 0 {
			return
		}
		list := make([]any, len(x))
		for i, text := range x {
			list[i] = text
		}
		value = list
	case nil:
		return
	}
	put(d.job, fieldSteps(field), value)
	d.origin[field] = from
}

// add appends an item to a list of the job.
func (d *draft) add(field string, item any, from view) {
	list, _ := d.get(field).value.([]any)
	d.origin[fmt.Sprintf("%s[%d]", field, len(list))] = from
	first, known := d.origin[field]
	d.set(field, append(list, item), from)
	if known {
		d.origin[field] = first
	}
}

// get is a field of the job.
func (d *draft) get(field string) view {
	return view{value: d.job}.walk(fieldSteps(field))
}

// fieldSteps are the steps to a field of the job.
func fieldSteps(field string) []string {
	if strings.Contains(field, "[") {
		return undotted(field)
	}
	return strings.Split(field, ".")
}

// keys copies those of a mapping of labels or annotations that authors may set.
func (d *draft) keys(v view, field string) {
	for _, key := range sortedKeys(v.mapping()) {
		if !reserved(key) && !isGangKey(key) {
			d.put(field, key, v.at(key).text(), v.at(key))
		}
	}
}

// put sets one key of a mapping, which may hold dots.
func (d *draft) put(field, key, value string, from view) {
	m, _ := d.get(field).value.(tree)
	if m == nil {
		m = tree{}
	}
	m[key] = value
	d.set(field, m, from)
	d.origin[field+"["+strconv.Quote(key)+"]"] = from
}

// The annotations that tell autoscalers not to move a pod.
const (
	safeToEvict  = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	doNotDisrupt = "karpenter.sh/do-not-disrupt"
)

// reserved says whether tegen, a controller or a tool sets a key of labels or annotations.
func reserved(key string) bool {
	for _, prefix := range []string{
		"app.kubernetes.io/", "trainer.kubeflow.org/", "batch.kubernetes.io/",
		"statefulset.kubernetes.io/", "tegen.dev/", "config.kubernetes.io/",
		"internal.config.kubernetes.io/", "config.k8s.io/", "kustomize.config.k8s.io/",
		"kubectl.kubernetes.io/",
	} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"controller-uid", "job-name", "worker", safeToEvict, doNotDisrupt}, key)
}

// note puts a note about a place of the input beside the job.
func (d *draft) note(v view, verdict Verdict, format string, args ...any) {
	d.notes = append(d.notes, v.note(verdict, format, args...))
}

// keptAs says that the job keeps the meaning of a value in another form, with the reason for a line; "" for none.
func (d *draft) keptAs(v view, why string) {
	if v.isSet() {
		d.reasons[v.key()] = why
		v.markTranslated()
	}
}

// from is where a field of the job, or the nearest above it, came from.
func (d *draft) from(path string) view {
	for path != "" {
		if v, ok := d.origin[path]; ok {
			return v
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return d.workload[0].view()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// durationText is whole seconds as the schema writes durations.
func durationText(seconds int64) string {
	if seconds > math.MaxInt64/int64(time.Second) {
		return strconv.FormatInt(seconds, 10) + "s" // which the schema refuses
	}
	d := time.Duration(seconds) * time.Second
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// seconds sets a duration that the source holds in seconds.
func (d *draft) seconds(field string, v view) {
	if n, ok := v.number(); ok {
		d.set(field, durationText(n), v)
	}
}

// head is the start of every job's text.
var head = tree{"apiVersion": names.APIVersion, "kind": names.KindTrainingJob}

// setNumber sets a field to a number of the source, or to the text that stands in its place.
func (d *draft) setNumber(field string, v view) bool {
	if n, ok := v.number(); ok {
		d.set(field, n, v)
		return true
	}
	if text := v.text(); placeholder(text) || text != "" && noNumber(v) {
		d.set(field, text, v)
		return true
	}
	return false
}

func (d *draft) setInteger(field string, s setting) {
	if n, err := strconv.ParseInt(s.text, 10, 64); err == nil {
		d.set(field, n, s.from)
		return
	}
	switch {
	case placeholder(s.text) || noNumber(s.from): // no shell would put a value in
		d.set(field, s.text, s.from)
	case s.text != "":
		d.note(s.from, Changed, "%q is known only where it runs, and %s is a number", s.text, field)
	}
}
