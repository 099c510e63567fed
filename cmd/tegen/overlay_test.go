package main

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// TestCappedCPU: where a place leaves a worker a fraction of a core, its cluster does not hold the worker to it. Nothing
// that is rendered says so: on a kubelet with quotas the jobs would run, and import torch for half a minute.
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
			t.Errorf("%s caps cpu at %s, and %s has no KubeletConfiguration with cpuCFSQuota: false", place, limit, cluster)
		}
	}
	if held == 0 {
		t.Error("no place caps cpu below one core any more: this test holds nothing")
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
