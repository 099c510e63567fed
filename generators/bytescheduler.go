package generators

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/schema/job"
)

// byteSchedulerEnv is the settings of ByteScheduler, which horovodrun hands on to all processes; root is the host of
// rank 0, which listens on it (bytescheduler/common/comm_*.py and docs in bytedance/byteps, branch bytescheduler).
func byteSchedulerEnv(j *job.Job, root string) []corev1.EnvVar {
	if j.Spec.Framework != job.FrameworkByteScheduler {
		return nil
	}
	b := &j.Spec.ByteScheduler
	env := []corev1.EnvVar{{Name: "USE_BYTESCHEDULER", Value: "1"}}
	add := func(name, value string) {
		env = append(env, corev1.EnvVar{Name: "BYTESCHEDULER_" + name, Value: value})
	}
	if b.Partition != 0 {
		add("PARTITION", strconv.FormatInt(b.Partition, 10))
	}
	if b.Credit != 0 {
		add("CREDIT", strconv.FormatInt(b.Credit, 10))
	}
	add("CREDIT_TUNING", flag(b.CreditTuning))
	add("PARTITION_TUNING", flag(b.PartitionTuning))
	if b.PartitionTuning {
		add("ROOT_IP", root)
		add("ROOT_PORT", strconv.Itoa(int(b.RootPort)))
	}
	if b.Timeline != "" {
		add("TIMELINE", b.Timeline)
	}
	if b.Debug {
		add("DEBUG", "1")
	}
	return env
}

// byteSchedulerPorts is where worker 0, and with its template all workers, may listen.
func byteSchedulerPorts(j *job.Job) []corev1.ContainerPort {
	if b := &j.Spec.ByteScheduler; j.Spec.Framework == job.FrameworkByteScheduler && b.PartitionTuning {
		return []corev1.ContainerPort{listenPort(j, "root", b.RootPort)}
	}
	return nil
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}
