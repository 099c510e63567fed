package generators_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/apis"
)

// psRoles are the roles of ps-lite in the order of their Jobs.
var psRoles = []string{"scheduler", "server", "worker"}

// TestParameterServers: every pod gets its role, the numbers of the others, and the one pod that is the scheduler,
// whose name resolves before it is ready.
func TestParameterServers(t *testing.T) {
	for _, hashed := range []bool{false, true} {
		objs := objects(load(t, jobText("framework: mxnet", "workers: {replicas: 4}",
			"servers: {replicas: 2, port: 9100}",
			"resources: {gpu: 1, cpu: 1, memory: 4Gi}", fmt.Sprintf("hashedNames: %t", hashed))))
		jobs := all[*batchv1.Job](objs)
		if len(jobs) != 3 {
			t.Fatalf("%d Jobs", len(jobs))
		}
		for i, role := range psRoles {
			j := jobs[i]
			c := j.Spec.Template.Spec.Containers[0]
			got := env(t, c)
			for name, want := range map[string]string{
				"DMLC_ROLE":           role,
				"DMLC_PS_ROOT_URI":    jobs[0].Name + "-0.resnet-scheduler.ml.svc.cluster.local",
				"DMLC_PS_ROOT_PORT":   "9100",
				"DMLC_NUM_SERVER":     "2",
				"DMLC_NUM_WORKER":     "4",
				"DMLC_USE_KUBERNETES": "1",
			} {
				if got[name] != want {
					t.Errorf("%s: %s is %q, want %q", j.Name, name, got[name], want)
				}
			}
			if want := []int32{1, 2, 4}[i]; *j.Spec.Completions != want || *j.Spec.Parallelism != want {
				t.Errorf("%s: %d of %d pods, want %d", j.Name, *j.Spec.Parallelism, *j.Spec.Completions, want)
			}
			if *j.Spec.BackoffLimit != 0 || j.Spec.PodFailurePolicy != nil {
				t.Errorf("%s: makes pods that ps-lite does not take", j.Name)
			}
			if _, gpu := c.Resources.Limits["nvidia.com/gpu"]; gpu != (role == "worker") {
				t.Errorf("%s: holds an accelerator: %t", j.Name, gpu)
			}
			if id := got["DMLC_WORKER_ID"]; (id != "") != (role == "worker") {
				t.Errorf("%s: DMLC_WORKER_ID is %q", j.Name, id)
			}
			s := find[*corev1.Service](t, objs, "resnet-"+role)
			if s.Spec.ClusterIP != corev1.ClusterIPNone || !s.Spec.PublishNotReadyAddresses ||
				j.Spec.Template.Spec.Subdomain != s.Name {
				t.Errorf("%s: names behind %+v", j.Name, s.Spec)
			}
		}
	}
}

// TestParameterServersTogether: what changes one role in a way that no API server lets change makes new Jobs of all.
func TestParameterServersTogether(t *testing.T) {
	names := func(spec ...string) (out []string) {
		for _, j := range all[*batchv1.Job](objects(load(t,
			jobText(append(spec, "framework: mxnet", "hashedNames: true")...)), "worker")) {
			if !strings.HasSuffix(j.Name, j.Annotations["tegen.dev/content-hash"]) {
				t.Errorf("%s has the hash %s", j.Name, j.Annotations["tegen.dev/content-hash"])
			}
			out = append(out, j.Name)
		}
		return out
	}
	before, after := names(), names("roles: {server: {resources: {cpu: 3}}}")
	for i := range psRoles {
		if before[i] == after[i] {
			t.Errorf("%s is the same Job with other servers", before[i])
		}
	}
	if diff := cmp.Diff(before, names("suspend: true")); diff != "" {
		t.Errorf("suspension changes names:\n%s", diff)
	}
}

// TestSuspendRoles: starting a suspended job changes one field of each workload.
func TestSuspendRoles(t *testing.T) {
	for target, want := range map[string][]string{
		"job": {
			"Job/resnet-scheduler spec.suspend", "Job/resnet-server spec.suspend",
			"Job/resnet-worker spec.suspend",
		},
		"mxjob": {"MXJob/resnet spec.runPolicy.suspend"},
	} {
		render := func(suspend bool) []string {
			at := func(s bool) string {
				return jobText("framework: mxnet", "target: "+target, fmt.Sprintf("suspend: %t", s))
			}
			return changed(t, objects(load(t, at(suspend))), objects(load(t, at(!suspend))))
		}
		if diff := cmp.Diff(want, render(true)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

// TestServerProgram: servers run what the workers run, but for what is said of them.
func TestServerProgram(t *testing.T) {
	for _, c := range []struct {
		spec    string
		command []string
		args    []string
		image   string
	}{
		{"servers: {}", []string{"python", "train.py"}, []string{"--epochs=1"}, "example.org/train:1.0"},
		{"servers: {args: [--quiet]}", []string{"python", "train.py"}, []string{"--quiet"}, "example.org/train:1.0"},
		{"servers: {command: [bpslaunch]}", []string{"bpslaunch"}, nil, "example.org/train:1.0"},
		{"servers: {entrypoint: true}", nil, nil, "example.org/train:1.0"},
		{"servers: {entrypoint: true, args: [serve]}", nil, []string{"serve"}, "example.org/train:1.0"},
		{
			"servers: {entrypoint: false}",
			[]string{"python", "train.py"},
			[]string{"--epochs=1"},
			"example.org/train:1.0",
		},
		{"servers: {command: [run], args: [it]}", []string{"run"}, []string{"it"}, "example.org/train:1.0"},
		{
			"roles: {server: {image: 'example.org/ps:2'}, scheduler: {image: 'example.org/ps:2'}}",
			[]string{"python", "train.py"},
			[]string{"--epochs=1"},
			"example.org/ps:2",
		},
		{
			"script: {image: /main.py}\nservers: {args: [--quiet]}",
			[]string{"python", "train.py"},
			[]string{"/main.py", "--quiet"},
			"example.org/train:1.0",
		},
	} {
		for _, p := range pods(objects(load(t, jobText("framework: mxnet", "args: [--epochs=1]", c.spec)),
			"worker"))[:2] {
			got := p.spec.Containers[0]
			if !slices.Equal(got.Command, c.command) || !slices.Equal(got.Args, c.args) || got.Image != c.image {
				t.Errorf("%s: %s runs %q %q of %s", c.spec, p.from, got.Command, got.Args, got.Image)
			}
		}
	}
}

// TestFirstOperator: the names of an MxJob's Jobs are known beforehand, and its containers have no variables.
func TestFirstOperator(t *testing.T) {
	text := namedJob("example-dist-job", "framework: mxnet", "target: mxjob-mlkube", "workers: {replicas: 3}",
		"resources: {gpu: 1, cpu: 1, memory: 4Gi}")
	with := func(line string) *apis.MxJob {
		objs := objects(load(t, text+line))
		for _, p := range pods(objs) {
			if n := len(p.spec.Containers[0].Env); n > 0 {
				t.Errorf("%s: %d variables", p.from, n)
			}
		}
		return all[*apis.MxJob](objs)[0]
	}
	sets := with("  mxnet: {runtimeID: 1kkf}\n").PodSets()
	if len(sets) != 3 || sets[2].Name != "example-dist-job-worker-1kkf" || sets[2].Replicas != 3 {
		t.Errorf("pods of %+v", sets)
	}
	a, b := with(""), with("")
	if len(a.Spec.RuntimeID) != 4 || a.Spec.RuntimeID != b.Spec.RuntimeID {
		t.Errorf("ids %q and %q", a.Spec.RuntimeID, b.Spec.RuntimeID)
	}
	if with("  mxnet: {group: mlkube.io}\n").APIVersion != "mlkube.io/v1beta1" ||
		a.APIVersion != "mxnet.mlkube.io/v1beta1" {
		t.Errorf("API %s", a.APIVersion)
	}
}
