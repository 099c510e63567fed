package schema

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/note"
)

const jobHead = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a, namespace: ml}\nspec: " +
	"{image: 'x:1', command: [python, train.py], "

func loadOne(t *testing.T, text string) *job.Job {
	t.Helper()
	jobs, err := Load(named("a.yaml", text))
	if err != nil {
		t.Fatalf("%v\nof:\n%s", err, text)
	}
	return jobs[0]
}

// TestDefaultProcesses: one for each accelerator, and one where there is none or an environment has taken them away.
func TestDefaultProcesses(t *testing.T) {
	const gpus = ", resources: {gpu: 8, cpu: 1, memory: 4Gi}"
	const four = ", resources: {gpu: 4, cpu: 1, memory: 4Gi}"
	for spec, want := range map[string]string{
		"workers: {replicas: 2}":                        "1",
		"workers: {replicas: 2}" + gpus:                 "8",
		"workers: {replicas: 2, processes: 2}" + gpus:   "2",
		"workers: {replicas: 2, processes: gpu}" + gpus: "gpu",

		"framework: horovod, workers: {replicas: 2}" + four:                     "4",
		"framework: dlrover, target: elasticjob, workers: {replicas: 2}" + four: "4",

		"framework: mxnet, workers: {replicas: 2}" + four: "1", // it has one for all

		"target: pytorchjob, launcher: entrypoint, workers: {max: 2, master: true}" + gpus: "1", // each pod is one
	} {
		p := loadOne(t, jobHead+spec+"}\n").Spec.Workers.Processes
		if p.String() != want {
			t.Errorf("%s: %s processes, want %s", spec, &p, want)
		}
	}
	const laptop = "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: laptop}\nspec: " +
		"{overrides: {resources: {gpu: 0}}}\n"
	for processes, want := range map[string]string{
		"": "1", ", processes: gpu": "1", ", processes: auto": "1",
		", processes: 8": "8",
	} {
		p := loadOne(t, jobHead+"workers: {replicas: 2"+processes+"}"+gpus+"}\n"+laptop).Spec.Workers.Processes
		if p.String() != want {
			t.Errorf("{%s} without its accelerators: %s processes, want %s", processes, &p, want)
		}
	}
}

// TestDefaultStore: a companion is rendered where its image is named and somebody meets in it.
func TestDefaultStore(t *testing.T) {
	const image = ", images: {rendezvous: 'r:1'}"
	for spec, want := range map[string]string{
		"workers: {replicas: 2}":                                                job.StoreWorker,
		"workers: {replicas: 2}" + image:                                        job.StoreCompanion,
		"workers: {replicas: 1, min: 1, max: 4}" + image:                        job.StoreCompanion,
		"workers: {replicas: 1}" + image:                                        job.StoreWorker,
		"workers: {replicas: 1}, rendezvous: {store: companion}" + image:        job.StoreCompanion,
		"workers: {replicas: 1}, rendezvous: {companion: {name: meet}}" + image: job.StoreCompanion,
		// which needs a store
		"workers: {replicas: 1}, rendezvous: {backend: etcd}" + image:                job.StoreCompanion,
		"framework: horovod, workers: {replicas: 2}" + image:                         job.StoreWorker,
		"workers: {replicas: 2}, rendezvous: {store: external, endpoint: 'e.x:123'}": job.StoreExternal,
	} {
		if got := loadOne(t, jobHead+spec+"}\n").Spec.Rendezvous.Store; got != want {
			t.Errorf("%s: store %s, want %s", spec, got, want)
		}
	}
	// An environment says how companions are: a job that has none is no mistake of its author's.
	const env = "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {defaults: " +
		"{images: {rendezvous: 'r:1'}, rendezvous: {companion: {name: meet}}}}\n"
	for workers, want := range map[int]string{1: job.StoreWorker, 2: job.StoreCompanion} {
		if got := loadOne(t, fmt.Sprintf("%sworkers: {replicas: %d}}\n%s", jobHead, workers,
			env)).Spec.Rendezvous.Store; got != want {
			t.Errorf("%d workers where companions have settings: store %s, want %s", workers, got, want)
		}
	}
}

// TestDefaultHash: where a reconciler applies the bundle a change is a new object, if the target and the names allow
// it.
func TestDefaultHash(t *testing.T) {
	for spec, want := range map[string]bool{
		"gitops: false": false, "gitops: true": true, "gitops: true, hashedNames: false": false,
		"hashedNames: true":          true,
		"gitops: true, target: pods": false, "gitops: true, target: pytorchjob": false,
		"gitops: true, target: jobset": true,
	} {
		if got := loadOne(t, jobHead+"workers: {replicas: 2}, "+spec+"}\n").Spec.HashedNames; got != want {
			t.Errorf("%s: hashedNames %t", spec, got)
		}
	}
	long := strings.Replace(jobHead, "name: a,", "name: a23456789012345678901234567890123456789,", 1)
	if loadOne(t, long+"workers: {replicas: 2}, gitops: true, target: jobset}\n").Spec.HashedNames {
		t.Error("a name that has no room for a hash has one by default")
	}
}

// TestProcessesOfMaster: the operator tells pods of as many processes as pods times this, so that only what starts more
// of them in a pod may have more.
func TestProcessesOfMaster(t *testing.T) {
	const rest = "target: pytorchjob, launcher: entrypoint, workers: {max: 2, master: true%s}, resources: {gpu: 8, " +
		"cpu: 1, memory: 4Gi}}\n"
	text := jobHead + fmt.Sprintf(rest, ", processes: 8")
	if _, errs := load(t, text); len(errs) != 1 || errs[0].Path != "spec.workers.processes" {
		t.Errorf("8 processes of a program that starts none: %v", errs)
	}
	torchrun := strings.NewReplacer("[python, train.py]", "[torchrun, train.py]")
	for processes, want := range map[string]string{"": "8", ", processes: 4": "4"} {
		if p := loadOne(t,
			torchrun.Replace(jobHead+fmt.Sprintf(rest, processes))).Spec.Workers.Processes; p.String() != want {
			t.Errorf("torchrun of the author's {%s}: %s processes, want %s", processes, &p, want)
		}
	}
}

// TestBesides: an amount of which one side is said has no default on the other.
func TestBesides(t *testing.T) {
	for resources, want := range map[string]string{ // cpu and memory: asked for, and the limits
		"{gpu: 8, requests: {cpu: 500m, memory: 2Gi}}":      "500m 2Gi, - -",
		"{limits: {memory: 2Gi}}":                           "1 -, 1 2Gi",
		"{requests: {memory: 16Gi}}":                        "1 16Gi, 1 -",
		"{cpu: 4, requests: {cpu: 2}, limits: {memory: 0}}": "",
		"{cpu: 4, memory: 8Gi, requests: {cpu: 2}}":         "2 8Gi, 4 8Gi",
		"{limits: {cpu: none}}":                             "1 4Gi, - 4Gi",
		"{requests: {cpu: none}}":                           "- 4Gi, 1 4Gi",
		"{requests: {cpu: 2}, limits: {cpu: 3}}":            "2 4Gi, 3 4Gi",
	} {
		jobs, errs := load(t, jobHead+"workers: {replicas: 2}, resources: "+resources+", roles: {etcd: {resources: "+
			strings.ReplaceAll(resources, "gpu: 8, ", "")+"}}, rendezvous: {backend: etcd-v2, store: etcd}}\n")
		if want == "" {
			if len(errs) != 2 {
				t.Errorf("%s: %v", resources, errs)
			}
			continue
		}
		if errs != nil {
			t.Errorf("%s: %v", resources, errs)
			continue
		}
		s := &jobs[0].Spec
		if got := sides(&s.Resources.Compute); got != want {
			t.Errorf("%s: %s, want %s", resources, got, want)
		}
		want = strings.NewReplacer("1 -, 1 2Gi", "250m -, 250m 2Gi", "1 4Gi", "250m 512Mi", "1 16Gi, 1 -",
			"250m 16Gi, 250m -", "4Gi", "512Mi").Replace(want)
		if got := sides(&s.Roles.Etcd.Resources); got != want {
			t.Errorf("etcd's %s: %s, want %s", resources, got, want)
		}
	}
}

// TestAcceleratorsWithout: memory that is not asked for is no memory that a worker with accelerators is limited to.
func TestAcceleratorsWithout(t *testing.T) {
	_, errs := load(t, jobHead+"workers: {replicas: 2}, resources: {gpu: 8, cpu: 8, requests: {memory: none}}}\n")
	if len(errs) != 1 || !strings.Contains(errs[0].Msg, "without memory") {
		t.Errorf("no request of memory: %v", errs)
	}
}

func sides(c *job.Compute) string {
	var words []string
	for _, side := range []map[string]resource.Quantity{c.Requested(), c.Limited()} {
		for _, name := range []string{job.ResourceCPU, job.ResourceMemory} {
			word := "-"
			if q, ok := side[name]; ok {
				word = q.String()
			}
			words = append(words, word)
		}
	}
	return fmt.Sprintf("%s %s, %s %s", words[0], words[1], words[2], words[3])
}

// TestBesidesEnvironment: neither an environment's default nor what comes with accelerators is the limit of what an
// author asks for, or is asked for where he limits it.
func TestBesidesEnvironment(t *testing.T) {
	const env = "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {defaults: " +
		"{resources: {cpu: 2}}, accelerator: {each: {memory: 28Gi}}}\n"
	for resources, want := range map[string]string{
		"{gpu: 2, limits: {memory: 16Gi}}": "2 -, 2 16Gi",
		"{gpu: 2, requests: {cpu: 500m}}":  "500m 56Gi, - 56Gi",
		"{gpu: 2, cpu: 8}":                 "8 56Gi, 8 56Gi",
	} {
		if got := sides(&loadOne(t,
			jobHead+"workers: {replicas: 2}, resources: "+resources+"}\n"+env).Spec.Resources.Compute); got != want {
			t.Errorf("%s: %s, want %s", resources, got, want)
		}
	}
	const half = "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {defaults: " +
		"{resources: {requests: {cpu: 500m}}}}\n"
	if got := sides(&loadOne(t,
		jobHead+"workers: {replicas: 2}}\n"+half).Spec.Resources.Compute); got != "500m 4Gi, - 4Gi" {
		t.Errorf("an environment's request: %s", got)
	}
}

// TestMasterInEnvironment: what an environment says of a rendezvous is for the jobs that have one.
func TestMasterInEnvironment(t *testing.T) {
	const master = "target: pytorchjob, launcher: entrypoint, workers: {replicas: 2, master: true}"
	for _, part := range []string{"defaults", "overrides"} {
		for _, says := range []string{
			"{rendezvous: {store: external, endpoint: 'e.x:123'}}",
			"{images: {rendezvous: 'r:1'}, rendezvous: {companion: {name: meet}}}",
		} {
			env := "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {" + part +
				": " + says + "}\n"
			if s := loadOne(t, jobHead+master+"}\n"+env).Spec.Rendezvous; s.Endpoint != "" || s.Companion.Name != "" {
				t.Errorf("%s %s: %+v", part, says, s)
			}
		}
	}
	env := "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {defaults: {workers: " +
		"{processes: 4}}}\n"
	if n := loadOne(t, jobHead+master+"}\n"+env).Spec.Workers.Processes; n.IntVal != 1 {
		t.Errorf("an environment's processes: %s", n.String())
	}
	for _, says := range []string{
		"{port: 23456, maxRestarts: 9}", "{backend: etcd-v2}", "{companion: {name: meet}}",
		"{store: etcd}",
	} {
		_, errs := load(t, jobHead+master+", rendezvous: "+says+"}\n")
		if len(errs) != 1 || errs[0].Path != "spec.rendezvous" || !strings.Contains(errs[0].Msg, "leave it out") {
			t.Errorf("%s: %v", says, errs)
		}
	}
}

// TestTaken: what an environment takes away of what an author wrote is reported, whichever way either said it.
func TestTaken(t *testing.T) {
	for _, c := range []struct{ spec, env, want string }{
		{
			"resources: {limits: {cpu: 32, memory: 64Gi}, requests: {cpu: 16}}", "caps: {cpu: 2, memory: 4Gi}",
			"spec.resources: the Environment leaves cpu 2 of 32, memory 4Gi of 64Gi to each worker",
		},
		{
			"resources: {requests: {cpu: 16}}", "caps: {cpu: 2}",
			"spec.resources: the Environment leaves cpu 2 of the 16 asked for to each worker",
		},
		{
			"resources: {cpu: none}", "caps: {cpu: 2}",
			"spec.resources: the Environment leaves cpu 2 of no limit to each worker",
		},
		{
			"resources: {cpu: 8}", "overrides: {resources: {cpu: 2}}",
			"spec.resources: the Environment leaves cpu 2 of 8 to each worker",
		},
		{"resources: {cpu: 8}", "overrides: {resources: {cpu: none}}", ""},
		{
			"resources: {ephemeralStorage: 20Gi}", "caps: {ephemeralStorage: 1Gi}",
			"spec.resources: the Environment leaves ephemeral-storage 1Gi of 20Gi to each worker",
		},
		{"gitops: false", "caps: {cpu: 500m}", ""}, // a default is nobody's wish
		{"resources: {cpu: 2}", "caps: {cpu: 2}", ""},
		{
			"framework: mxnet, target: job, failure: {deadline: 1h}, roles: {server: {resources: {cpu: 16, memory: " +
				"64Gi}}}", "caps: {cpu: 2, memory: 4Gi}",
			"spec.roles.server.resources: the Environment leaves cpu 2 of 16, memory 4Gi of 64Gi to each server",
		},
	} {
		j := loadOne(t,
			jobHead+"workers: {replicas: 2}, "+c.spec+"}\n---\napiVersion: tegen.dev/v1alpha1\nkind: "+
				"Environment\nmetadata: {name: e}\nspec: {"+c.env+"}\n")
		if got := strings.Join(note.TakenNotes(j), "\n"); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.spec, c.env, got, c.want)
		}
	}
}
