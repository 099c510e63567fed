package generators

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// Components of a job: the values of app.kubernetes.io/component, and the ends of object names.
const (
	componentWorker   = job.RoleWorker
	componentEtcd     = job.RoleEtcd
	componentPrefetch = "prefetch"
	componentStorage  = "storage"
	componentGang     = "gang"
	componentLauncher = job.RoleLauncher
	componentSSH      = "ssh"
	componentKeygen   = "keygen"

	componentCompanion = "rendezvous"
)

// Meta is the metadata of an object in the job's namespace that runs no pods. component is the part that the object
// plays in the job, for the label app.kubernetes.io/component: a word of yours. Use a role of tegen, such as
// job.RoleWorker, only if meant: the Services and NetworkPolicies of a role select all pods with its label.
func Meta(j *job.Job, name, component string) metav1.ObjectMeta { return meta(j, name, component) }

// VersionedMeta is Meta for an object that runs pods. It records the version of tegen and a digest of the job's input,
// by which "tegen render -o" knows whether the job or the program has changed. Give the pods the labels of [Selector]
// and labels of your own, but not these: they change, and the pod template of a Job is immutable.
func VersionedMeta(j *job.Job, name, component string) metav1.ObjectMeta {
	m := versionedMeta(j, name, component)
	if component != componentWorker && !j.Spec.Has(component) { // its image is not one of the job
		m.Labels = labels(j, component)
	}
	return m
}

// ClusterMeta is Meta for an object without a namespace. Its name should have the job's namespace in it.
func ClusterMeta(j *job.Job, name, component string) metav1.ObjectMeta {
	return clusterMeta(j, name, component)
}

// Selector is the labels that select the pods of one component of a job. Select by no others: the rest may change.
func Selector(j *job.Job, component string) map[string]string { return selector(j, component) }

// meta names an object and carries the job's labels and annotations.
func meta(j *job.Job, name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Namespace:   j.Metadata.Namespace,
		Labels:      labels(j, component),
		Annotations: maps.Clone(j.Metadata.Annotations),
	}
}

// versionedMeta is meta for what runs pods of an image. On other objects the version would say nothing, and a new tag
// would change every file of the bundle. It also records which tegen rendered the object, and of which input:
// 'render -o' and 'diff' compare it to find whether tegen or the job has changed. No pod template has these, and no
// name depends on them.
func versionedMeta(j *job.Job, name, component string) metav1.ObjectMeta {
	m := meta(j, name, component)
	m.Labels = podLabels(j, component)
	if input := j.Input(); input != "" { // an installation has no document
		annotate(&m, names.Version, names.BuildVersion())
		annotate(&m, names.Input, input)
	}
	return m
}

// workloadMeta is meta for what makes the pods that train: with its author's labels and annotations for it alone, and
// its queue.
func workloadMeta(j *job.Job, name, component string) metav1.ObjectMeta {
	m := versionedMeta(j, name, component)
	maps.Copy(m.Labels, queueLabels(j))
	ofWorkload(j, &m)
	return m
}

// ofWorkload puts what an author says of the workload in the place of what he says of all objects.
func ofWorkload(j *job.Job, m *metav1.ObjectMeta) {
	maps.Copy(m.Labels, j.Spec.Workload.Labels)
	for key, value := range j.Spec.Workload.Annotations {
		annotate(m, key, value)
	}
}

// clusterMeta is meta for objects without a namespace; they remember whose they are in a label.
func clusterMeta(j *job.Job, name, component string) metav1.ObjectMeta {
	m := meta(j, name, component)
	m.Namespace = ""
	m.Labels[names.LabelNamespace] = j.Metadata.Namespace
	return m
}

// labels is the label that selects a job's objects, Kubernetes' recommended set and the job's own.
func labels(j *job.Job, component string) map[string]string {
	l := map[string]string{
		"app.kubernetes.io/name":     j.Spec.Framework,
		"app.kubernetes.io/instance": j.Metadata.Name,
		names.LabelManagedBy:         names.ManagedBy,
		names.LabelComponent:         component,
		names.LabelJob:               j.Metadata.Name,
	}
	maps.Copy(l, j.Metadata.Labels)
	return l
}

// podLabels are labels with the version of what runs in a component's pods.
func podLabels(j *job.Job, component string) map[string]string {
	l := labels(j, component)
	l["app.kubernetes.io/version"] = version(imageOf(j, component))
	return l
}

// imageOf is the image whose version a component's pods carry. A component's own: a new training image must neither
// restart etcd nor change the template of a prefetch Job, which no API server accepts.
func imageOf(j *job.Job, component string) string {
	switch component {
	case componentEtcd:
		return etcdImage(j)
	case componentCompanion:
		return j.Spec.Images.Rendezvous
	case componentKeygen:
		if mutualTLS(j) {
			return j.Spec.Images.Rendezvous
		}
	case componentPrefetch:
		return j.Spec.Images.Fetch
	case componentScheduler, componentServer, componentLauncher:
		return j.Spec.Role(component).Image
	}
	if isGroup(j, component) {
		return j.Spec.Role(component).Image
	}
	return j.Spec.Image
}

// selector is the part of labels that never changes and tells one job's component from every other's. The instance is
// no part of it: where Argo CD tracks by label, it writes another there on bare pods too, and no Service would find
// them.
func selector(j *job.Job, component string) map[string]string {
	return map[string]string{names.LabelJob: j.Metadata.Name, names.LabelComponent: component}
}

// version makes a label value of an image's tag, or of the start of its digest.
func version(image string) string {
	name, digest, _ := strings.Cut(image, "@sha256:")
	if tag := name[strings.LastIndex(name, "/")+1:]; strings.Contains(tag, ":") {
		_, v, _ := strings.Cut(tag, ":")
		return strings.Trim(v[:min(len(v), 63)], "-_.")
	}
	return digest[:min(len(digest), 12)]
}

// annotate adds to an object's annotations, which may be nil.
func annotate(m *metav1.ObjectMeta, key, value string) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[key] = value
}

// ContentHash returns 8 hexadecimal digits that depend on the JSON of values. Add the hash of its pod template to the
// name of a Job: a changed template then makes another Job, since no API server accepts it in the same one.
func ContentHash(values ...any) string { return contentHash(values...) }

// contentHash is the start of the SHA-256 of a value's JSON: 8 hexadecimal digits.
func contentHash(values ...any) string { return hashOf(jsonOf(values)) }

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

func jsonOf(values []any) []byte {
	text, err := json.Marshal(values)
	if err != nil { // typed objects always have a JSON form
		panic(fmt.Errorf("hashing: %w", err))
	}
	return text
}

// seconds of a duration; the schema allows whole ones only.
func seconds(d metav1.Duration) int64 { return int64(d.Seconds()) }

func ptr[T any](v T) *T { return &v }
