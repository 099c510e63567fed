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

// gangAnnotations declare the workers as one gang in Koordinator's keys. Values are strings: a bare number is refused
// by some API servers' CRDs and dropped by others.
func gangAnnotations(job *schema.Job) map[string]string {
	g := job.Spec.Gang
	if g == nil || g.Scheduler != schema.GangKoordinator {
		return nil
	}
	const prefix = "gang.scheduling.koordinator.sh/"
	return map[string]string{
		prefix + "name":          job.Metadata.Name,
		prefix + "min-available": strconv.Itoa(int(g.MinAvailable)),
		prefix + "total-number":  strconv.Itoa(int(job.Spec.Workers.Max)), // not the replicas: a template must not change when they do
		prefix + "mode":          g.Mode,
		prefix + "waiting-time":  strconv.FormatInt(seconds(g.WaitTimeout), 10) + "s",
		prefix + "match-policy":  g.MatchPolicy,
	}
}
