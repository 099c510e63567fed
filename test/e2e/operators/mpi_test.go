package operators

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/test/cluster"
)

var mpiOperator = program{
	name: "MPI Operator", kinds: []string{"MPIJob"}, definitions: []string{"mpijobs.kubeflow.org/v2beta1"},
	log: "mpi-operator", controller: "app.kubernetes.io/name=mpi-operator",
	probe: func(p *place) {
		objects := p.golden("horovod-mpijob-suspended")
		p.apply(objects...)
		p.condition(p.the("MPIJob", objects), "Suspended")
	},
	scenarios: []scenario{
		{"suspended, resumed, done", mpiLife},
		{"launcher waits", mpiWaits},
		{"variables", mpiVariables},
		{"roles", mpiRoles},
		{"failures are counted", mpiFails},
		{"lost worker", mpiLoses},
		{"what is cleaned", mpiCleans},
		{"what expires", mpiExpires},
		{"mpirun of three implementations", mpiFramework},
		{"mpirun's failures", mpiFrameworkFails},
		{"sshd of the image's own", mpiImages},
		{"sidecar", mpiSidecars},
		{"managed elsewhere", elsewhere("MPIJob", "mpijob", "  framework: mpi\n")},
		{"gangs", mpiGang},
		{"a gang, 4 of 4", mpiPlaced(dialect.allOrNone)},
		{"two gangs contend", mpiPlaced(dialect.contend)},
	},
}

// launchers selects the pods that start the others' processes.
const launchers = "app.kubernetes.io/component=launcher"

// mpiLife: while it is suspended there are names and keys and no pods; one field starts and stops launcher and workers;
// when the launcher has succeeded, the workers go.
func mpiLife(p *place) {
	p.nodes(2, 0, "")
	objects := p.golden("horovod-mpijob-suspended")
	p.apply(objects...)
	job := p.the("MPIJob", objects)
	p.condition(job, "Suspended")
	p.remains("no pod", func() error { return mpiPods(p, job, 0, 0) })
	if launcher := mpiLauncherJob(p, job); launcher == nil || !*launcher.Spec.Suspend {
		p.Errorf("the launcher's Job is %v, want one that is suspended", launcher)
	}
	mpiHelpers(p, job, "later-mpi-worker-0.later-mpi.training.svc slots=1\n"+
		"later-mpi-worker-1.later-mpi.training.svc slots=1\n")
	p.set(job, false, "spec", "runPolicy", "suspend")
	p.foretold("horovod-mpijob-suspended")
	p.condition(job, "Running")
	p.set(job, true, "spec", "runPolicy", "suspend")
	p.eventually("no pod to be left", func() error { return mpiPods(p, job, 0, 0) })
	p.set(job, false, "spec", "runPolicy", "suspend")
	p.running(2, job.GetNamespace(), workers)
	p.end(cluster.OutcomeSucceeded, p.running(1, job.GetNamespace(), launchers)...)
	p.condition(job, "Succeeded")
	p.running(0, job.GetNamespace(), workers)
}

// mpiHelpers checks what the operator makes beside pods: the host file that the launcher is told of, keys in the two
// forms that its pods mount, and a Service for their names.
func mpiHelpers(p *place, job *unstructured.Unstructured, hosts string) {
	p.Helper()
	mpiHosts(p, job, hosts)
	core, name := p.client.CoreV1(), job.GetName()
	secret, err := core.Secrets(job.GetNamespace()).Get(p.Context(), name+"-ssh", metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	if !bytes.Contains(secret.Data[corev1.SSHAuthPrivateKey], []byte("PRIVATE KEY")) ||
		!bytes.HasPrefix(secret.Data["ssh-publickey"], []byte("ecdsa-sha2-")) {
		p.Errorf("the Secret of the keys has %v, want a pair of ECDSA", slices.Sorted(maps.Keys(secret.Data)))
	}
	service, err := core.Services(job.GetNamespace()).Get(p.Context(), name, metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	if service.Spec.ClusterIP != corev1.ClusterIPNone || service.Spec.PublishNotReadyAddresses {
		p.Errorf("the Service is %v, want a headless one that names pods when they are ready", service.Spec)
	}
}

// mpiHosts checks the host file that the operator makes.
func mpiHosts(p *place, job *unstructured.Unstructured, hosts string) {
	p.Helper()
	config, err := p.client.CoreV1().ConfigMaps(job.GetNamespace()).Get(p.Context(), job.GetName()+"-config",
		metav1.GetOptions{})
	if err != nil {
		p.Fatal(err)
	}
	if diff := cmp.Diff(hosts, config.Data["hostfile"]); diff != "" {
		p.Errorf("host file (-want +got):\n%s", diff)
	}
}

// mpiWaits: the launcher is not made before every worker is ready.
func mpiWaits(p *place) {
	p.nodes(3, 4, "")
	objects := p.golden("horovod-mpijob-minimal")
	p.apply(objects...)
	job := p.the("MPIJob", objects)
	p.running(3, job.GetNamespace(), workers)
	p.remains("no launcher", func() error {
		if launcher := mpiLauncherJob(p, job); launcher != nil {
			return fmt.Errorf("%s is there, and a worker has no node", launcher.Name)
		}
		return mpiPods(p, job, 0, 4)
	})
	p.nodes(1, 4, "")
	p.foretold("horovod-mpijob-minimal")
	p.condition(job, "Running")
}

// mpiVariables: pods have ours as they were rendered, and behind them the operator's. None is there twice: those of its
// names are refused in a job. The last of two would win, which is the operator's.
func mpiVariables(p *place) {
	p.nodes(3, 4, "")
	objects := p.golden("bytescheduler-mpijob")
	p.apply(objects...)
	job := p.the("MPIJob", objects)
	p.foretold("bytescheduler-mpijob")
	launcher := p.running(1, job.GetNamespace(), launchers)[0].Spec.Containers[0]
	mpiAdded(p, job, "Launcher", launcher.Env, map[string]string{
		"K_MPI_JOB_ROLE":                    "launcher",
		"OMPI_MCA_orte_keep_fqdn_hostnames": "true",
		"OMPI_MCA_orte_default_hostfile":    "/etc/mpi/hostfile",
		"OMPI_MCA_plm_rsh_args":             "-o ConnectionAttempts=10",
		"OMPI_MCA_orte_set_default_slots":   "4",
		"NVIDIA_VISIBLE_DEVICES":            "",
		"NVIDIA_DRIVER_CAPABILITIES":        "",
	})
	worker := p.running(2, job.GetNamespace(), workers)[1].Spec.Containers[0]
	mpiAdded(p, job, "Worker", worker.Env, map[string]string{"K_MPI_JOB_ROLE": "worker"})
	for _, c := range []corev1.Container{launcher, worker} {
		for path, want := range map[string]bool{"/tegen/keys": true, "/etc/mpi": c.Name == "launcher"} {
			if got := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.MountPath == path
			}); got != want {
				p.Errorf("that %s is mounted in the %s is %v, want %v", path, c.Name, got, want)
			}
		}
	}
	// Of two of a name the later wins, which is the operator's: so tegen refuses these names.
	again := p.rendered("again", mpiSpec)
	mpiLauncherVariable(p, p.the("MPIJob", again), "NVIDIA_VISIBLE_DEVICES", "all")
	p.apply(again...)
	env := p.running(1, p.namespace, launchers)[0].Spec.Containers[0].Env
	var values []string
	for _, e := range env {
		if e.Name == "NVIDIA_VISIBLE_DEVICES" {
			values = append(values, e.Value)
		}
	}
	if diff := cmp.Diff([]string{"all", ""}, values); diff != "" {
		p.Errorf("NVIDIA_VISIBLE_DEVICES of a launcher that sets it (-want +got):\n%s", diff)
	}
}

// mpiSpec is a job of two workers.
const mpiSpec = `  framework: horovod
  target: mpijob
  image: registry.example/horovod:1
  command: [python, train.py]
  workers: {replicas: 2}
  resources: {cpu: 100m, memory: 64Mi, shm: 16Mi, ephemeralStorage: 1Gi}
`

// mpiAdded checks that a container has the variables of its template, in their order, and then those of the operator.
func mpiAdded(p *place, job *unstructured.Unstructured, role string, got []corev1.EnvVar, added map[string]string) {
	p.Helper()
	ours := mpiContainer(p, job, role)["env"].([]any)
	for i, o := range ours {
		if want := o.(map[string]any)["name"]; i >= len(got) || got[i].Name != want {
			p.Fatalf("variable %d of the %s is not %v: %v", i, role, want, got)
		}
	}
	theirs := map[string]string{}
	for _, e := range got[len(ours):] {
		theirs[e.Name] = e.Value
	}
	if diff := cmp.Diff(added, theirs); diff != "" {
		p.Errorf("variables that the operator adds to the %s (-want +got):\n%s", role, diff)
	}
}

func mpiContainers(role string) []string {
	return []string{"spec", "mpiReplicaSpecs", role, "template", "spec", "containers"}
}

// mpiContainer is the only container of a role, as it is in an object.
func mpiContainer(p *place, job *unstructured.Unstructured, role string) map[string]any {
	p.Helper()
	list, _, err := unstructured.NestedSlice(job.Object, mpiContainers(role)...)
	if err != nil || len(list) != 1 {
		p.Fatalf("the %s has %d containers: %v", role, len(list), err)
	}
	return list[0].(map[string]any)
}

// mpiLauncherVariable adds a variable to the launcher of a job that is not applied yet.
func mpiLauncherVariable(p *place, job *unstructured.Unstructured, name, value string) {
	p.Helper()
	c := mpiContainer(p, job, "Launcher")
	c["env"] = append(c["env"].([]any), map[string]any{"name": name, "value": value})
	if err := unstructured.SetNestedSlice(job.Object, []any{c}, mpiContainers("Launcher")...); err != nil {
		p.Fatal(err)
	}
}

// mpiRoles: the launcher runs where it is told to, away from the workers' nodes.
func mpiRoles(p *place) {
	p.nodes(2, 4, "")
	objects := p.golden("roles-mpijob")
	p.apply(objects...)
	job := p.the("MPIJob", objects)
	p.running(2, job.GetNamespace(), workers)
	p.eventually("a launcher", func() error { return mpiPods(p, job, 1, 2) })
	p.remains("that the launcher waits for a node of its pool", func() error {
		if on := mpiOf(p, job, launchers)[0].Spec.NodeName; on != "" {
			return fmt.Errorf("it is on %s", on)
		}
		return nil
	})
	node := p.running(2, job.GetNamespace(), workers)[0].Spec.NodeName
	p.change(node, `{"metadata":{"labels":{"pool":"system"}}}`)
	p.foretold("roles-mpijob")
}

// mpiFails: the launcher is tried once more than failures are allowed; then the job has failed, and its workers go.
func mpiFails(p *place) {
	p.nodes(1, 0, "")
	objects := p.rendered("fails", mpiSpec+"  failure: {restarts: 1}\n")
	job := p.the("MPIJob", objects)
	p.apply(objects...)
	for range 2 {
		p.end(cluster.OutcomeFailed, p.running(1, p.namespace, launchers)...)
		p.running(0, p.namespace, launchers)
	}
	p.condition(job, "Failed")
	p.running(0, p.namespace, workers)
	if tried := mpiOf(p, job, launchers); len(tried) != 2 || tried[0].Status.Phase != corev1.PodFailed ||
		tried[1].Status.Phase != corev1.PodFailed {
		p.Errorf("%d launchers were tried and kept, want 2 with their logs", len(tried))
	}
	p.remains("nothing is tried again", func() error { return mpiPods(p, job, 2, 0) })
}

// mpiLoses: a worker that is deleted is made again under its name, and no failure is counted. One that failed by
// itself, as those do that a kubelet evicts, is left: its name is taken until somebody deletes it.
func mpiLoses(p *place) {
	p.nodes(1, 0, "")
	objects := p.rendered("loses", mpiSpec)
	job := p.the("MPIJob", objects)
	p.apply(objects...)
	launcher := p.running(1, p.namespace, launchers)[0]
	lost := p.running(2, p.namespace, workers)[1]
	if err := p.client.CoreV1().Pods(p.namespace).Delete(p.Context(), lost.Name, metav1.DeleteOptions{}); err != nil {
		p.Fatal(err)
	}
	p.eventually("another pod of the name "+lost.Name, func() error {
		pods, err := p.pods(p.namespace, workers)
		if err == nil && (len(pods) != 2 || pods[1].UID == lost.UID || pods[1].Status.Phase != corev1.PodRunning) {
			err = fmt.Errorf("%d pods, the last %s", len(pods), pods[len(pods)-1].UID)
		}
		return err
	})
	if again := p.running(1, p.namespace, launchers)[0]; again.UID != launcher.UID {
		p.Error("the launcher is another one too")
	}
	p.end(cluster.OutcomeFailed, p.running(2, p.namespace, workers)[0])
	p.running(1, p.namespace, workers)
	p.remains("the failed worker is left", func() error { return mpiPods(p, job, 1, 2) })
}

// mpiCleans: of the workers of a job that is over, those that still run go, or all, or none.
func mpiCleans(p *place) {
	p.nodes(1, 0, "")
	for policy, want := range map[string]int{"running": 1, "all": 0, "none": 2} {
		objects := p.rendered("cleans-"+policy, mpiSpec+"  cleanPods: "+policy+"\n")
		job := p.the("MPIJob", objects)
		p.apply(objects...)
		launcher := p.running(1, p.namespace, "tegen.dev/job="+job.GetName()+","+launchers)
		trained := p.running(2, p.namespace, "tegen.dev/job="+job.GetName()+","+workers)
		p.end(cluster.OutcomeSucceeded, trained[0])
		p.running(1, p.namespace, "tegen.dev/job="+job.GetName()+","+workers)
		p.end(cluster.OutcomeSucceeded, launcher...)
		p.condition(job, "Succeeded")
		p.eventually("cleanPods: "+policy, func() error { return mpiPods(p, job, 1, want) })
		p.remains("cleanPods: "+policy, func() error { return mpiPods(p, job, 1, want) })
	}
}

// mpiExpires: what is deleted after a time is the launcher's Job, with its pod and logs; the MPIJob stays, and starts
// no other.
func mpiExpires(p *place) {
	p.nodes(1, 0, "")
	objects := p.rendered("expires", mpiSpec+"  ttlAfterFinished: 2s\n")
	job := p.the("MPIJob", objects)
	p.apply(objects...)
	p.end(cluster.OutcomeSucceeded, p.running(1, p.namespace, launchers)...)
	p.condition(job, "Succeeded")
	p.eventually("the launcher's Job to be gone", func() error {
		if launcher := mpiLauncherJob(p, job); launcher != nil {
			return fmt.Errorf("%s is there", launcher.Name)
		}
		return nil
	})
	p.remains("nothing runs again", func() error { return mpiPods(p, job, 0, 0) })
	p.live(job)
}

// mpiLauncherJob is the Job of a job's launcher; nil where there is none.
func mpiLauncherJob(p *place, job *unstructured.Unstructured) *batchv1.Job {
	p.Helper()
	name := job.GetName() + "-launcher"
	launcher, err := p.client.BatchV1().Jobs(job.GetNamespace()).Get(p.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		p.Fatal(err)
	}
	return launcher
}

// mpiPods checks how many pods a job has.
func mpiPods(p *place, job *unstructured.Unstructured, wantLaunchers, wantWorkers int) error {
	p.Helper()
	if l, w := len(mpiOf(p, job, launchers)), len(mpiOf(p, job, workers)); l != wantLaunchers || w != wantWorkers {
		return fmt.Errorf("there are %d launchers and %d workers, want %d and %d", l, w, wantLaunchers, wantWorkers)
	}
	return nil
}

// mpiOf are the pods of a job that a selector matches.
func mpiOf(p *place, job *unstructured.Unstructured, selector string) []corev1.Pod {
	p.Helper()
	pods, err := p.pods(job.GetNamespace(), "tegen.dev/job="+job.GetName()+","+selector)
	if err != nil {
		p.Fatal(err)
	}
	return pods
}
