package generators

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
)

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

// gangAnnotations are the annotations by which the pods of a role join a gang. Values are strings: a bare number is
// refused by some API servers' CRDs and dropped by others.
func gangAnnotations(job *schema.Job, component string) map[string]string {
	g := job.Spec.Gang
	switch {
	case job.Spec.MakesPodGroup():
	case g.Is(schema.GangKoordinator, schema.GangTegen):
		return koordinatorGang(job, roles(job), component)
	case g.Is(schema.GangVolcano):
		a := map[string]string{volcanoKey: job.GangName()}
		if len(roles(job)) > 1 {
			a[volcanoTaskKey] = component
		}
		return a
	case g.Is(schema.GangKueue) && job.Spec.Target == schema.TargetPods:
		// This alone makes a pod depend on how many there are: Kueue admits the group once that many exist.
		return map[string]string{kueueCountKey: strconv.Itoa(int(job.Spec.Workers.Replicas))}
	}
	return nil
}

// koordinatorGang declares a gang in Koordinator's keys. Each role is a gang of its own, or workers could stand in for a
// server, and all are one group, or two jobs could each hold what the other waits for (koordinator#872).
//
// The key total-number is left out, which makes it the minimum. Until 1.6 a Strict gang that found no room is tried again
// when as many of its pods as that have been tried: with more than there are pods, never. With as many as there are, a
// change of replicas would change the template, and so replace the pods that run.
func koordinatorGang(job *schema.Job, all []role, component string) map[string]string {
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
	return a
}

// gangLabels are the labels by which the pods of a role join a gang.
func gangLabels(job *schema.Job, _ string) map[string]string {
	g := job.Spec.Gang
	switch {
	case job.Spec.MakesPodGroup():
	case g.Is(schema.GangCoscheduling):
		return map[string]string{coschedulingKey: job.GangName()}
	case g.Is(schema.GangKueue) && job.Spec.Target == schema.TargetPods: // nothing else could carry the queue
		l := workloadLabels(job)
		l[kueueGroupKey] = job.GangName()
		return l
	}
	return nil
}

// workloadLabels are the labels of the object that a queue holds back: the one that has the field suspend, and every Job
// that works for it. Where Kueue manages all Jobs, those without a queue would wait for ever (kueue#7649).
func workloadLabels(job *schema.Job) map[string]string {
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
// another number, which ends all workers, and admits it anew. It knows this of a Job alone, and refuses it elsewhere.
func resizable(job *schema.Job, component string, m *metav1.ObjectMeta) {
	_, said := m.Annotations[kueueElasticKey]
	if job.Spec.Gang.Is(schema.GangKueue) && job.Spec.Elastic() && component == componentWorker && !said {
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

// suspended is the value of the field suspend; nil where a queue decides, which would otherwise undo it again and again.
func suspended(job *schema.Job) *bool {
	if job.Spec.Gang.Is(schema.GangKueue) {
		return nil
	}
	return &job.Spec.Suspend
}
