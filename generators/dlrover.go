package generators

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// componentMaster is DLRover's master: its controller makes the pod and gives it the job's own labels, so the job must
// carry others than the workers.
const componentMaster = "master"

// dlroverJob is the job of DLRover: its controller makes a master, and the master the workers, <job>-edljob-worker-<i>
// (intelligent-machine-learning/dlrover v0.6.1, go/elasticjob and dlrover/python/master/scaler/pod_scaler.py).
func dlroverJob(j *job.Job) []runtime.Object {
	d, s := &j.Spec.DLRover, &j.Spec
	m := workloadMeta(j, j.Metadata.Name, componentMaster)
	// The controller's own value, by which the master's Service finds it: the job's labels are put over the
	// controller's.
	m.Labels["app.kubernetes.io/name"] = "elasticjob"
	for k, v := range evictionAnnotations(j) { // the master's: it gets these too
		annotate(&m, k, v)
	}
	if d.PendingTimeout != nil {
		annotate(&m, "pending_timeout", strconv.FormatInt(seconds(*d.PendingTimeout), 10))
	}
	template := dlroverTemplate(j)
	expect(j, &m, template.Spec, dialling(d.Brain))
	return []runtime.Object{apis.New(apis.DLRoverJobKind, m, apis.DLRoverJobSpec{
		DistributionStrategy: d.Strategy,
		OptimizeMode:         optimizeMode(d.OptimizeMode),
		BrainService:         d.Brain,
		Suspend:              suspended(j),
		ReplicaSpecs: map[string]apis.DLRoverReplicaSpec{"worker": {
			Replicas:     &s.Workers.Replicas,
			RestartCount: s.Failure.RestartsPerWorker,
			Priority:     template.Spec.PriorityClassName, // put over the template's by the master
			Template:     template,
		}},
	})}
}

// optimizeMode is the API's word, which has a letter too many in one.
func optimizeMode(mode string) string {
	if mode == "manual" {
		return "manunal"
	}
	return mode
}

func dlroverTemplate(j *job.Job) corev1.PodTemplateSpec {
	spec := workerPodSpec(j)
	spec.command, spec.args = dlroverProgram(j)
	if gpu := corev1.ResourceName(j.Spec.Resources.GPUResource); j.Spec.Resources.GPU > 0 {
		spec.resources.Requests[gpu] = spec.resources.Limits[gpu] // the master counts requests
	}
	template := workerTemplate(j, spec)
	// Not of the pods, which get Never: the master makes failed ones again.
	template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	template.Spec.TerminationGracePeriodSeconds = nil // the master drops it
	return patched(j, componentWorker, template)
}

// dlroverScript starts dlrover-run for at least as many nodes as its first argument says. The most is NODE_NUM, which
// the master sets to the replicas: the kubelet resolves it too late for args. Nothing of an author's is in the
// script, and $NODE_NUM is no ${NODE_NUM}, which Flux would replace.
const dlroverScript = `set -eu
nodes="$1:$NODE_NUM"
shift
exec dlrover-run --nnodes="$nodes" "$@"
`

func dlroverProgram(j *job.Job) (command, args []string) {
	command, args = authorWords(j)
	if j.Spec.Launch() != nil {
		return command, args
	}
	d := &j.Spec.DLRover
	flags := []string{strconv.Itoa(int(j.Spec.Workers.Min))}
	if d.NetworkCheck {
		flags = append(flags, "--network-check")
	}
	if d.ExcludeStraggler {
		flags = append(flags, "--exclude-straggler")
	}
	if d.NodeUnit > 0 {
		flags = append(flags, "--node_unit="+strconv.Itoa(int(d.NodeUnit)))
	}
	flags = append(flags, launcherFlags(j, nil)...)
	if len(command) > 0 {
		flags = append(append(flags, "--no_python"), command...)
	}
	return []string{"sh", "-c", dlroverScript, "dlrover-run"}, append(flags, args...)
}

// isDLRoverService: the controller makes the master's Service, and the master one for each worker.
func isDLRoverService(j *job.Job, name string) bool {
	number, worker := strings.CutPrefix(name, j.Metadata.Name+"-edljob-worker-")
	i, err := strconv.ParseInt(number, 10, 32)
	return name == apis.DLRoverMasterService(j.Metadata.Name) ||
		worker && err == nil && 0 <= i && int32(i) < j.Spec.Workers.Replicas
}

// outsiders are the components of pods that take part in training and that a controller makes of no template of ours.
func outsiders(j *job.Job) []string {
	if j.Spec.Framework == job.FrameworkDLRover {
		return []string{componentMaster}
	}
	return nil
}
