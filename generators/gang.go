package generators

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema"
)

// Keys by which pods join a gang, and jobs a queue.
const (
	koordinatorKeys  = "gang.scheduling.koordinator.sh/" // and a word
	coschedulingKey  = "scheduling.x-k8s.io/pod-group"
	volcanoKey       = "scheduling.k8s.io/group-name"
	volcanoTaskKey   = "volcano.sh/task-spec"
	kueueQueueKey    = "kueue.x-k8s.io/queue-name"
	kueuePriorityKey = "kueue.x-k8s.io/priority-class"
	kueueGroupKey    = "kueue.x-k8s.io/pod-group-name"
	kueueCountKey    = "kueue.x-k8s.io/pod-group-total-count"
	kueueElasticKey  = "kueue.x-k8s.io/elastic-job"
	kueueRetryKey    = "kueue.x-k8s.io/retriable-in-group"
)

// dialect is how a gang is rendered for one scheduler. What is nil is not there.
type dialect struct {
	annotations func(job *schema.Job, component string) map[string]string // of the pods of a role
	labels      func(*schema.Job) map[string]string                       // of all pods
	objects     func(*schema.Job) []runtime.Object                        // beside the pods
}

// dialectOf has a row for each of schema.Dialects. It is a function, since what it lists refers to it.
func dialectOf(scheduler string) dialect {
	switch scheduler {
	case schema.GangKoordinator, schema.GangTegen:
		return dialect{annotations: koordinatorGang}
	case schema.GangCoscheduling:
		return dialect{labels: coschedulingLabels, objects: coschedulingGroup}
	case schema.GangVolcano:
		return dialect{annotations: volcanoAnnotations, objects: volcanoGroup}
	case schema.GangKueue:
		return dialect{annotations: kueueAnnotations, labels: kueueGroup}
	case schema.GangKubernetes: // by a field of the pods too, see schedulingGroup
		return dialect{objects: kubernetesGroups}
	}
	return dialect{}
}

// gangDialect is that of the job's gang, empty where the target's controller makes the gang itself.
func gangDialect(job *schema.Job) dialect {
	if !job.Spec.Gang.Active() || job.Spec.MakesPodGroup() {
		return dialect{}
	}
	return dialectOf(job.Spec.Gang.Scheduler)
}

// gang makes the object that says how many pods are placed together, in the dialects that have one.
func gang(job *schema.Job) []runtime.Object {
	if d := gangDialect(job); d.objects != nil {
		return d.objects(job)
	}
	return nil
}

// gangAnnotations are the annotations by which the pods of a role join a gang. Values are strings: a bare number is
// refused by some API servers' CRDs and dropped by others.
func gangAnnotations(job *schema.Job, component string) map[string]string {
	if d := gangDialect(job); d.annotations != nil {
		return d.annotations(job, component)
	}
	return nil
}

// gangLabels are the labels by which pods join a gang.
func gangLabels(job *schema.Job) map[string]string {
	if d := gangDialect(job); d.labels != nil {
		return d.labels(job)
	}
	return nil
}

// schedulingGroup is the PodGroup of Kubernetes' own gangs.
func schedulingGroup(job *schema.Job) *corev1.PodSchedulingGroup {
	if !job.Spec.Gang.Is(schema.GangKubernetes) {
		return nil
	}
	return &corev1.PodSchedulingGroup{PodGroupName: ptr(job.GangName())}
}

// gangLeast is how many pods of a role must be placed together: roles other than the workers are placed whole.
func gangLeast(job *schema.Job, r role) int32 {
	if r.component == componentWorker {
		return job.Spec.Gang.MinAvailable
	}
	return r.replicas
}

// gangSum is the least of all roles together.
func gangSum(job *schema.Job, all []role) (sum int32) {
	for _, r := range all {
		sum += gangLeast(job, r)
	}
	return sum
}

// koordinatorGang declares a gang in Koordinator's keys. Each role is a gang of its own, or workers could stand in for
// a server, and all are one group, or two jobs could each hold what the other waits for (koordinator#872).
//
// The key total-number is left out, which makes it the minimum. Until 1.6 a Strict gang that found no room is tried
// again when as many of its pods as that have been tried: with more than there are pods, never. With as many as there
// are, a change of replicas would change the template, and so replace the pods that run.
func koordinatorGang(job *schema.Job, component string) map[string]string {
	all := roles(job)
	i := slices.IndexFunc(all, func(r role) bool { return r.component == component })
	if i < 0 { // a pod that takes no part in training
		return nil
	}
	g := job.Spec.Gang
	a := map[string]string{
		koordinatorKeys + "name":          job.RoleGang(component),
		koordinatorKeys + "min-available": strconv.Itoa(int(gangLeast(job, all[i]))),
		koordinatorKeys + "mode":          g.Mode,
		koordinatorKeys + "waiting-time":  strconv.FormatInt(seconds(g.WaitTimeout), 10) + "s",
		koordinatorKeys + "match-policy":  g.MatchPolicy,
	}
	if group := job.GangGroup(); len(group) > 0 {
		text, err := json.Marshal(group)
		if err != nil { // strings always have a JSON form
			panic(fmt.Errorf("listing gangs: %w", err))
		}
		a[koordinatorKeys+"groups"] = string(text)
	}
	maps.Copy(a, koordinatorTopology(job, component))
	return a
}

func coschedulingLabels(job *schema.Job) map[string]string {
	return map[string]string{coschedulingKey: job.GangName()}
}

func volcanoAnnotations(job *schema.Job, component string) map[string]string {
	a := map[string]string{volcanoKey: job.GangName()}
	if len(roles(job)) > 1 {
		a[volcanoTaskKey] = component
	}
	return a
}

func kueueAnnotations(job *schema.Job, component string) map[string]string {
	a := kueueTopology(job, component)
	maps.Copy(a, kueuePods(job))
	return a
}

// kueuePods are on bare pods, of which Kueue admits a group once as many exist as are counted: nothing else makes a pod
// depend on how many there are. The group is over when no pod of it is left running. Kueue would else wait for others
// in their place, keep their quota, and hold pods that are deleted by its finalizer.
func kueuePods(job *schema.Job) map[string]string {
	if job.Spec.Target != schema.TargetPods {
		return nil
	}
	return map[string]string{kueueCountKey: strconv.Itoa(int(job.Spec.Workers.Replicas)), kueueRetryKey: "false"}
}

// kueueGroup is on bare pods, where nothing else could carry the queue.
func kueueGroup(job *schema.Job) map[string]string {
	if job.Spec.Target != schema.TargetPods {
		return nil
	}
	l := queueLabels(job)
	l[kueueGroupKey] = job.GangName()
	return l
}

// queueLabels are the labels of the object that a queue holds back: the one that has the field suspend, and every
// Job that works for it. Where Kueue manages all Jobs, those without a queue would wait for ever (kueue#7649).
func queueLabels(job *schema.Job) map[string]string {
	g := job.Spec.Gang
	if !g.Is(schema.GangKueue) {
		return nil
	}
	l := map[string]string{kueueQueueKey: g.Queue}
	if g.Priority != "" {
		l[kueuePriorityKey] = g.Priority
	}
	return l
}

// resizable tells Kueue that the number of workers may change: without it Kueue suspends a job that was admitted with
// another number, which ends all workers, and admits it anew. It knows this of a Job alone, and refuses it elsewhere,
// of a Job that it may start with fewer workers, and of one that it places by topology.
func resizable(job *schema.Job, component string, m *metav1.ObjectMeta) {
	_, said := m.Annotations[kueueElasticKey]
	_, partial := m.Annotations[schema.KueuePartialKey]
	if job.Spec.Gang.Is(schema.GangKueue) && job.Spec.Elastic() && component == componentWorker && !said && !partial &&
		job.Spec.Topology() == nil {
		annotate(m, kueueElasticKey, "true")
	}
}

// expectOfQueue is what must be there for an object with these labels to leave its queue.
func expectOfQueue(labels map[string]string) (names []string) {
	if q := labels[kueueQueueKey]; q != "" {
		names = append(names, "LocalQueue.kueue.x-k8s.io/"+q)
	}
	if p := labels[kueuePriorityKey]; p != "" {
		names = append(names, "WorkloadPriorityClass.kueue.x-k8s.io/"+p)
	}
	return names
}

// expectOfVolcano is what must be there for a gang of Volcano to leave its queue.
func expectOfVolcano(job *schema.Job) []string {
	if g := job.Spec.Gang; g.Is(schema.GangVolcano) && g.Queue != "" {
		return []string{"Queue.scheduling.volcano.sh/" + g.Queue}
	}
	return nil
}

// suspended is the value of the field suspend; nil where a queue decides, which would otherwise undo it again and
// again.
func suspended(job *schema.Job) *bool {
	if job.Spec.Gang.Is(schema.GangKueue) {
		return nil
	}
	return &job.Spec.Suspend
}

// managedBy is who starts the job in place of its controller, nil for the controller.
func managedBy(job *schema.Job) *string {
	if job.Spec.ManagedBy == "" {
		return nil
	}
	return &job.Spec.ManagedBy
}
