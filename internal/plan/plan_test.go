package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// load reads one job, of which only the end of the spec is given.
func load(t *testing.T, spec string) *job.Job {
	t.Helper()
	text := "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j, namespace: " +
		"ml}\nspec: {image: 'x:1', command: [x], " + spec + "}\n"
	jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return jobs[0]
}

func of(t *testing.T, spec string) *Job {
	t.Helper()
	j := load(t, spec)
	return Of(j, generators.Generate(j))
}

func summary(j *Job) (out []string) {
	for _, s := range j.PodSets {
		var names, addresses []string
		for _, p := range s.Pods {
			names = append(names, p.Name)
			if p.Address != "" {
				addresses = append(addresses, p.Address)
			}
		}
		out = append(out, fmt.Sprintf("%s %s %d/%d %s %s [%s]", s.Role, s.Owner, s.Required, s.Replicas,
			strings.Join(ranges(names), ","), strings.Join(ranges(addresses), ","), ports(s.Ports)))
	}
	return out
}

func TestPods(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want []string
	}{
		"an Indexed Job": {
			"workers: {min: 2, max: 3}",
			[]string{"worker Job/j-worker 2/3 j-worker-{0..2}-* " +
				"j-worker-{0..2}.j-worker.ml.svc.cluster.local [29400 rendezvous]"},
		},
		"a gang's minimum": {
			"workers: {min: 2, max: 6}, gang: {scheduler: koordinator, minAvailable: 4}",
			[]string{"worker Job/j-worker 4/6 j-worker-{0..5}-* " +
				"j-worker-{0..5}.j-worker.ml.svc.cluster.local [29400 rendezvous]"},
		},
		"no gang after all": {
			"workers: {min: 2, max: 6}, gang: {scheduler: none, minAvailable: 4}",
			[]string{"worker Job/j-worker 2/6 j-worker-{0..5}-* " +
				"j-worker-{0..5}.j-worker.ml.svc.cluster.local [29400 rendezvous]"},
		},
		"bare pods, each with a Service, are one set": {
			"target: pods, workers: {replicas: 3, firstIndex: 1}, network: {clusterDomain: acme.test}",
			[]string{"worker Pod 3/3 j-worker-{1..3} j-worker-{1..3}.ml.svc.acme.test [29400 rendezvous]"},
		},
		"a StatefulSet and a Job that is not indexed": {
			"workers: {replicas: 1}, rendezvous: {backend: etcd, store: etcd, etcd: {replicas: 3, storage: {size: " +
				"4Gi}}}, storage: [{mountPath: /d, dynamic: {size: 1Gi}, dataset: {url: 'https://a.test/d.zip'}}]",
			[]string{
				"etcd StatefulSet/j-etcd 3/3 j-etcd-{0..2} j-etcd-{0..2}.j-etcd-peer.ml.svc.cluster.local [2379 " +
					"client, 2380 peer, 2381 metrics]",
				"prefetch Job/j-prefetch-data 1/1 j-prefetch-data-*  []",
				"worker Job/j-worker 1/1 j-worker-0-* j-worker-0.j-worker.ml.svc.cluster.local []",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, summary(of(t, c.spec))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCustom: the pods of a custom resource are planned alike from its Go type and from a map, which is what an overlay
// leaves of it.
func TestCustom(t *testing.T) {
	two := int32(2)
	template := batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
		Parallelism: &two, Completions: &two,
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/component": "worker"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "worker", Ports: []corev1.ContainerPort{{ContainerPort: 53, Protocol: corev1.ProtocolUDP}}},
			}},
		},
	}}
	on := true
	typed := apis.New(apis.JobSetKind, metav1.ObjectMeta{Name: "j", Namespace: "ml"}, apis.JobSetSpec{
		Suspend: &on, ReplicatedJobs: []apis.ReplicatedJob{{Name: "node", Replicas: 2, Template: template}},
	})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range []runtime.Object{typed, unstructuredOf(content)} {
		j := Of(load(t, "workers: {min: 3, max: 4}"),
			[]generators.Concern{{Name: "worker", Objects: []runtime.Object{obj}}})
		want := []string{"worker JobSet/j 3/4 j-node-0-{0..1}-*,j-node-1-{0..1}-* " +
			"j-node-0-{0..1}.j.ml.svc.cluster.local,j-node-1-{0..1}.j.ml.svc.cluster.local [53/UDP]"}
		if diff := cmp.Diff([]string{"j-node-0", "j-node-1"}, j.PodSets[0].Jobs); diff != "" {
			t.Errorf("%T: Jobs (-want +got):\n%s", obj, diff)
		}
		if diff := cmp.Diff(want, summary(j)); diff != "" || !j.Suspended || j.Gang.Pods != 3 {
			t.Errorf("%T: suspended %t, gang %d (-want +got):\n%s", obj, j.Suspended, j.Gang.Pods, diff)
		}
	}
}

func TestSuspended(t *testing.T) {
	for _, target := range []string{"job", "pods"} {
		j := of(t, "target: "+target+", suspend: true, workers: {replicas: 2}, rendezvous: "+
			"{backend: etcd, store: etcd}")
		if !j.Suspended || j.PodSets[0].Suspended || !j.PodSets[1].Suspended {
			t.Errorf("%s: job %t, etcd %t, workers %t", target, j.Suspended, j.PodSets[0].Suspended,
				j.PodSets[1].Suspended)
		}
	}
}

func TestRequests(t *testing.T) {
	for name, c := range map[string]struct{ pod, want string }{
		"containers add up, a limit alone counts": {
			"containers: [{name: a, resources: {requests: {cpu: 500m}, limits: {nvidia.com/gpu: 2}}}, {name: b, " +
				"resources: {requests: {cpu: 1, memory: 1Gi}}}]",
			"{cpu: 1500m, memory: 1Gi, nvidia.com/gpu: 2}",
		},
		"the larger of init containers and containers": {
			"initContainers: [{name: i, resources: {requests: {cpu: 4, memory: 1Mi}}}, {name: k, resources: " +
				"{requests: {cpu: 3}}}], containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]",
			"{cpu: 4, memory: 1Gi}",
		},
		"a sidecar runs beside the containers": {
			"initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}], containers: " +
				"[{name: a, resources: {requests: {cpu: 2}}}]",
			"{cpu: 3}",
		},
		"overhead comes on top, zero is left out": {
			"overhead: {memory: 120Mi}, containers: [{name: a, resources: {requests: {cpu: 0, memory: 8Mi}}}]",
			"{memory: 128Mi}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{}
			var want corev1.ResourceList
			if err := sigsyaml.Unmarshal([]byte("spec: {"+c.pod+"}"), pod); err != nil {
				t.Fatal(err)
			}
			if err := sigsyaml.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			complete(pod)
			if diff := cmp.Diff(want, requests(pod)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTotals: what fetches data is there at first, and gone later.
func TestTotals(t *testing.T) {
	r := of(t, "workers: {replicas: 2}, resources: {cpu: 4, gpu: 8, memory: 4Gi}, rendezvous: {backend: etcd, store: "+
		"etcd}, roles: {etcd: {resources: {cpu: 1}}}, storage: [{mountPath: /d, dynamic: {size: 1Gi}, dataset: {url: "+
		"'https://a.test/d.zip'}}]").Requests
	for what, c := range map[string]struct {
		list corev1.ResourceList
		want string
	}{
		"training": {r.Training, "8"}, "helpers": {r.Helpers, "1500m"}, "peak": {r.Peak, "9500m"},
		"steady": {r.Steady, "9"},
	} {
		if got := c.list.Cpu().String(); got != c.want {
			t.Errorf("%s: cpu %s, want %s", what, got, c.want)
		}
	}
	if gpus := r.Peak["nvidia.com/gpu"]; gpus.Value() != 16 {
		t.Errorf("%s GPUs", gpus.String())
	}
}

func TestRanges(t *testing.T) {
	for in, want := range map[string]string{
		"a-0 a-1 a-2":           "a-{0..2}",
		"a-0-* a-1-*":           "a-{0..1}-*",
		"a-0.s.ml.svc a-1.s.ml": "a-0.s.ml.svc a-1.s.ml",
		"a-0.s a-1.s a-3.s":     "a-{0..1}.s a-3.s",
		"a-* a-* b":             "a-* b",
		"a-01 a-02":             "a-01 a-02",
		"a-9 b-10":              "a-9 b-10",
		"web":                   "web",
	} {
		if got := strings.Join(ranges(strings.Fields(in)), " "); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for in, want := range map[string]string{
		"31574036Ki": "30.1Gi", "1Gi": "1Gi", "512Mi": "512Mi", "1536Mi": "1.5Gi", "100": "100", "2500m": "2500m",
		"1000000000": "1G", "900Ki": "900Ki",
	} {
		var list corev1.ResourceList
		if err := sigsyaml.Unmarshal([]byte("memory: '"+in+"'"), &list); err != nil {
			t.Fatal(err)
		}
		if got := short(list["memory"]); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestNotes(t *testing.T) {
	j := of(t, `workers: {replicas: 2}, placement: {runtimeClass: kata}, podTemplate: {spec: {
		topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}],
		affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
			{topologyKey: rack}, {topologyKey: kubernetes.io/hostname}]}}}}`)
	want := []string{
		"worker: the overhead of RuntimeClass kata is not counted",
		"worker: pod anti-affinity by rack is not looked at",
		"worker: the topology spread by zone is not looked at",
	}
	if diff := cmp.Diff(want, j.Notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func unstructuredOf(content map[string]any) runtime.Object {
	return &unstructured.Unstructured{Object: content}
}
