package generators

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
)

// torchElasticJob is the job of TorchElastic's controller, which makes pods and Services <job>-worker-<i>.
func torchElasticJob(job *schema.Job) []runtime.Object {
	w := &job.Spec.Workers
	spec := workerPodSpec(job)
	spec.command, spec.args = elasticJobProgram(job)
	template := workerTemplate(job, spec)
	template = patched(job, componentWorker, template)
	policy, limit := elasticJobRestarts(job)
	m := workloadMeta(job, job.Metadata.Name, componentWorker)
	expect(job, &m, template.Spec, dialling(endpoint(job, "")))
	return []runtime.Object{apis.New(apis.TorchElasticJobKind, m, apis.TorchElasticJobSpec{
		RdzvEndpoint: endpoint(job, ""),
		MinReplicas:  &w.Min,
		MaxReplicas:  &w.Max,
		ReplicaSpecs: map[string]apis.ReplicaSpec{"Worker": {
			Replicas:      &w.Replicas, // without it the controller dies of a nil pointer
			RestartPolicy: policy,
			Template:      template,
		}},
		RunPolicy: &apis.TorchElasticRunPolicy{
			CleanPodPolicy: cleanPods(job),
			BackoffLimit:   limit,
		},
	})}
}

// elasticJobRestarts is what the controller does about pods that failed, and after how many of them the job has failed.
// Under ExitCode it makes those again that were killed, without limit, and nothing ever ends the job: nobody has that
// who does not say that workers are given up.
func elasticJobRestarts(job *schema.Job) (policy string, limit *int32) {
	if job.Spec.LeavesFailed() {
		return "ExitCode", nil
	}
	return "OnFailure", job.Spec.Failure.Restarts.OrNil()
}

// elasticJobProgram puts into args what the controller leaves out: it hands every container --rdzv_backend=etcd,
// --rdzv_endpoint, --rdzv_id and --nnodes before its args, and no variables (pytorch/elastic
// kubernetes/controllers/pod.go).
func elasticJobProgram(job *schema.Job) (command, args []string) {
	command, args = authorWords(job)
	own := job.Spec.Launch()
	flags := launcherFlags(job, own)
	// A launcher already, whose options stand first in args.
	if own != nil || job.Spec.Launcher == schema.LauncherEntrypoint {
		return command, append(flags, args...)
	}
	if len(command) > 0 {
		flags = append(append(flags, "--no_python"), command...)
	}
	return []string{"torchrun"}, append(flags, args...)
}

// launcherFlags are the settings of torchrun and dlrover-run that an author's own call leaves open.
func launcherFlags(job *schema.Job, own *schema.Launch) (flags []string) {
	for _, f := range [][2]string{
		{"max_restarts", strconv.Itoa(int(job.Spec.Rendezvous.MaxRestarts))},
		{"nproc_per_node", job.Spec.Workers.Processes.String()},
		{"rdzv_conf", conf(job)},
	} {
		if own.Option(f[0]) == nil {
			flags = append(flags, "--"+f[0]+"="+f[1])
		}
	}
	return flags
}

// isNumberedService: the controller makes a Service for each pod, <job>-<role>-<i>.
func isNumberedService(job *schema.Job, name string) bool {
	return slices.ContainsFunc(roles(job), func(r role) bool {
		return numberedFrom(name, roleName(job, r.component)+"-", 0, r.replicas)
	})
}
