package krm_test

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/krm"
)

// TestBehind: the digest changes with what kustomize does to the objects after tegen, and not with the jobs, which have
// a digest of their own.
func TestBehind(t *testing.T) {
	const labels = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: l}\nlabels: {team: one}\n" +
		"fieldSpecs: [{path: metadata/labels, create: true}]\n"
	overlays := map[string]map[string]string{
		"a transformer": {
			"kustomization.yaml": header + "transformers: [tegen.yaml, lab.yaml]\nresources: [job.yaml]\n",
			"lab.yaml":           labels, "job.yaml": job, "tegen.yaml": generator,
		},
		"a kustomization above": {
			"kustomization.yaml":       header + "resources: [below]\npatches: [{path: p.yaml, target: {kind: Job}}]\n",
			"p.yaml":                   "- {op: add, path: /metadata/labels/team, value: one}\n",
			"below/kustomization.yaml": header + "transformers: [tegen.yaml]\nresources: [job.yaml]\n",
			"below/job.yaml":           job, "below/tegen.yaml": generator,
		},
	}
	digest := func(t *testing.T, files map[string]string, old, now string) string {
		t.Helper()
		changed := map[string]string{}
		for name, text := range files {
			changed[name] = strings.Replace(text, old, now, 1)
		}
		out, err := krm.Overlay(folder(t, changed), nil)
		if err != nil {
			t.Fatal(err)
		}
		return out.Behind
	}
	for what, files := range overlays {
		t.Run(what, func(t *testing.T) {
			first := digest(t, files, "", "")
			if first == "" || first != digest(t, files, "replicas: 2", "replicas: 3") {
				t.Errorf("%q depends on the job, or on the directory", first)
			}
			if first == digest(t, files, "team: one", "team: two") &&
				first == digest(t, files, "value: one", "value: two") {
				t.Error("another label does not change it")
			}
		})
	}
	plain := map[string]string{
		"kustomization.yaml": header + "namePrefix: x-\ntransformers: [tegen.yaml]\nresources: [job.yaml]\n",
		"job.yaml":           job, "tegen.yaml": generator,
	}
	if got := digest(t, plain, "", ""); got != "" {
		t.Errorf("nothing is after tegen, and the digest is %q", got)
	}
}
