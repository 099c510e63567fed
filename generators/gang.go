package generators

import (
	"strconv"

	"github.com/tegen-dev/tegen/schema"
)

// koordScheduler is the name of Koordinator's scheduler profile as its chart installs it.
const koordScheduler = "koord-scheduler"

// schedulerName is who places the workers: the author's word, or the gang's scheduler; "" is the cluster's default.
func schedulerName(job *schema.Job) string {
	if s := job.Spec.Placement.Scheduler; s != "" {
		return s
	}
	if g := job.Spec.Gang; g != nil && g.Scheduler == schema.GangKoordinator {
		return koordScheduler
	}
	return ""
}

// gangAnnotations declare the pods of a role as a gang in Koordinator's keys. Values are strings: a bare number is refused
// by some API servers' CRDs and dropped by others.
func gangAnnotations(job *schema.Job, component string) map[string]string {
	g := job.Spec.Gang
	if g == nil || g.Scheduler != schema.GangKoordinator {
		return nil
	}
	const prefix = "gang.scheduling.koordinator.sh/"
	return map[string]string{
		prefix + "name":          job.GangName(),
		prefix + "min-available": strconv.Itoa(int(g.MinAvailable)),
		prefix + "total-number":  strconv.Itoa(int(job.Spec.Workers.Max)), // not the replicas: a template must not change when they do
		prefix + "mode":          g.Mode,
		prefix + "waiting-time":  strconv.FormatInt(seconds(g.WaitTimeout), 10) + "s",
		prefix + "match-policy":  g.MatchPolicy,
	}
}

// gangLabels are the labels by which the pods of a role join a gang.
func gangLabels(job *schema.Job, component string) map[string]string { return nil }

// workloadLabels are the labels of the object that a queue holds back: the one that has the field suspend.
func workloadLabels(job *schema.Job) map[string]string { return nil }

// suspended is the value of that field; nil where a queue decides, which would otherwise undo it again and again.
func suspended(job *schema.Job) *bool {
	if g := job.Spec.Gang; g != nil && g.Scheduler == schema.GangKueue {
		return nil
	}
	return &job.Spec.Suspend
}
