package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/golden"
)

// TestCappedCPU: where a place leaves a worker a fraction of a core, its cluster does not hold the worker to it.
// Nothing that is rendered says so: on a kubelet with quotas the jobs would run, and import torch for half a minute.
func TestCappedCPU(t *testing.T) {
	atRoot(t)
	places, err := filepath.Glob("overlays/*/environment.yaml")
	if err != nil || len(places) == 0 {
		t.Fatalf("no environments: %v", err)
	}
	held := 0
	for _, place := range places {
		var environment struct {
			Spec struct {
				Caps struct {
					CPU *resource.Quantity `json:"cpu"`
				} `json:"caps"`
			} `json:"spec"`
		}
		fromYAML(t, content(t, place), &environment)
		limit := environment.Spec.Caps.CPU
		if limit == nil || limit.MilliValue() >= 1000 {
			continue
		}
		held++
		if cluster := filepath.Join(filepath.Dir(place), "cluster.yaml"); !unlimited(t, content(t, cluster)) {
			t.Errorf("%s caps cpu at %s, and %s has no KubeletConfiguration with cpuCFSQuota: false", place, limit,
				cluster)
		}
	}
	if held == 0 {
		t.Error("no place caps cpu below one core any more: this test holds nothing")
	}
}

// TestOverlayAlone: a copy of an overlay renders as the overlay does, its own job and those of the command line, and
// the job that they all show is one.
func TestOverlayAlone(t *testing.T) {
	atRoot(t)
	var own string
	for _, name := range []string{"eks", "kind"} {
		overlay := golden.Overlay(t, ".", name)
		alone := filepath.Join(t.TempDir(), "place")
		if err := os.CopyFS(alone, os.DirFS(overlay)); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"render"}, {"render", "fixtures/valid/minimal.yaml"}} {
			want, msg, code := tegen("", append(args, "--overlay", overlay)...)
			if code != cli.ExitOK || want == "" {
				t.Fatalf("%s: exit code %d: %s", overlay, code, msg)
			}
			got, msg, code := tegen("", append(args, "--overlay", alone)...)
			if code != cli.ExitOK {
				t.Errorf("a copy of %s: exit code %d: %s", overlay, code, msg)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-there +copied):\n%s", overlay, diff)
			}
		}
		job := content(t, overlay+"/resnet.yaml")
		if own != "" && own != job {
			t.Errorf("the job of %s is another:\n%s", overlay, cmp.Diff(own, job))
		}
		own = job
	}
}

// unlimited says whether kind's configuration keeps its kubelets from enforcing limits of CPU.
func unlimited(t *testing.T, text string) bool {
	t.Helper()
	var cluster struct {
		Patches []string `json:"kubeadmConfigPatches"`
	}
	fromYAML(t, text, &cluster)
	for _, patch := range cluster.Patches {
		var kubelet struct {
			Kind  string `json:"kind"`
			Quota *bool  `json:"cpuCFSQuota"`
		}
		fromYAML(t, patch, &kubelet)
		if kubelet.Kind == "KubeletConfiguration" && kubelet.Quota != nil && !*kubelet.Quota {
			return true
		}
	}
	return false
}

func fromYAML(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
}
