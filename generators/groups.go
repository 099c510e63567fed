package generators

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema"
)

// withGroups are the workers and the groups beside them.
func withGroups(job *schema.Job) []role {
	all := workersOnly(job)
	for i := range job.Spec.Groups {
		all = append(all, groupRole(&job.Spec.Groups[i]))
	}
	return all
}

// groupRole is a group whose pods are all needed.
func groupRole(g *schema.Group) role { return role{g.Name, g.Replicas, g.Replicas} }

// isGroup says whether a component is a group of the author's own, whose pods take no part in the rendezvous.
func isGroup(job *schema.Job, component string) bool { return job.Spec.Group(component) != nil }

// groupTemplate is a pod of a group: the author's program, the job's volumes, and where the other groups are.
func groupTemplate(job *schema.Job, g *schema.Group, hosts []corev1.EnvVar) corev1.PodTemplateSpec {
	spec := podSpecOf(job, g.Name)
	spec.command, spec.args, spec.env = g.Command, g.Args, hosts
	if r := &g.Resources; r.GPU > 0 {
		spec.resources.Limits[corev1.ResourceName(r.GPUResource)] = quantity(r.GPU) // the request follows it
	}
	return workerTemplate(job, spec)
}

// groupHosts tell every pod of a job with groups the full name of each group's first pod. Not the number of pods: one
// more would change the templates of all.
func groupHosts(job *schema.Job, first func(component string) string) (env []corev1.EnvVar) {
	if len(job.Spec.Groups) == 0 {
		return nil
	}
	for _, r := range withGroups(job) {
		env = append(env, corev1.EnvVar{Name: schema.HostVariable(r.component), Value: first(r.component)})
	}
	return env
}

// toldHosts is a worker that knows where the groups are, too.
func toldHosts(spec rolePodSpec, hosts []corev1.EnvVar) rolePodSpec {
	spec.env = append(hosts, spec.env...)
	return spec
}

// groupedJobs are an Indexed Job of the workers and one of each group. Nothing makes one wait for another.
func groupedJobs(job *schema.Job) []runtime.Object {
	return objects(hashedAll(job, func(suffix string) (jobs []*batchv1.Job) {
		first := func(component string) string {
			service := roleName(job, component)
			return inService(job, service+suffix+"-0", service)
		}
		hosts := groupHosts(job, first)
		jobs = append(jobs, workerJob(job, workerName(job)+suffix,
			workerTemplate(job, toldHosts(meetingWorker(job, first(componentWorker)), hosts))))
		for i := range job.Spec.Groups {
			g := &job.Spec.Groups[i]
			template := groupTemplate(job, g, hosts)
			template.Spec.Subdomain = roleName(job, g.Name)
			jobs = append(jobs, roleJob(job, roleName(job, g.Name)+suffix, g.Name,
				lastingJobSpec(job, groupRole(g), template)))
		}
		return jobs
	})...)
}
