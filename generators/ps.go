package generators

import (
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema/job"
)

// Roles beside the workers of jobs that train with ps-lite, as MXNet and BytePS do.
const (
	componentScheduler = job.RoleScheduler // counts the others and gives each their addresses; there is one
	componentServer    = job.RoleServer    // holds a share of the parameters
)

// psRoles are the roles of ps-lite, or a worker alone.
func psRoles(j *job.Job) []role {
	if !j.Spec.ParameterServers() {
		return workersOnly(j)
	}
	servers := j.Spec.Servers.Replicas
	return append([]role{{componentScheduler, 1, 1}, {componentServer, servers, servers}}, workersOnly(j)...)
}

// psJobs are an Indexed Job for each role, or that of a worker alone. With ps-lite the first failure ends a role's Job:
// neither do the others turn to a new scheduler, nor does a new server have the weights of the lost one, and a new
// worker hangs, since the scheduler does not answer more nodes than DMLC_NUM_WORKER says (dmlc/ps-lite, src/van.cc). A
// failed Job says so, a replaced pod would not. What runs of the other roles then waits in vain until failure.deadline.
func psJobs(j *job.Job) []runtime.Object {
	return objects(hashedAll(j, func(suffix string) (jobs []*batchv1.Job) {
		if !j.Spec.ParameterServers() {
			return []*batchv1.Job{workerJob(j, workerName(j)+suffix,
				workerTemplate(j, psPodSpec(j, componentWorker)))}
		}
		service := roleName(j, componentScheduler)
		root := inService(j, service+suffix+"-0", service)
		for _, r := range psRoles(j) {
			spec := psPodSpec(j, r.component)
			spec.env = append(psEnv(j, r.component, root), spec.env...)
			if r.component == componentScheduler {
				spec.ports = []corev1.ContainerPort{{
					Name: "ps-root", ContainerPort: j.Spec.Servers.Port,
					Protocol: corev1.ProtocolTCP,
				}}
			}
			jobs = append(jobs, indexedJob(j, roleName(j, r.component)+suffix, r, workerTemplate(j, spec)))
		}
		return jobs
	})...)
}

// psEnv makes a process a node of ps-lite (dmlc/ps-lite, docs/env.md); root is the scheduler's name.
func psEnv(j *job.Job, component, root string) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "DMLC_ROLE", Value: component},
		{Name: "DMLC_PS_ROOT_URI", Value: root},
		{Name: "DMLC_PS_ROOT_PORT", Value: strconv.Itoa(int(j.Spec.Servers.Port))},
		{Name: "DMLC_NUM_SERVER", Value: strconv.Itoa(int(j.Spec.Servers.Replicas))},
		{Name: "DMLC_NUM_WORKER", Value: strconv.Itoa(int(j.Spec.Workers.Replicas))},
		// The scheduler binds to 0.0.0.0, not to its name (src/zmq_van.h; apache/mxnet#9430).
		{Name: "DMLC_USE_KUBERNETES", Value: "1"},
	}
	if component == componentWorker { // which BytePS reads
		env = append(env, corev1.EnvVar{Name: "DMLC_WORKER_ID", ValueFrom: fieldOf(completionIndex)})
	}
	return env
}

// psPodSpec is a pod of a role without the variables that make it a node of ps-lite. Servers and the scheduler run the
// workers' script, which its DMLC_ROLE turns into one, on the workers' volumes.
func psPodSpec(j *job.Job, component string) rolePodSpec {
	spec := workerPodSpec(j)
	spec.command, spec.args = program(j)
	if component != componentWorker {
		spec = podSpecOf(j, component)
		spec.command, spec.args = serverProgram(j)
	}
	if i := j.Spec.Network.Interface; i != "" && j.Spec.ParameterServers() {
		spec.env = []corev1.EnvVar{{Name: "DMLC_INTERFACE", Value: i}}
	}
	return spec
}

// serverProgram is their command or entrypoint, or the workers' command with arguments of their own; bpslaunch alone
// makes a server of BytePS.
func serverProgram(j *job.Job) (command, args []string) {
	s := &j.Spec.Servers
	switch {
	case len(s.Command) > 0 || s.Entrypoint:
		return s.Command, s.Args
	case j.Spec.BytePS():
		return []string{job.BPSLaunch}, nil
	case len(s.Args) == 0:
		return program(j)
	}
	own := *j
	own.Spec.Args = s.Args
	return program(&own)
}

// roleServices give the pods of each role their names.
func roleServices(j *job.Job) (out []runtime.Object) {
	for _, r := range roles(j) {
		var ports []corev1.ServicePort
		if r.component == componentScheduler {
			ports = []corev1.ServicePort{port("ps-root", j.Spec.Servers.Port)}
		}
		out = append(out, headless(j, roleName(j, r.component), r.component, selector(j, r.component), ports...))
	}
	return out
}

func isRoleService(j *job.Job, name string) bool {
	return slices.ContainsFunc(roles(j), func(r role) bool { return name == roleName(j, r.component) })
}
