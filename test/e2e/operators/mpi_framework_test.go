package operators

import (
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/test/cluster"
)

// mpiProgram is a job of framework mpi: two hosts of three processes.
const mpiProgram = `  framework: mpi
  target: mpijob
  image: registry.example/pi:1
  command: [/opt/pi]
  workers: {replicas: 2, processes: 3}
  resources: {cpu: 100m, memory: 64Mi, shm: 16Mi}
`

// mpiKinds are the three implementations: what of each job the operator decides, and the launcher's words.
var mpiKinds = []struct {
	implementation, line string // line is one of the operator's file of hosts, whose name it gets
	call                 []string
	added                map[string]string // variables of the launcher
}{
	{
		"openmpi", "%s slots=3\n",
		[]string{"mpirun", "--hostfile", "/etc/mpi/hostfile", "-np", "6", "--bind-to", "none", "/opt/pi"},
		map[string]string{
			"OMPI_MCA_orte_keep_fqdn_hostnames": "true",
			"OMPI_MCA_orte_default_hostfile":    "/etc/mpi/hostfile",
			"OMPI_MCA_plm_rsh_args":             "-o ConnectionAttempts=10",
			"OMPI_MCA_orte_set_default_slots":   "3",
		},
	},
	{
		"intel", "%s:3\n",
		[]string{"mpirun", "-f", "/etc/mpi/hostfile", "-np", "6", "-ppn", "3", "/opt/pi"},
		map[string]string{
			"I_MPI_HYDRA_HOST_FILE":                 "/etc/mpi/hostfile",
			"I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-o ConnectionAttempts=10",
			"I_MPI_PERHOST":                         "3",
		},
	},
	{
		"mpich", "%s:3\n",
		[]string{"mpirun", "-f", "/etc/mpi/hostfile", "-np", "6", "-genvnone", "/opt/pi"},
		map[string]string{
			"HYDRA_HOST_FILE":         "/etc/mpi/hostfile",
			"HYDRA_LAUNCH_EXTRA_ARGS": "-o ConnectionAttempts=10",
		},
	},
}

// mpiFramework: with each implementation the operator's hosts and variables are those of the mpirun that tegen writes;
// nothing runs while the job is suspended, and its workers go when the launcher has succeeded.
func mpiFramework(p *place) {
	p.nodes(2, 0, "")
	for _, kind := range mpiKinds {
		objects := p.rendered(kind.implementation,
			mpiProgram+"  mpi: {implementation: "+kind.implementation+"}\n  suspend: true\n")
		p.apply(objects...)
		job := p.the("MPIJob", objects)
		p.condition(job, "Suspended")
		p.remains("no pod", func() error { return mpiPods(p, job, 0, 0) })
		var hosts string
		for i := range 2 {
			host := fmt.Sprintf("%[1]s-worker-%[2]d.%[1]s.%[3]s.svc", job.GetName(), i, p.namespace)
			hosts += fmt.Sprintf(kind.line, host)
		}
		mpiHelpers(p, job, hosts)
		p.set(job, false, "spec", "runPolicy", "suspend")
		mpiCalls(p, job, kind.call, kind.added)
		p.set(job, true, "spec", "runPolicy", "suspend")
		p.eventually("no pod to be left", func() error { return mpiPods(p, job, 0, 0) })
		p.set(job, false, "spec", "runPolicy", "suspend")
		p.running(2, p.namespace, workers)
		p.end(cluster.OutcomeSucceeded, p.running(1, p.namespace, launchers)...)
		p.condition(job, "Succeeded")
		p.running(0, p.namespace, workers)
		p.imported(objects, job)
		p.delete(p.Context(), objects...)
		p.gone(p.namespace)
	}
}

// mpiCalls checks the launcher's words, and the variables that the operator adds to it. Workers have sshd alone.
func mpiCalls(p *place, job *unstructured.Unstructured, call []string, added map[string]string) {
	p.Helper()
	p.running(2, p.namespace, workers)
	launcher := p.running(1, p.namespace, launchers)[0].Spec.Containers[0]
	if diff := cmp.Diff(append([]string{"sh", "/tegen/ssh/launcher.sh"}, call...),
		slices.Concat(launcher.Command, launcher.Args)); diff != "" {
		p.Errorf("the launcher's words (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"K_MPI_JOB_ROLE": "launcher", "NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": "",
	}
	for name, value := range added {
		want[name] = value
	}
	mpiAdded(p, job, "Launcher", launcher.Env, want)
	for _, pod := range p.running(2, p.namespace, workers) {
		if got := slices.Concat(pod.Spec.Containers[0].Command, pod.Spec.Containers[0].Args); !slices.Equal(got,
			[]string{"sh", "/tegen/ssh/worker.sh"}) {
			p.Errorf("worker %s runs %q, want sshd alone", pod.Name, got)
		}
	}
}

// mpiFrameworkFails: a launcher that failed is made again as often as the job allows, with the same workers; a job that
// kept its workers has them when it has failed.
func mpiFrameworkFails(p *place) {
	p.nodes(1, 0, "")
	objects := p.rendered("fails", mpiProgram+"  failure: {restarts: 1}\n  cleanPods: none\n")
	p.apply(objects...)
	job := p.the("MPIJob", objects)
	trained := p.running(2, p.namespace, workers)
	first := p.running(1, p.namespace, launchers)[0]
	p.end(cluster.OutcomeFailed, first)
	var second corev1.Pod
	p.eventually("another launcher", func() error {
		second = p.running(1, p.namespace, launchers)[0]
		if second.UID == first.UID {
			return fmt.Errorf("%s is still there", first.Name)
		}
		return nil
	})
	p.same(trained, p.running(2, p.namespace, workers))
	p.end(cluster.OutcomeFailed, second)
	p.condition(job, "Failed")
	p.remains("the workers", func() error { return mpiPods(p, job, 2, 2) })
}

// mpiSidecars: the controller takes a sidecar as one: the pods of workers have it among the init containers, started
// again for ever, and the launcher has none.
func mpiSidecars(p *place) {
	p.nodes(1, 0, "")
	objects := p.rendered("watched", mpiProgram+
		"  sidecars: [{name: exporter, image: \"registry.example/exporter:1\", ports: {metrics: 9400}}]\n")
	p.apply(objects...)
	job := p.the("MPIJob", objects)
	for _, pod := range p.running(2, p.namespace, workers) {
		p.sidecar(pod, "exporter")
	}
	launcher := p.running(1, p.namespace, launchers)
	if n := len(launcher[0].Spec.InitContainers); n > 0 {
		p.Errorf("the launcher has %d init containers, want none", n)
	}
	p.end(cluster.OutcomeSucceeded, launcher...)
	p.condition(job, "Succeeded")
	p.running(0, p.namespace, workers)
}

// sidecar checks that a pod's only init container is one that starts again, which does not hold up the pod's end.
func (p *place) sidecar(pod corev1.Pod, name string) {
	p.Helper()
	all := pod.Spec.InitContainers
	if len(all) != 1 || all[0].Name != name || all[0].RestartPolicy == nil ||
		*all[0].RestartPolicy != corev1.ContainerRestartPolicyAlways {
		p.Errorf("the init containers of pod %s are %v, want the sidecar %s", pod.Name, all, name)
	}
}
