package schema

import (
	"fmt"
	"strings"
	"testing"
)

const settleHead = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a, namespace: ml}\nspec: {image: 'x:1', command: [python, train.py], "

func loadOne(t *testing.T, text string) *Job {
	t.Helper()
	jobs, err := Load([]Source{{Name: "a.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatalf("%v\nof:\n%s", err, text)
	}
	return jobs[0]
}

// TestDefaultProcesses: one for each accelerator, and one where there is none or an environment has taken them away.
func TestDefaultProcesses(t *testing.T) {
	for spec, want := range map[string]string{
		"workers: {replicas: 2}": "1",
		"workers: {replicas: 2}, resources: {gpu: 8, cpu: 1, memory: 4Gi}":                                         "8",
		"workers: {replicas: 2, processes: 2}, resources: {gpu: 8, cpu: 1, memory: 4Gi}":                           "2",
		"workers: {replicas: 2, processes: gpu}, resources: {gpu: 8, cpu: 1, memory: 4Gi}":                         "gpu",
		"framework: horovod, workers: {replicas: 2}, resources: {gpu: 4, cpu: 1, memory: 4Gi}":                     "4",
		"framework: dlrover, target: elasticjob, workers: {replicas: 2}, resources: {gpu: 4, cpu: 1, memory: 4Gi}": "4",
		"framework: mxnet, workers: {replicas: 2}, resources: {gpu: 4, cpu: 1, memory: 4Gi}":                       "1", // it has one for all
	} {
		p := loadOne(t, settleHead+spec+"}\n").Spec.Workers.Processes
		if p.String() != want {
			t.Errorf("%s: %s processes, want %s", spec, &p, want)
		}
	}
	const laptop = "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: laptop}\nspec: {overrides: {resources: {gpu: 0}}}\n"
	for processes, want := range map[string]string{"": "1", ", processes: gpu": "1", ", processes: auto": "1", ", processes: 8": "8"} {
		p := loadOne(t, settleHead+"workers: {replicas: 2"+processes+"}, resources: {gpu: 8, cpu: 1, memory: 4Gi}}\n"+laptop).Spec.Workers.Processes
		if p.String() != want {
			t.Errorf("{%s} without its accelerators: %s processes, want %s", processes, &p, want)
		}
	}
}

// TestDefaultStore: a companion is rendered where its image is named and somebody meets in it.
func TestDefaultStore(t *testing.T) {
	const image = ", images: {rendezvous: 'r:1'}"
	for spec, want := range map[string]string{
		"workers: {replicas: 2}":                                                     StoreWorker,
		"workers: {replicas: 2}" + image:                                             StoreCompanion,
		"workers: {replicas: 1, min: 1, max: 4}" + image:                             StoreCompanion,
		"workers: {replicas: 1}" + image:                                             StoreWorker,
		"workers: {replicas: 1}, rendezvous: {store: companion}" + image:             StoreCompanion,
		"workers: {replicas: 1}, rendezvous: {companion: {name: meet}}" + image:      StoreCompanion,
		"workers: {replicas: 1}, rendezvous: {backend: etcd}" + image:                StoreCompanion, // which needs a store
		"framework: horovod, workers: {replicas: 2}" + image:                         StoreWorker,
		"workers: {replicas: 2}, rendezvous: {store: external, endpoint: 'e.x:123'}": StoreExternal,
	} {
		if got := loadOne(t, settleHead+spec+"}\n").Spec.Rendezvous.Store; got != want {
			t.Errorf("%s: store %s, want %s", spec, got, want)
		}
	}
	// An environment says how companions are: a job that has none is no mistake of its author's.
	const env = "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {defaults: {images: {rendezvous: 'r:1'}, rendezvous: {companion: {name: meet}}}}\n"
	for workers, want := range map[int]string{1: StoreWorker, 2: StoreCompanion} {
		if got := loadOne(t, fmt.Sprintf("%sworkers: {replicas: %d}}\n%s", settleHead, workers, env)).Spec.Rendezvous.Store; got != want {
			t.Errorf("%d workers where companions have settings: store %s, want %s", workers, got, want)
		}
	}
}

// TestDefaultHash: where a reconciler applies the bundle a change is a new object, if the target and the names allow it.
func TestDefaultHash(t *testing.T) {
	for spec, want := range map[string]bool{
		"gitops: false": false, "gitops: true": true, "gitops: true, hashedNames: false": false, "hashedNames: true": true,
		"gitops: true, target: pods": false, "gitops: true, target: pytorchjob": false, "gitops: true, target: jobset": true,
	} {
		if got := loadOne(t, settleHead+"workers: {replicas: 2}, "+spec+"}\n").Spec.HashedNames; got != want {
			t.Errorf("%s: hashedNames %t", spec, got)
		}
	}
	long := strings.Replace(settleHead, "name: a,", "name: a23456789012345678901234567890123456789,", 1)
	if loadOne(t, long+"workers: {replicas: 2}, gitops: true, target: jobset}\n").Spec.HashedNames {
		t.Error("a name that has no room for a hash has one by default")
	}
}
