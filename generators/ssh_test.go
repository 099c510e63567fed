package generators_test

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// horovod is a job of Horovod with more lines of spec.
func horovod(t *testing.T, spec ...string) *job.Job {
	t.Helper()
	return load(t, jobText(append([]string{"framework: horovod"}, spec...)...))
}

// after is the word behind another, "" where that is missing.
func after(words []string, word string) string {
	if i := slices.Index(words, word); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}

// TestSSHPort: daemon, launcher, container, node, Service and probe have one port.
func TestSSHPort(t *testing.T) {
	objs := objects(horovod(t, "ssh: {port: 2345}", "network: {host: true}"))
	c := worker(t, objs)
	port := c.Ports[0]
	if port.ContainerPort != 2345 || port.HostPort != 2345 || port.Name != c.ReadinessProbe.TCPSocket.Port.StrVal {
		t.Errorf("port %+v, probe %+v", port, c.ReadinessProbe.TCPSocket.Port)
	}
	if got := env(t, c)["TEGEN_SSH_PORT"]; got != "2345" {
		t.Errorf("sshd listens on %s", got)
	}
	if got := after(c.Args, "-p"); got != "2345" {
		t.Errorf("horovodrun dials %s", got)
	}
	if s := find[*corev1.Service](t, objs, "resnet-worker").Spec.Ports[0]; s.Port != 2345 ||
		s.TargetPort.StrVal != port.Name {
		t.Errorf("Service %+v", s)
	}
}

// TestSlots: -np is the sum of all slots, and the host file and -H name the pods as DNS does.
func TestSlots(t *testing.T) {
	for _, c := range []struct {
		spec []string
		np   string
		last string // host, slots
	}{
		{
			[]string{"workers: {replicas: 4, processes: 4}"},
			"16",
			"resnet-worker-3.resnet-worker.ml.svc.cluster.local slots=4",
		},
		{
			[]string{"workers: {replicas: 3, processes: auto}", "resources: {gpu: 8, cpu: 1, memory: 4Gi}"},
			"24",
			"resnet-worker-2.resnet-worker.ml.svc.cluster.local slots=8",
		},
		{
			[]string{"workers: {replicas: 2, processes: gpu}", "resources: {gpu: 2, cpu: 1, memory: 4Gi}"},
			"4",
			"resnet-worker-1.resnet-worker.ml.svc.cluster.local slots=2",
		},
		{
			[]string{"workers: {replicas: 3, min: 2, max: 4, processes: 2}"},
			"4",
			"resnet-worker-3.resnet-worker.ml.svc.cluster.local slots=2",
		},
		{[]string{"network: {clusterDomain: example.org}"}, "2", "resnet-worker-1.resnet-worker.ml.svc.example.org " +
			"slots=1"},
	} {
		objs := objects(horovod(t, c.spec...))
		if got := after(worker(t, objs).Args, "-np"); got != c.np {
			t.Errorf("%q: -np %s, want %s", c.spec, got, c.np)
		}
		lines := strings.Split(strings.TrimSpace(find[*corev1.ConfigMap](t, objs, "resnet-ssh").Data["hostfile"]), "\n")
		if got := lines[len(lines)-1]; got != c.last {
			t.Errorf("%q: last host %q, want %q", c.spec, got, c.last)
		}
	}
	// Horovod 0.16 reads no file.
	args := worker(t, objects(load(t, jobText("framework: bytescheduler",
		"workers: {replicas: 2, processes: 4}")))).Args
	if got, want := after(args,
		"-H"), "resnet-worker-0.resnet-worker.ml.svc.cluster.local:4,"+
		"resnet-worker-1.resnet-worker.ml.svc.cluster.local:4"; got != want {
		t.Errorf("-H %s, want %s", got, want)
	}
}

// TestHashedHosts: the host file names the pods of the Job as it is called with a hash.
func TestHashedHosts(t *testing.T) {
	for _, framework := range []string{"horovod", "bytescheduler"} {
		objs := objects(load(t, jobText("framework: "+framework, "hashedNames: true")))
		var name string
		for _, j := range all[*batchv1.Job](objs) {
			if j.Labels["app.kubernetes.io/component"] == "worker" {
				name = j.Name
			}
		}
		// A changed job's is another.
		config := find[*corev1.ConfigMap](t, objs, "resnet-ssh"+strings.TrimPrefix(name, "resnet-worker"))
		hosts := config.Data["hostfile"]
		if !strings.HasPrefix(hosts, name+"-0.") || strings.HasPrefix(name+"-0", "resnet-worker-0") {
			t.Errorf("Job %s has hosts\n%s", name, hosts)
		}
		if list := after(worker(t, objs).Args, "-H"); framework == "bytescheduler" &&
			!strings.HasPrefix(list, name+"-0.") {
			t.Errorf("Job %s has hosts %s", name, list)
		}
	}
}

// TestHostListFits: the most hosts that are allowed fit into one argument of 128 KiB, and one more would not.
func TestHostListFits(t *testing.T) {
	for _, more := range []string{
		"target: job", "hashedNames: true", "target: mpijob",
		"network: {clusterDomain: example.org}",
	} {
		at := func(n int) ([]*job.Job, error) {
			spec := jobText("framework: bytescheduler", fmt.Sprintf("workers: {replicas: %d, processes: 4}", n), more)
			return schema.Load([]schema.Source{{Name: "job.yaml", Data: []byte(spec)}})
		}
		n := sort.Search(4096, func(n int) bool { _, err := at(n + 1); return err != nil }) // the most
		jobs, err := at(n)
		if err != nil {
			t.Fatal(err)
		}
		var list string
		for _, p := range pods(objects(jobs[0], "worker")) {
			for _, c := range p.spec.Containers {
				list += after(c.Args, "-H")
			}
		}
		hosts := strings.Split(list, ",")
		if last := len(hosts[len(hosts)-1]) + 1; len(hosts) != n || len(list) >= 128<<10 || len(list)+last < 128<<10 {
			t.Errorf("%s: %d hosts of %d allowed, %d bytes", more, len(hosts), n, len(list))
		}
	}
}

// TestHashedSSH: a changed command is a new Job with a ConfigMap and an immutable Job of keys of its own, and the
// Secret that was there.
func TestHashedSSH(t *testing.T) {
	names := func(command string) (out []string) {
		objs := objects(horovod(t, "hashedNames: true", "args: ["+command+"]"))
		out = append(out, all[*corev1.ConfigMap](objs)[0].Name, all[*corev1.Secret](objs)[0].Name)
		for _, j := range all[*batchv1.Job](objs) {
			out = append(out, j.Name)
		}
		return out
	}
	before, after := names("a"), names("b")
	if len(before) != 4 {
		t.Fatalf("%q", before)
	}
	for i := range before {
		if same := before[i] == after[i]; same != (before[i] == "resnet-ssh") {
			t.Errorf("%s became %s", before[i], after[i])
		}
	}
}

// TestKeysAreNobodys: the Secret comes without data, and one account may change this one and no other.
func TestKeysAreNobodys(t *testing.T) {
	objs := objects(horovod(t))
	if s := find[*corev1.Secret](t, objs, "resnet-ssh"); len(s.Data)+len(s.StringData) > 0 || s.Type != "" {
		t.Errorf("the Secret has data, or a type that asks for some: %+v", s)
	}
	want := []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"},
		ResourceNames: []string{"resnet-ssh"}, Verbs: []string{"get", "patch"},
	}}
	if diff := cmp.Diff(want, find[*rbacv1.Role](t, objs, "resnet-keygen").Rules); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, p := range pods(objs) {
		if token := p.spec.AutomountServiceAccountToken; *token != (p.spec.ServiceAccountName == "resnet-keygen") {
			t.Errorf("%s, account %s: token mounted: %t", p.from, p.spec.ServiceAccountName, *token)
		}
	}
	for what, spec := range map[string][]string{
		"own keys": {"ssh: {secret: mine}"}, "operator's keys": {"target: mpijob"},
		"one worker": {"workers: {replicas: 1}"},
	} {
		objs := objects(horovod(t, spec...))
		if n := len(all[*corev1.Secret](objs)) + len(all[*rbacv1.Role](objs)); n > 0 {
			t.Errorf("%s: %d Secrets and Roles", what, n)
		}
	}
}

// TestScaleHorovod: of an elastic job, one worker more changes numbers alone; a plain one has another -np.
func TestScaleHorovod(t *testing.T) {
	at := func(target string, n int) *job.Job {
		return horovod(t, "target: "+target, fmt.Sprintf("workers: {replicas: %d, min: 2, max: 8}", n))
	}
	for target, want := range map[string][]string{
		"job":    {"Job/resnet-worker spec.completions", "Job/resnet-worker spec.parallelism"},
		"mpijob": {"MPIJob/resnet spec.mpiReplicaSpecs.Worker.replicas"},
	} {
		if diff := cmp.Diff(want, changed(t, objects(at(target, 3)), objects(at(target, 4)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

// TestMPIGang: the launcher is one member more, and is not made after the workers that would wait for it.
func TestMPIGang(t *testing.T) {
	for gang, want := range map[string]*apis.SchedulingPolicy{
		"gang: {scheduler: volcano, queue: q, priority: p}": {
			MinAvailable: new(int32(4)), Queue: "q",
			PriorityClass: "p",
		},
		"gang: {scheduler: coscheduling, waitTimeout: 1m}": {
			MinAvailable:           new(int32(4)),
			ScheduleTimeoutSeconds: new(int32(60)),
			// no sum of the pods' requests, by which the gang would be refused before nodes are looked at
			MinResources: corev1.ResourceList{"pods": *resource.NewQuantity(4, resource.DecimalSI)},
		},
		"gang: {scheduler: koordinator}":     nil,
		"gang: {scheduler: kueue, queue: q}": nil,
	} {
		m := find[*apis.MPIJob](t, objects(horovod(t, "target: mpijob", "workers: {replicas: 3}", gang)), "resnet")
		if diff := cmp.Diff(want, m.Spec.RunPolicy.SchedulingPolicy); diff != "" {
			t.Errorf("%s (-want +got):\n%s", gang, diff)
		}
		if m.Spec.LauncherCreationPolicy != "AtStartup" {
			t.Errorf("%s: the launcher is made %s", gang, m.Spec.LauncherCreationPolicy)
		}
	}
}

// TestLauncherHasWhatItHandsOn: horovodrun gives its own environment to all processes.
func TestLauncherHasWhatItHandsOn(t *testing.T) {
	objs := objects(load(t, jobText("framework: bytescheduler", "target: mpijob", "env: [{name: X, value: x}]",
		"bytescheduler: {partitionTuning: true, rootPort: 1234}")))
	launcher := find[*apis.MPIJob](t, objs, "resnet").Spec.MPIReplicaSpecs[apis.MPILauncher].Template.Spec.Containers[0]
	got := env(t, launcher)
	for name, want := range map[string]string{
		"X": "x", "USE_BYTESCHEDULER": "1", "BYTESCHEDULER_PARTITION_TUNING": "1",
		"BYTESCHEDULER_ROOT_IP": "resnet-worker-0.resnet.ml.svc", "BYTESCHEDULER_ROOT_PORT": strconv.Itoa(1234),
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
