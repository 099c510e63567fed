package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/note"
)

const eachEnvironment = `apiVersion: tegen.dev/v1alpha1
kind: Environment
metadata: {name: lab}
spec:
  defaults:
    resources: {cpu: 2}
    roles:
      etcd: {nodeSelector: {pool: system}}
      server: {nodeSelector: {pool: memory}}
      companion: {nodeSelector: {pool: system}}
  accelerator:
    nodeSelector: {pool: gpu}
    tolerations: [{key: nvidia.com/gpu, operator: Exists}]
    each: {cpu: 7, memory: 28Gi, shm: 8Gi, ephemeralStorage: none}
`

// TestEach: what comes with each accelerator is a job's where it says nothing itself, and never more shared memory than
// memory.
func TestEach(t *testing.T) {
	for resources, want := range map[string]string{
		"{gpu: 4}":                            "28 112Gi 32Gi none",
		"{gpu: 1, memory: 4Gi}":               "7 4Gi 4Gi none",
		"{gpu: 2, cpu: none, shm: 1Gi}":       "none 56Gi 1Gi none",
		"{gpu: 8, ephemeralStorage: 5Gi}":     "56 224Gi 64Gi 5Gi",
		"{memory: 200Mi}":                     "2 200Mi 200Mi none",
		"{gpu: 0}":                            "2 4Gi 1Gi none",
		"{gpu: 1, limits: {memory: 6Gi}}":     "7 none 6Gi none", // half of it is said
		"{gpu: 1, requests: {memory: 500Mi}}": "7 none 8Gi none",
	} {
		jobs, errs := load(t, strings.Replace(small("a"), "workers:", "resources: "+resources+"\n  workers:", 1),
			eachEnvironment)
		if errs != nil {
			t.Errorf("%s: %v", resources, errs)
			continue
		}
		r := &jobs[0].Spec.Resources
		var got []string
		for _, a := range []*job.Amount{&r.CPU, &r.Memory, &r.Shm, &r.EphemeralStorage} {
			if a.None {
				got = append(got, job.None)
			} else {
				got = append(got, a.String())
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s, want %s", resources, text, want)
		}
	}
}

// TestEachOfNone: accelerators that an override takes away bring nothing, and a mistake in what comes with them is
// reported once.
func TestEachOfNone(t *testing.T) {
	text := strings.Replace(small("a"), "workers:", "resources: {gpu: 8}\n  workers:", 1)
	jobs, errs := load(t, text, eachEnvironment+"  overrides: {resources: {gpu: 0}}\n")
	if errs != nil || jobs[0].Spec.Resources.CPU.String() != "2" {
		t.Errorf("without its accelerators: %v", errs)
	}
	if _, errs = load(t, text, strings.Replace(eachEnvironment, "28Gi", "28 GB", 1)); len(errs) != 1 {
		t.Errorf("one mistake in an environment:\n%v", errs)
	}
}

// TestRolesOfEnvironment: what an environment says of roles is for the jobs that have them, and is no mistake of
// others.
func TestRolesOfEnvironment(t *testing.T) {
	jobs, errs := load(t, small("a"), eachEnvironment)
	if errs != nil {
		t.Fatal(errs)
	}
	if own := jobs[0].Spec.Roles.Server; own.NodeSelector != nil {
		t.Errorf("torchelastic has no servers: %v", own.NodeSelector)
	}
	jobs, errs = load(t, strings.Replace(small("a"), "workers:",
		"rendezvous: {backend: etcd, store: etcd}\n  roles: {etcd: {nodeSelector: {zone: a}}}\n  workers:", 1),
		eachEnvironment)
	if errs != nil {
		t.Fatal(errs)
	}
	if got := jobs[0].Spec.Roles.Etcd.NodeSelector; got["pool"] != "system" || got["zone"] != "a" {
		t.Errorf("the etcd's nodes: %v", got)
	}
	if _, errs = load(t, strings.Replace(small("a"), "workers:", "roles: {etcd: {nodeSelector: {zone: a}}}\n  workers:",
		1), eachEnvironment); len(errs) != 1 {
		t.Errorf("an author's words on an etcd that is not there: %v", errs)
	}
	anywhere := strings.Replace(eachEnvironment, "  accelerator:", "  anywhere: true\n  accelerator:", 1)
	jobs, errs = load(t, strings.Replace(small("a"), "workers:", "rendezvous: {backend: etcd, store: etcd}\n  workers:",
		1), anywhere)
	if errs != nil || jobs[0].Spec.Roles.Etcd.NodeSelector != nil {
		t.Errorf("nodes where nothing of them exists: %v, %v", jobs, errs)
	}
}

// TestTaintNote: the note to who taints every node names the pods that lack a toleration; taints of accelerators need
// no note.
func TestTaintNote(t *testing.T) {
	const etcd = "rendezvous: {backend: etcd, store: etcd}\n  "
	const team = "placement: {tolerations: [{key: team, operator: Exists}]}\n  "
	for spec, want := range map[string]bool{
		etcd:        false,
		team:        false, // no other pods
		etcd + team: true,
		etcd + team +
			"roles: {etcd: {tolerations: [{key: team, operator: Exists}]}}\n  ": false,
		etcd + team +
			"resources: {gpu: 1, cpu: 1, memory: 4Gi}\n  ": false,
		etcd + "placement: {tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, seconds: 30, " +
			"effect: NoExecute}]}\n  ": false,
	} {
		jobs, errs := load(t, strings.Replace(small("a"), "workers:", spec+"workers:", 1))
		if errs != nil {
			t.Fatalf("%s: %v", spec, errs)
		}
		if got := slices.ContainsFunc(note.Of(jobs[0]),
			func(n string) bool { return strings.Contains(n, "spec.roles.etcd.tolerations") }); got != want {
			t.Errorf("%s: note %t, want %t", spec, got, want)
		}
	}
}

// TestTaintNoteOfGroups: beside workers with accelerators, taints of those concern the groups that have some too, and
// all other taints every group.
func TestTaintNoteOfGroups(t *testing.T) {
	const gpu = "resources: {gpu: 1, cpu: 1, memory: 4Gi}"
	tolerating := func(key string) string {
		return gpu + ", target: jobset, placement: {tolerations: [{key: " + key + ", operator: Exists}]}, "
	}
	with := func(own string) string { return "groups: [{name: side, command: [y]" + own + "}]" }
	for spec, want := range map[string]bool{
		tolerating("nvidia.com/gpu") + with(""):                                               false,
		tolerating("team") + with(""):                                                         true,
		tolerating("team") + with(", tolerations: [{key: team}]"):                             false,
		tolerating("nvidia.com/gpu") + with(", "+gpu):                                         true,
		tolerating("node.kubernetes.io/not-ready") + with(", "+gpu):                           false,
		gpu + ", target: jobset, placement: {tolerations: [{operator: Exists}]}, " + with(""): false,
	} {
		text := machineJob + spec + "}"
		jobs, err := Load(named("job", text))
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		if all := strings.Join(note.Of(jobs[0]), "\n"); strings.Contains(all, "spec.groups[0].tolerations") != want {
			t.Errorf("%s: want a note %t: %s", spec, want, all)
		}
	}
}

// TestCaps: no limit is above every cap, and what asks for nothing is below.
func TestCaps(t *testing.T) {
	env := "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {caps: {cpu: 1, memory: " +
		"2Gi}}\n"
	text := strings.Replace(small("a"), "workers:",
		"resources: {cpu: none, memory: 8Gi, requests: {cpu: none, memory: 4Gi}}\n  workers:", 1)
	jobs, errs := load(t, text, env)
	if errs != nil {
		t.Fatal(errs)
	}
	r := &jobs[0].Spec.Resources
	asked, limits := r.Requested(), r.Limited()
	if _, cpu := asked["cpu"]; cpu || limits["cpu"] != *jobs[0].Spec.Resources.CPU.OrNil() ||
		asked["memory"] != limits["memory"] {
		t.Errorf("asked %v, limits %v", asked, limits)
	}
}
