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

	"github.com/tegen-dev/tegen/schema/job"
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
	annotations func(j *job.Job, component string) map[string]string // of the pods of a role
	labels      func(*job.Job) map[string]string                     // of all pods
	objects     func(*job.Job) []runtime.Object                      // beside the pods
}

// dialectOf has a row for each of job.Dialects. It is a function, since what it lists refers to it.
func dialectOf(scheduler string) dialect {
	switch scheduler {
	case job.GangKoordinator, job.GangTegen:
		return dialect{annotations: koordinatorGang}
	case job.GangCoscheduling:
		return dialect{labels: coschedulingLabels, objects: coschedulingGroup}
	case job.GangVolcano:
		return dialect{annotations: volcanoAnnotations, objects: volcanoGroup}
	case job.GangKueue:
		return dialect{annotations: kueueAnnotations, labels: kueueGroup}
	case job.GangKubernetes: // by a field of the pods too, see schedulingGroup
		return dialect{objects: kubernetesGroups}
	}
	return dialect{}
}

// gangDialect is that of the job's gang, empty where the target's controller makes the gang itself.
func gangDialect(j *job.Job) dialect {
	if !j.Spec.Gang.Active() || j.Spec.MakesPodGroup() {
		return dialect{}
	}
	return dialectOf(j.Spec.Gang.Scheduler)
}

// gang makes the object that says how many pods are placed together, in the dialects that have one.
func gang(j *job.Job) []runtime.Object {
	if d := gangDialect(j); d.objects != nil {
		return d.objects(j)
	}
	return nil
}

// gangAnnotations are the annotations by which the pods of a role join a gang. Values are strings: a bare number is
// refused by some API servers' CRDs and dropped by others.
func gangAnnotations(j *job.Job, component string) map[string]string {
	if d := gangDialect(j); d.annotations != nil {
		return d.annotations(j, component)
	}
	return nil
}

// gangLabels are the labels by which pods join a gang.
func gangLabels(j *job.Job) map[string]string {
	if d := gangDialect(j); d.labels != nil {
		return d.labels(j)
	}
	return nil
}

// schedulingGroup is the PodGroup of Kubernetes' own gangs.
func schedulingGroup(j *job.Job) *corev1.PodSchedulingGroup {
	if !j.Spec.Gang.Is(job.GangKubernetes) {
		return nil
	}
	return &corev1.PodSchedulingGroup{PodGroupName: ptr(j.GangName())}
}

// gangLeast is how many pods of a role must be placed together: roles other than the workers are placed whole.
func gangLeast(j *job.Job, r role) int32 {
	if r.component == componentWorker {
		return j.Spec.Gang.MinAvailable
	}
	return r.replicas
}

// gangSum is the least of all roles together.
func gangSum(j *job.Job, all []role) (sum int32) {
	for _, r := range all {
		sum += gangLeast(j, r)
	}
	return sum
}

// koordinatorGang declares a gang in Koordinator's keys. Each role is a gang of its own, or workers could stand in for
// a server, and all are one group, or two jobs could each hold what the other waits for (koordinator#872).
//
// The key total-number is left out, which makes it the minimum. Until 1.6 a Strict gang that found no room is tried
// again when as many of its pods as that have been tried: with more than there are pods, never. With as many as there
// are, a change of replicas would change the template, and so replace the pods that run.
func koordinatorGang(j *job.Job, component string) map[string]string {
	all := roles(j)
	i := slices.IndexFunc(all, func(r role) bool { return r.component == component })
	if i < 0 { // a pod that takes no part in training
		return nil
	}
	g := j.Spec.Gang
	a := map[string]string{
		koordinatorKeys + "name":          j.RoleGang(component),
		koordinatorKeys + "min-available": strconv.Itoa(int(gangLeast(j, all[i]))),
		koordinatorKeys + "mode":          g.Mode,
		koordinatorKeys + "waiting-time":  strconv.FormatInt(seconds(g.WaitTimeout), 10) + "s",
		koordinatorKeys + "match-policy":  g.MatchPolicy,
	}
	if group := j.GangGroup(); len(group) > 0 {
		text, err := json.Marshal(group)
		if err != nil { // strings always have a JSON form
			panic(fmt.Errorf("listing gangs: %w", err))
		}
		a[koordinatorKeys+"groups"] = string(text)
	}
	maps.Copy(a, koordinatorTopology(j, component))
	return a
}

func coschedulingLabels(j *job.Job) map[string]string {
	return map[string]string{coschedulingKey: j.GangName()}
}

func volcanoAnnotations(j *job.Job, component string) map[string]string {
	a := map[string]string{volcanoKey: j.GangName()}
	if len(roles(j)) > 1 {
		a[volcanoTaskKey] = component
	}
	return a
}

func kueueAnnotations(j *job.Job, component string) map[string]string {
	a := kueueTopology(j, component)
	maps.Copy(a, kueuePods(j))
	return a
}

// kueuePods are on bare pods, of which Kueue admits a group once as many exist as are counted: nothing else makes a pod
// depend on how many there are. The group is over when no pod of it is left running. Kueue would else wait for others
// in their place, keep their quota, and hold pods that are deleted by its finalizer.
func kueuePods(j *job.Job) map[string]string {
	if j.Spec.Target != job.TargetPods {
		return nil
	}
	return map[string]string{kueueCountKey: strconv.Itoa(int(j.Spec.Workers.Replicas)), kueueRetryKey: "false"}
}

// kueueGroup is on bare pods, where nothing else could carry the queue.
func kueueGroup(j *job.Job) map[string]string {
	if j.Spec.Target != job.TargetPods {
		return nil
	}
	l := queueLabels(j)
	l[kueueGroupKey] = j.GangName()
	return l
}

// queueLabels are the labels of the object that a queue holds back: the one that has the field suspend, and every
// Job that works for it. Where Kueue manages all Jobs, those without a queue would wait for ever (kueue#7649).
func queueLabels(j *job.Job) map[string]string {
	g := j.Spec.Gang
	if !g.Is(job.GangKueue) {
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
func resizable(j *job.Job, component string, m *metav1.ObjectMeta) {
	_, said := m.Annotations[kueueElasticKey]
	_, partial := m.Annotations[job.KueuePartialKey]
	if j.Spec.Gang.Is(job.GangKueue) && j.Spec.Elastic() && component == componentWorker && !said && !partial &&
		j.Spec.Topology() == nil {
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
func expectOfVolcano(j *job.Job) []string {
	if g := j.Spec.Gang; g.Is(job.GangVolcano) && g.Queue != "" {
		return []string{"Queue.scheduling.volcano.sh/" + g.Queue}
	}
	return nil
}

// suspended is the value of the field suspend; nil where a queue decides, which would otherwise undo it again and
// again.
func suspended(j *job.Job) *bool {
	if j.Spec.Gang.Is(job.GangKueue) {
		return nil
	}
	return &j.Spec.Suspend
}

// managedBy is who starts the job in place of its controller, nil for the controller.
func managedBy(j *job.Job) *string {
	if j.Spec.ManagedBy == "" {
		return nil
	}
	return &j.Spec.ManagedBy
}
