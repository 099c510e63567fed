package plan

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// TestEveryTarget plans every fixture: whatever a job becomes, its pods are found, named, and fit into a cluster that
// has all they request.
func TestEveryTarget(t *testing.T) {
	eachFixture(t, func(file string, j *job.Job) {
		t.Run(filepath.Base(file)+"/"+j.Metadata.Name, func(t *testing.T) { planned(t, j) })
	})
}

// eachFixture calls do with each job of each valid fixture.
func eachFixture(t *testing.T, do func(file string, j *job.Job)) {
	t.Helper()
	files, err := filepath.Glob("../../fixtures/valid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := schema.Load([]schema.Source{{Name: file, Data: text}})
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			do(file, j)
		}
	}
}

func planned(t *testing.T, tj *job.Job) {
	j := Of(tj, generators.Generate(tj))
	workers := int32(0)
	names := map[string]bool{}
	for _, s := range j.PodSets {
		if s.Role == "worker" {
			workers += s.Replicas
		}
		if s.Helper == !slices.Contains([]string{"etcd", "rendezvous", "prefetch"}, s.Role) ||
			int(s.Replicas) != len(s.Pods) || s.Required > s.Replicas {
			t.Errorf("%s: helper %t, %d pods of %d, %d required", s.Role, s.Helper, len(s.Pods), s.Replicas, s.Required)
		}
		for _, p := range s.Pods {
			// pods without a number differ in what the cluster chooses alone
			numbered := !strings.Contains(p.Name, "*") || numberedName().MatchString(p.Name)
			if problems := validation.IsDNS1123Label(strings.ReplaceAll(p.Name, "*", "abcde")); names[p.Name] &&
				numbered || len(problems) > 0 {
				t.Errorf("pod %s twice, or %v", p.Name, problems)
			}
			names[p.Name] = true
			if problems := validation.IsDNS1123Subdomain(p.Address); p.Address != "" && len(problems) > 0 {
				t.Errorf("address %s: %v", p.Address, problems)
			}
		}
	}
	if workers != tj.Spec.Workers.Replicas {
		t.Errorf("%d workers, want %d", workers, tj.Spec.Workers.Replicas)
	}
	if want := tj.Spec.Suspend || j.Queue != ""; j.Suspended != want && j.Queue == "" {
		t.Errorf("suspended %t, want %t", j.Suspended, want)
	}
	if j.Fit = ample(j).fit(j); !j.Fit.Fits || len(j.Fit.Missing) > 0 {
		t.Errorf("it fits into no cluster: %v", placed(j.Fit))
	}
	if j.Fit = (&Inventory{nodes: []*node{{Node: &corev1.Node{}}}}).fit(j); j.Fit.Fits || j.Fit.Heuristic {
		t.Errorf("it fits into nothing: %v", placed(j.Fit))
	}
}

// ample is a cluster with a node for each pod, which has everything.
func ample(j *Job) *Inventory {
	inv := &Inventory{}
	for _, s := range j.PodSets { // roles may want nodes of different labels
		for range s.Pods {
			labels := map[string]string{}
			maps.Copy(labels, s.pod.Spec.NodeSelector)
			if t := j.Gang.Topology; t != nil {
				labels[t.Label] = "one"
			}
			n := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Status:     corev1.NodeStatus{Allocatable: j.Requests.Peak},
			}
			inv.nodes = append(inv.nodes, &node{Node: n, free: amountsOf(j.Requests.Peak)})
		}
	}
	return inv
}
