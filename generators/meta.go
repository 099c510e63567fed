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
	"github.com/tegen-dev/tegen/schema"
)

// Components of a job: the values of app.kubernetes.io/component, and the ends of object names.
const (
	componentWorker   = schema.RoleWorker
	componentEtcd     = schema.RoleEtcd
	componentPrefetch = "prefetch"
	componentStorage  = "storage"
	componentGang     = "gang"
	componentLauncher = schema.RoleLauncher
	componentSSH      = "ssh"
	componentKeygen   = "keygen"

	componentCompanion = "rendezvous"
)

// meta names an object and carries the job's labels and annotations.
func meta(job *schema.Job, name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Namespace:   job.Metadata.Namespace,
		Labels:      labels(job, component),
		Annotations: maps.Clone(job.Metadata.Annotations),
	}
}

// versionedMeta is meta for what runs pods of an image. On other objects the version would say nothing, and a new tag
// would change every file of the bundle. It also records which tegen rendered the object, and of which input:
// 'render -o' and 'diff' compare it to find whether tegen or the job has changed. No pod template has these, and no
// name depends on them.
func versionedMeta(job *schema.Job, name, component string) metav1.ObjectMeta {
	m := meta(job, name, component)
	m.Labels = podLabels(job, component)
	if input := job.Input(); input != "" { // an installation has no document
		annotate(&m, names.Version, names.BuildVersion())
		annotate(&m, names.Input, input)
	}
	return m
}

// workloadMeta is meta for what makes the pods that train: with its author's labels and annotations for it alone, and
// its queue.
func workloadMeta(job *schema.Job, name, component string) metav1.ObjectMeta {
	m := versionedMeta(job, name, component)
	maps.Copy(m.Labels, queueLabels(job))
	ofWorkload(job, &m)
	return m
}

// ofWorkload puts what an author says of the workload in the place of what he says of all objects.
func ofWorkload(job *schema.Job, m *metav1.ObjectMeta) {
	maps.Copy(m.Labels, job.Spec.Workload.Labels)
	for key, value := range job.Spec.Workload.Annotations {
		annotate(m, key, value)
	}
}

// clusterMeta is meta for objects without a namespace; they remember whose they are in a label.
func clusterMeta(job *schema.Job, name, component string) metav1.ObjectMeta {
	m := meta(job, name, component)
	m.Namespace = ""
	m.Labels[names.LabelNamespace] = job.Metadata.Namespace
	return m
}

// labels is the label that selects a job's objects, Kubernetes' recommended set and the job's own.
func labels(job *schema.Job, component string) map[string]string {
	l := map[string]string{
		"app.kubernetes.io/name":     job.Spec.Framework,
		"app.kubernetes.io/instance": job.Metadata.Name,
		names.LabelManagedBy:         names.ManagedBy,
		names.LabelComponent:         component,
		names.LabelJob:               job.Metadata.Name,
	}
	maps.Copy(l, job.Metadata.Labels)
	return l
}

// podLabels are labels with the version of what runs in a component's pods.
func podLabels(job *schema.Job, component string) map[string]string {
	l := labels(job, component)
	l["app.kubernetes.io/version"] = version(imageOf(job, component))
	return l
}

// imageOf is the image whose version a component's pods carry. A component's own: a new training image must neither
// restart etcd nor change the template of a prefetch Job, which no API server accepts.
func imageOf(job *schema.Job, component string) string {
	switch component {
	case componentEtcd:
		return etcdImage(job)
	case componentCompanion:
		return job.Spec.Images.Rendezvous
	case componentKeygen:
		if mutualTLS(job) {
			return job.Spec.Images.Rendezvous
		}
	case componentPrefetch:
		return job.Spec.Images.Fetch
	case componentScheduler, componentServer, componentLauncher:
		return job.Spec.Role(component).Image
	}
	if isGroup(job, component) {
		return job.Spec.Role(component).Image
	}
	return job.Spec.Image
}

// selector is the part of labels that never changes and tells one job's component from every other's. The instance is
// no part of it: where Argo CD tracks by label, it writes another there on bare pods too, and no Service would find
// them.
func selector(job *schema.Job, component string) map[string]string {
	return map[string]string{names.LabelJob: job.Metadata.Name, names.LabelComponent: component}
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
