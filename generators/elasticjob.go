package generators

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// torchElasticJob is the job of TorchElastic's controller, which makes pods and Services <job>-worker-<i>.
func torchElasticJob(j *job.Job) []runtime.Object {
	w := &j.Spec.Workers
	spec := workerPodSpec(j)
	spec.command, spec.args = elasticJobProgram(j)
	template := workerTemplate(j, spec)
	template = patched(j, componentWorker, template)
	policy, limit := elasticJobRestarts(j)
	m := workloadMeta(j, j.Metadata.Name, componentWorker)
	expect(j, &m, template.Spec, dialling(endpoint(j, "")))
	return []runtime.Object{apis.New(apis.TorchElasticJobKind, m, apis.TorchElasticJobSpec{
		RdzvEndpoint: endpoint(j, ""),
		MinReplicas:  &w.Min,
		MaxReplicas:  &w.Max,
		ReplicaSpecs: map[string]apis.ReplicaSpec{"Worker": {
			Replicas:      &w.Replicas, // without it the controller dies of a nil pointer
			RestartPolicy: policy,
			Template:      template,
		}},
		RunPolicy: &apis.TorchElasticRunPolicy{
			CleanPodPolicy: cleanPods(j),
			BackoffLimit:   limit,
		},
	})}
}

// elasticJobRestarts is what the controller does about pods that failed, and after how many of them the job has failed.
// Under ExitCode it makes those again that were killed, without limit, and nothing ever ends the job: nobody has that
// who does not say that workers are given up.
func elasticJobRestarts(j *job.Job) (policy string, limit *int32) {
	if j.Spec.LeavesFailed() {
		return "ExitCode", nil
	}
	return "OnFailure", j.Spec.Failure.Restarts.OrNil()
}

// elasticJobProgram puts into args what the controller leaves out: it hands every container --rdzv_backend=etcd,
// --rdzv_endpoint, --rdzv_id and --nnodes before its args, and no variables (pytorch/elastic
// kubernetes/controllers/pod.go).
func elasticJobProgram(j *job.Job) (command, args []string) {
	command, args = authorWords(j)
	own := j.Spec.Launch()
	flags := launcherFlags(j, own)
	// A launcher already, whose options stand first in args.
	if own != nil || j.Spec.Launcher == job.LauncherEntrypoint {
		return command, append(flags, args...)
	}
	if len(command) > 0 {
		flags = append(append(flags, "--no_python"), command...)
	}
	return []string{"torchrun"}, append(flags, args...)
}

// launcherFlags are the settings of torchrun and dlrover-run that an author's own call leaves open.
func launcherFlags(j *job.Job, own *job.Launch) (flags []string) {
	for _, f := range [][2]string{
		{"max_restarts", strconv.Itoa(int(j.Spec.Rendezvous.MaxRestarts))},
		{"nproc_per_node", j.Spec.Workers.Processes.String()},
		{"rdzv_conf", conf(j)},
	} {
		if own.Option(f[0]) == nil {
			flags = append(flags, "--"+f[0]+"="+f[1])
		}
	}
	return flags
}

// isNumberedService: the controller makes a Service for each pod, <job>-<role>-<i>.
func isNumberedService(j *job.Job, name string) bool {
	return slices.ContainsFunc(roles(j), func(r role) bool {
		return numberedFrom(name, roleName(j, r.component)+"-", 0, r.replicas)
	})
}
