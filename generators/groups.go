package generators

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema/job"
)

// withGroups are the workers and the groups beside them.
func withGroups(j *job.Job) []role {
	all := workersOnly(j)
	for i := range j.Spec.Groups {
		all = append(all, groupRole(&j.Spec.Groups[i]))
	}
	return all
}

// groupRole is a group whose pods are all needed.
func groupRole(g *job.Group) role { return role{g.Name, g.Replicas, g.Replicas} }

// isGroup says whether a component is a group of the author's own, whose pods take no part in the rendezvous.
func isGroup(j *job.Job, component string) bool { return j.Spec.Group(component) != nil }

// groupTemplate is a pod of a group: the author's program, the job's volumes, and where the other groups are.
func groupTemplate(j *job.Job, g *job.Group, hosts []corev1.EnvVar) corev1.PodTemplateSpec {
	spec := podSpecOf(j, g.Name)
	spec.command, spec.args, spec.env = g.Command, g.Args, hosts
	if r := &g.Resources; r.GPU > 0 {
		spec.resources.Limits[corev1.ResourceName(r.GPUResource)] = quantity(r.GPU) // the request follows it
	}
	return workerTemplate(j, spec)
}

// groupHosts tell every pod of a job with groups the full name of each group's first pod. Not the number of pods: one
// more would change the templates of all.
func groupHosts(j *job.Job, first func(component string) string) (env []corev1.EnvVar) {
	if len(j.Spec.Groups) == 0 {
		return nil
	}
	for _, r := range withGroups(j) {
		env = append(env, corev1.EnvVar{Name: job.HostVariable(r.component), Value: first(r.component)})
	}
	return env
}

// toldHosts is a worker that knows where the groups are, too.
func toldHosts(spec rolePodSpec, hosts []corev1.EnvVar) rolePodSpec {
	spec.env = append(hosts, spec.env...)
	return spec
}

// groupedJobs are an Indexed Job of the workers and one of each group. Nothing makes one wait for another.
func groupedJobs(j *job.Job) []runtime.Object {
	return objects(hashedAll(j, func(suffix string) (jobs []*batchv1.Job) {
		first := func(component string) string {
			service := roleName(j, component)
			return inService(j, service+suffix+"-0", service)
		}
		hosts := groupHosts(j, first)
		jobs = append(jobs, workerJob(j, workerName(j)+suffix,
			workerTemplate(j, toldHosts(meetingWorker(j, first(componentWorker)), hosts))))
		for i := range j.Spec.Groups {
			g := &j.Spec.Groups[i]
			template := groupTemplate(j, g, hosts)
			template.Spec.Subdomain = roleName(j, g.Name)
			jobs = append(jobs, roleJob(j, roleName(j, g.Name)+suffix, g.Name,
				lastingJobSpec(j, groupRole(g), template)))
		}
		return jobs
	})...)
}
