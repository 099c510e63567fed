package generators_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/schema/job"
)

// podForms are jobs of bare pods that differ in the options that their pods get.
var podForms = map[string][]string{
	"c10d":       {},
	"entrypoint": {"launcher: entrypoint", "command: []"},
	"etcd":       {"rendezvous: {backend: etcd, store: etcd}"},
	"external":   {"rendezvous: {backend: etcd-v2, store: external, endpoint: 'etcd.infra.svc:2379'}"},
	"dataset":    {"storage: [{mountPath: /data, dataset: {url: 'http://x.org/a.zip'}}]"},
	"template":   {"podTemplate: {metadata: {annotations: {a: b}}}"},
	"gang":       {"gang: {scheduler: koordinator}"},
	"cosched":    {"gang: {scheduler: coscheduling}"},
	"volcano":    {"gang: {scheduler: volcano, queue: q, priority: p}"},
	"kubernetes": {"gang: {scheduler: kubernetes}", "kubernetesVersion: '1.37'"},
}

// TestScalePods: one more worker is one more pod and Service; those that run are not touched by a byte.
func TestScalePods(t *testing.T) {
	for form, spec := range podForms {
		t.Run(form, func(t *testing.T) {
			at := func(n int) *job.Job {
				return load(t,
					jobText(append(slices.Clone(spec), "target: pods",
						fmt.Sprintf("workers: {replicas: %d, min: 1, max: 8}", n))...))
			}
			for n := 1; n < 8; n++ {
				got := changed(t, objects(at(n)), objects(at(n+1)))
				want := []string{
					fmt.Sprintf("+Pod/resnet-worker-%d", n+1),
					fmt.Sprintf("+Service/resnet-worker-%d", n+1),
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("from %d to %d workers (-want +got):\n%s", n, n+1, diff)
				}
			}
		})
	}
}

func TestScaleJob(t *testing.T) {
	const w = "Job/resnet-worker "
	both := []string{w + "spec.completions", w + "spec.parallelism"}
	for _, c := range []struct {
		what string
		spec []string
		want []string
	}{
		{"plain", nil, both},
		{"etcd", []string{"rendezvous: {backend: etcd, store: etcd}"}, both},
		{"external", []string{"rendezvous: {backend: etcd-v2, store: external, endpoint: 'etcd:2379'}"}, both},
		{"entrypoint", []string{"launcher: entrypoint"}, both},
		{"dataset", []string{"storage: [{mountPath: /data, dataset: {url: 'http://x.org/a.zip'}}]"}, both},
		{"gang", []string{"gang: {scheduler: koordinator}"}, both},
		{"coscheduling", []string{"gang: {scheduler: coscheduling}"}, both},
		{"volcano", []string{"gang: {scheduler: volcano, queue: q}"}, both},
		{"kubernetes", []string{"gang: {scheduler: kubernetes}", "kubernetesVersion: '1.36'"}, both},
	} {
		t.Run(c.what, func(t *testing.T) {
			at := func(n int) *job.Job {
				return load(t,
					jobText(append(slices.Clone(c.spec), fmt.Sprintf("workers: {replicas: %d, min: 1, max: 8}", n))...))
			}
			for n := 1; n < 8; n++ {
				if diff := cmp.Diff(c.want, changed(t, objects(at(n)), objects(at(n+1)))); diff != "" {
					t.Errorf("from %d to %d workers (-want +got):\n%s", n, n+1, diff)
				}
			}
		})
	}
}

// TestSuspend: starting a suspended job changes one field of the Job, or takes one gate off each pod.
func TestSuspend(t *testing.T) {
	render := func(spec []string, suspend bool) []string {
		before := load(t, jobText(append(slices.Clone(spec), fmt.Sprintf("suspend: %t", suspend))...))
		after := load(t, jobText(append(slices.Clone(spec), fmt.Sprintf("suspend: %t", !suspend))...))
		return changed(t, objects(before), objects(after))
	}
	for form, spec := range podForms {
		t.Run("pods/"+form, func(t *testing.T) {
			want := []string{"Pod/resnet-worker-1 spec.schedulingGates", "Pod/resnet-worker-2 spec.schedulingGates"}
			if diff := cmp.Diff(want, render(append(slices.Clone(spec), "target: pods"), true)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for form, spec := range podForms {
		t.Run("job/"+form, func(t *testing.T) {
			if diff := cmp.Diff([]string{"Job/resnet-worker spec.suspend"}, render(spec, true)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("job/hashed", func(t *testing.T) {
		got := render([]string{"hashedNames: true", "gang: {scheduler: koordinator}"}, false)
		if len(got) != 1 || !strings.HasPrefix(got[0], "Job/resnet-worker-") ||
			!strings.HasSuffix(got[0], " spec.suspend") {
			t.Errorf("got %q, want spec.suspend of the one Job", got)
		}
	})
	t.Run("nothing starts", func(t *testing.T) {
		objs := objects(load(t, jobText("suspend: true")))
		if s := find[*batchv1.Job](t, objs, "resnet-worker").Spec.Suspend; s == nil || !*s {
			t.Errorf("spec.suspend is %v", s)
		}
		for _, p := range pods(objects(load(t, jobText("suspend: true", "target: pods")))) {
			if len(p.spec.SchedulingGates) != 1 {
				t.Errorf("%s: gates %v, want one", p.from, p.spec.SchedulingGates)
			}
		}
	})
}

// TestHashedNames: what no API server lets change in a Job is in its name.
func TestHashedNames(t *testing.T) {
	name := func(spec ...string) string {
		t.Helper()
		jobs := all[*batchv1.Job](objects(load(t, jobText(append([]string{"hashedNames: true"}, spec...)...)),
			"worker"))
		if len(jobs) != 1 {
			t.Fatalf("%d Jobs", len(jobs))
		}
		j := jobs[0]
		if hash := j.Annotations["tegen.dev/content-hash"]; hash == "" || j.Name != "resnet-worker-"+hash {
			t.Errorf("name %q, content hash %q", j.Name, hash)
		}
		want := fmt.Sprintf("%s-0.resnet-worker.ml.svc.cluster.local:29400", j.Name)
		if got := env(t, j.Spec.Template.Spec.Containers[0])["PET_RDZV_ENDPOINT"]; got != want {
			t.Errorf("endpoint %q does not name the Job's first pod: %q", got, want)
		}
		if got := j.Spec.Template.Spec.Subdomain; got != "resnet-worker" {
			t.Errorf("subdomain %q, want the Service's name", got)
		}
		return j.Name
	}
	workers := func(n int) string { return fmt.Sprintf("workers: {replicas: %d, min: 1, max: 8}", n) }
	base := name(workers(2))
	for what, spec := range map[string][]string{
		"replicas":         {workers(3)},
		"suspend":          {workers(2), "suspend: true"},
		"restarts":         {workers(2), "failure: {restarts: 3}"},
		"ttl":              {workers(2), "ttlAfterFinished: 1h"},
		"network policies": {workers(2), "network: {policy: false}"},
		"budget":           {workers(2), "disruption: {budget: false}"},
	} {
		if got := name(spec...); got != base {
			t.Errorf("%s: the name changed from %s to %s", what, base, got)
		}
	}
	seen := map[string]string{base: "nothing"}
	for what, spec := range map[string][]string{
		"image":        {workers(2), "image: example.org/train:1.1"},
		"command":      {workers(2), "command: [python, other.py]"},
		"max":          {"workers: {replicas: 2, min: 1, max: 9}"},
		"variable":     {workers(2), "env: [{name: A, value: b}]"},
		"memory":       {workers(2), "resources: {memory: 5Gi}"},
		"port":         {workers(2), "rendezvous: {port: 29500}"},
		"pod template": {workers(2), "podTemplate: {metadata: {annotations: {a: b}}}"},
	} {
		switch got := name2(t, what, spec); {
		case seen[got] != "":
			t.Errorf("%s: the name is that of %s", what, seen[got])
		default:
			seen[got] = what
		}
	}
}

// name2 is the Job's name where its endpoint is not the default one.
func name2(t *testing.T, what string, spec []string) string {
	t.Helper()
	jobs := all[*batchv1.Job](objects(load(t, jobText(append([]string{"hashedNames: true"}, spec...)...)), "worker"))
	if !strings.Contains(env(t, jobs[0].Spec.Template.Spec.Containers[0])["PET_RDZV_ENDPOINT"], jobs[0].Name+"-0.") {
		t.Errorf("%s: the endpoint does not name the hashed pod", what)
	}
	return jobs[0].Name
}

func TestHashedDatasetNames(t *testing.T) {
	name := func(spec string) string {
		t.Helper()
		return all[*batchv1.Job](objects(load(t, jobText("hashedNames: true", spec)), "prefetch"))[0].Name
	}
	const url = "storage: [{mountPath: /data, dataset: {url: 'http://x.org/a.zip'"
	base := name(url + "}}]")
	if again := name(url + "}}]"); again != base {
		t.Errorf("the name is %s, then %s", base, again)
	}
	for _, other := range []string{
		strings.Replace(url, "a.zip", "b.zip", 1) + "}}]", url + ", path: sub}}]", url + ", unpack: false}}]",
		url + ", sha256: " + strings.Repeat("a", 64) + "}}]",
	} {
		if got := name(other); got == base {
			t.Errorf("%s: another dataset has the same Job name", other)
		}
	}
}

// TestImageChange: a new training image touches what runs it, and nothing else: etcd would lose its runs, no API server
// accepts a changed template of a prefetch Job, and whoever reviews the change reads each file of it.
func TestImageChange(t *testing.T) {
	with := func(image string, more ...string) *job.Job {
		return load(t, jobText(append(more, "image: "+image, "rendezvous: {backend: etcd, store: etcd, "+
			"etcd: {replicas: 3, storage: {size: 4Gi}}}",
			"storage: [{mountPath: /data, dataset: {url: 'http://x.org/a.zip'}}]")...))
	}
	for _, more := range [][]string{nil, {"hashedNames: true"}, {"target: pods"}} {
		for _, concern := range []string{
			"identity", "storage", "etcd", "service", "network", "disruption",
			"prefetch",
		} {
			before, after := with("example.org/train:1.0", more...), with("example.org/train:1.1", more...)
			if got := changed(t, objects(before, concern), objects(after, concern)); len(got) > 0 {
				t.Errorf("%v: a new training image changes of %s: %q", more, concern, got)
			}
		}
		before, after := with("example.org/train:1.0", more...), with("example.org/train:1.1", more...)
		if got := changed(t, objects(before, "worker"), objects(after, "worker")); len(got) == 0 {
			t.Errorf("%v: a new training image changes nothing of the workers", more)
		}
		// And the other way round.
		after = with("example.org/train:1.0",
			append(slices.Clone(more), "images: {etcdV2: 'quay.io/coreos/etcd:v3.5.20'}")...)
		want := []string{"etcd"}
		got := map[string]bool{}
		for _, c := range []string{
			"identity", "storage", "etcd", "service", "network", "disruption", "prefetch",
			"worker",
		} {
			if len(changed(t, objects(before, c), objects(after, c))) > 0 {
				got[c] = true
			}
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("%v: a new etcd image changes (-want +got):\n%s", more, diff)
		}
	}
}

// TestImageChangesOneFile holds every fixture to the same: a commit of a new tag is one file for each job, and a second
// where the training image makes ssh keys or fetches from the Hub, or the hosts that ssh reaches have new names.
func TestImageChangesOneFile(t *testing.T) {
	eachJob(t, func(t *testing.T, j *job.Job, _ []runtime.Object) {
		next := *j
		next.Spec.Image = "example.org/another:2.0"
		before, after := generators.Generate(j), generators.Generate(&next)
		want, got := []string{"worker"}, []string(nil)
		if j.Spec.OverSSH() && (j.Spec.MakesKeys() || j.Spec.HashedNames) {
			want = []string{"ssh", "worker"}
		}
		if slices.ContainsFunc(j.Spec.Storage, func(s job.Storage) bool {
			return s.Dataset != nil && s.Dataset.FromHub()
		}) {
			want = append([]string{"prefetch"}, want...)
		}
		for i, c := range before {
			if yamlOf(c.Objects) != yamlOf(after[i].Objects) {
				got = append(got, c.Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: files that a new image changes (-want +got):\n%s", j.Metadata.Name, diff)
		}
	})
}
