package operators

import (
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/test/cluster"
)

// mpiImage is a job whose image has an sshd of its own, and a line of mpirun's.
const mpiImage = `  framework: mpi
  target: mpijob
  image: registry.example/pi:1
  command: [mpirun]
  args: [-n, "6", -x, OMP_NUM_THREADS, /opt/pi]
  env: [{name: OMP_NUM_THREADS, value: "2"}]
  workers: {replicas: 2, processes: 2}
  resources: {cpu: 100m, memory: 64Mi, shm: 16Mi}
`

// mpiImages: the operator mounts its keys where the image has them, runs sshd where the author says nothing, and leaves
// the launcher's line alone; a launcher that works is the first of its hosts.
func mpiImages(p *place) {
	p.nodes(2, 0, "")
	for _, c := range []struct {
		name, spec, hosts, keys string
		sshd                    []string
		mode                    *int32
		restarts                [2]corev1.RestartPolicy // of the launcher and of a worker
	}{
		{
			"user", `  ssh: {server: image, keysPath: /home/mpiuser/.ssh, command: [/usr/sbin/sshd], args: [-De, -f, /c]}
  mpi: {launch: command}
  security: {runAsUser: 1000}
`, "%[1]s-worker-0.%[1]s.%[2]s.svc slots=2\n%[1]s-worker-1.%[1]s.%[2]s.svc slots=2\n", "/home/mpiuser/.ssh",
			[]string{"/usr/sbin/sshd", "-De", "-f", "/c"},
			nil,
			[2]corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure},
		},
		{
			"root", `  ssh: {server: image, restart: Never}
  mpi: {launch: command, launcherWorks: true, launcherStart: together, launcherRestart: OnFailure}
  security: {runAsUser: image, restricted: false}
`, "%[1]s-launcher.%[1]s.%[2]s.svc slots=2\n%[1]s-worker-0.%[1]s.%[2]s.svc slots=2\n" +
				"%[1]s-worker-1.%[1]s.%[2]s.svc slots=2\n", "/root/.ssh",
			[]string{"/usr/sbin/sshd", "-De"},
			new(int32(0o600)),
			[2]corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever},
		},
	} {
		objects := p.rendered(c.name, mpiImage+c.spec)
		p.apply(objects...)
		job := p.the("MPIJob", objects)
		servers, launcher := p.running(2, p.namespace, workers), p.running(1, p.namespace, launchers)[0]
		mpiHosts(p, job, fmt.Sprintf(c.hosts, job.GetName(), p.namespace))
		mpiKeys(p, job, c.keys, c.mode, append(servers, launcher)...)
		mpiPod(p, launcher, []string{"mpirun", "-n", "6", "-x", "OMP_NUM_THREADS", "/opt/pi"}, c.restarts[0])
		for _, pod := range servers {
			mpiPod(p, pod, c.sshd, c.restarts[1])
			if env := pod.Spec.Containers[0].Env; len(env) != 1 || env[0].Name != "K_MPI_JOB_ROLE" {
				p.Errorf("pod %s has the variables %v, want the operator's alone", pod.Name, env)
			}
		}
		added := map[string]string{"K_MPI_JOB_ROLE": "launcher"}
		if c.name == "user" { // others have processes, and keep what they see of accelerators
			added["NVIDIA_VISIBLE_DEVICES"], added["NVIDIA_DRIVER_CAPABILITIES"] = "", ""
		}
		for name, value := range mpiKinds[0].added {
			added[name] = value
		}
		added["OMPI_MCA_orte_set_default_slots"] = "2"
		mpiAdded(p, job, "Launcher", launcher.Spec.Containers[0].Env, added)
		p.end(cluster.OutcomeSucceeded, launcher)
		p.condition(job, "Succeeded")
		p.running(0, p.namespace, workers)
		p.imported(objects, job)
		p.delete(p.Context(), objects...)
		p.gone(p.namespace)
	}
}

// mpiPod checks what a pod runs, whether it is started again, and that nothing of tegen's ssh is in it.
func mpiPod(p *place, pod corev1.Pod, want []string, restart corev1.RestartPolicy) {
	p.Helper()
	c := pod.Spec.Containers[0]
	if diff := cmp.Diff(want, slices.Concat(c.Command, c.Args)); diff != "" {
		p.Errorf("what pod %s runs (-want +got):\n%s", pod.Name, diff)
	}
	if pod.Spec.RestartPolicy != restart {
		p.Errorf("the policy of pod %s is %s, want %s", pod.Name, pod.Spec.RestartPolicy, restart)
	}
	for _, m := range c.VolumeMounts {
		if m.MountPath == "/etc/passwd" || m.MountPath == "/tegen/ssh" || m.MountPath == "/tegen/home" {
			p.Errorf("pod %s has %s", pod.Name, m.MountPath)
		}
	}
}

// mpiKeys checks that the operator's keys are where the image looks for them.
func mpiKeys(p *place, job *unstructured.Unstructured, path string, mode *int32, pods ...corev1.Pod) {
	p.Helper()
	for _, pod := range pods {
		mounts := pod.Spec.Containers[0].VolumeMounts
		m := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == path })
		if m < 0 {
			p.Errorf("pod %s has nothing at %s", pod.Name, path)
			continue
		}
		v := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mounts[m].Name })
		secret := pod.Spec.Volumes[v].Secret
		if secret == nil || secret.SecretName != job.GetName()+"-ssh" {
			p.Errorf("what pod %s has at %s is %v, want the operator's Secret", pod.Name, path, pod.Spec.Volumes[v])
			continue
		}
		var files []string
		for _, item := range secret.Items {
			files = append(files, item.Path)
		}
		if diff := cmp.Diff([]string{"id_rsa", "id_rsa.pub", "authorized_keys"}, files); diff != "" {
			p.Errorf("the keys of pod %s (-want +got):\n%s", pod.Name, diff)
		}
		if mode != nil && *secret.DefaultMode != *mode {
			p.Errorf("the mode of the keys of pod %s is %o, want %o", pod.Name, *secret.DefaultMode, *mode)
		}
	}
}
