package krm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/krm"
)

// TestUnmatchedPatchesBelow: the same for patches in bases, in components and in deprecated fields.
func TestUnmatchedPatchesBelow(t *testing.T) {
	const component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {a: b}}]\n"
	const five = `, patch: '[{"op": "replace", "path": "/spec/workers/replicas", "value": 5}]'}` + "\n"
	patch := func(target string) string { return "patches:\n- {target: {" + target + "}" + five }
	old := func(target string) string { return "patchesJson6902:\n- {target: {" + target + "}" + five }
	const group = "group: tegen.dev, version: v1alpha1, kind: TrainingJob, "
	for what, c := range map[string]struct{ overlay, base, component, fails, notes string }{
		"of a base":                   {base: patch("kind: TrainingJob, name: resnet")},
		"of a base, after its prefix": {base: "namePrefix: b-\n" + old(group+"name: b-resnet")},
		"of a component":              {component: patch("kind: TrainingJob")},
		"of a component, by the name": {component: patch("name: resnet")},
		"JSON":                        {overlay: old(group + "name: resnet")},
		"JSON, after the prefix":      {overlay: "namePrefix: a-\n" + old(group+"name: a-resnet")},
		"JSON, by a label": {overlay: "commonLabels: {team: vision}\n" +
			old(group+"name: resnet, labelSelector: team=vision")},
		"unmatched in a base": {
			base:  patch("kind: TraningJob"),
			fails: "base/kustomization.yaml:5:3: patches[0]: nothing matches its target (kind: TraningJob)",
		},
		"unmatched JSON in a base": {
			base:  old(group + "name: x"),
			fails: "base/kustomization.yaml:5:3: patchesJson6902[0]: nothing matches its target (",
		},
		"for what only the overlay has": {
			base:  patch("kind: ConfigMap"),
			fails: "base/kustomization.yaml:5:3: patches[0]: nothing",
		},
		"unmatched in a component": {
			component: patch("name: x"),
			notes:     "component/kustomization.yaml:5:3: note: patches[0]: nothing matches its target (name: x)",
		},
		"unmatched in a base of a component": {
			component: "resources: [inner]\n",
			notes:     "component/inner/kustomization.yaml:5:3: note: patches[0]: nothing matches its target (name: x)",
		},
		"unmatched JSON": {
			overlay: old(group + "name: x"),
			fails:   "kustomization.yaml:8:3: patchesJson6902[0]: nothing",
		},
		"before the prefix": {
			overlay: "namePrefix: a-\n" + patch("name: a-resnet"),
			fails:   "kustomization.yaml:9:3: patches[0]: nothing",
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := folder(t, map[string]string{
				"kustomization.yaml": header + "bases: [base]\nresources: [other.yaml]\ncomponents: [component]\n" +
					"transformers: [tegen.yaml]\n" + c.overlay,
				"tegen.yaml": generator, "other.yaml": configMap,
				"base/job.yaml": job, "base/kustomization.yaml": header + "resources: [job.yaml]\n" + c.base,
				"component/kustomization.yaml": component + c.component,
				"component/inner/kustomization.yaml": header + "configMapGenerator: [{name: inner}]\n" +
					patch("name: x"),
			})
			out, err := krm.Overlay(dir, nil)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Fatalf("%v, want %q", err, c.fails)
			}
			if err != nil {
				return
			}
			if (len(out.Notes) == 0) != (c.notes == "") || !strings.Contains(out.Notes.Error(), c.notes) {
				t.Errorf("notes %q, want %q", out.Notes, c.notes)
			}
			if n := out.Bundles[0].Job.Spec.Workers.Replicas; n != 5 && c.notes == "" {
				t.Errorf("%d workers: the patch changed nothing", n)
			}
		})
	}
}

// TestLinked: a link to an overlay is the overlay.
func TestLinked(t *testing.T) {
	dir := folder(t, map[string]string{
		"real/kustomization.yaml": header + "resources: [job.yaml]\npatches:\n- target: {labelSelector: '!x'}\n" +
			"  patch: |\n    - {op: replace, path: /spec/workers/replicas, value: 5}\ntransformers: [tegen.yaml]\n",
		"real/tegen.yaml": generator, "real/job.yaml": job,
	})
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mustOverlay(t, filepath.Join(dir, "real")),
		mustOverlay(t, filepath.Join(dir, "link"))); diff != "" {
		t.Errorf("(-there +linked):\n%s", diff)
	}
}
