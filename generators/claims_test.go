package generators_test

import (
	"strings"
	"testing"
)

// TestClaimVersions: each release of Kubernetes gets the form that it knows, and what is claimed decides the name,
// since no API server changes a template.
func TestClaimVersions(t *testing.T) {
	const devices = "resources: {gpu: 2, cpu: 1, memory: 4Gi, deviceClass: gpu.nvidia.com}"
	name := func(text string) string {
		_, rest, _ := strings.Cut(text, "resourceClaimTemplateName: ")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	newest := yamlOf(objects(load(t, jobText(devices))))
	for version, exactly := range map[string]bool{"1.32": false, "1.33": true, "1.34": true, "1.37": true} {
		text := yamlOf(objects(load(t, jobText(devices, "kubernetesVersion: '"+version+"'"))))
		api := map[string]string{"1.32": "v1beta1", "1.33": "v1beta2"}[version]
		if api == "" {
			api = "v1"
		}
		if !strings.Contains(text, "apiVersion: resource.k8s.io/"+api+"\n") ||
			strings.Contains(text, "exactly:") != exactly || !strings.Contains(text, "count: 2\n") {
			t.Errorf("%s: want %s, exactly %v:\n%s", version, api, exactly, text)
		}
		if strings.Contains(text, "nvidia.com/gpu") {
			t.Errorf("%s: a device plugin's accelerators are asked for too", version)
		}
		if same := name(text) == name(newest); same != exactly {
			t.Errorf("%s: template %s, and without a version %s", version, name(text), name(newest))
		}
	}
	more := yamlOf(objects(load(t, jobText(strings.Replace(devices, "gpu: 2", "gpu: 3", 1)))))
	if name(more) == name(newest) || !strings.Contains(more, "name: "+name(more)+"\n") {
		t.Errorf("2 and 3 devices have the template %s, %s", name(newest), name(more))
	}
	none := yamlOf(objects(load(t, jobText(strings.Replace(devices, "gpu: 2", "gpu: 2, claims: [channel]", 1)))))
	if strings.Count(none, "resourceClaimTemplateName:") != 2 {
		t.Errorf("want a claim of accelerators and one of channel:\n%s", none)
	}
}
