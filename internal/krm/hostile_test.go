package krm_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/schema"
)

const header = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"

// TestTransformers: a file of any form among the transformers is refused where kustomize or the function refuses it.
func TestTransformers(t *testing.T) {
	for what, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"a list": {map[string]string{
			"kustomization.yaml": header +
				"resources: [job.yaml]\ntransformers: [a.yaml, tegen.yaml]\n", "a.yaml": "- a\n",
			"tegen.yaml": generator,
		}, "resources from 'a.yaml': missing Resource metadata"},
		"a text": {map[string]string{
			"kustomization.yaml": header +
				"resources: [job.yaml]\ntransformers: [a.yaml, tegen.yaml]\n", "a.yaml": "a\n", "tegen.yaml": generator,
		}, "resources from 'a.yaml': missing Resource metadata"},
		"no YAML": {map[string]string{
			"kustomization.yaml": header +
				"resources: [job.yaml]\ntransformers: [a.yaml, tegen.yaml]\n", "a.yaml": "a: {\n",
			"tegen.yaml": generator,
		}, "a.yaml: line 2"},
		"nothing": {map[string]string{
			"kustomization.yaml": header +
				"resources: [job.yaml]\ntransformers: [a.yaml, tegen.yaml]\n", "a.yaml": "", "tegen.yaml": generator,
		}, ""},
		"labels in a list": {map[string]string{
			"kustomization.yaml": header +
				"resources: [job.yaml]\ntransformers: [tegen.yaml]\n",
			"tegen.yaml": strings.Replace(generator, "  name: tegen\n", "  name: tegen\n  labels: [{}]\n", 1),
		}, "tegen.yaml: line 5: Generator.metadata.labels: must be a mapping, not a list"},
	} {
		c.files["job.yaml"] = job
		out, err := overlay(t, folder(t, c.files))
		if c.says == "" && (err != nil || !strings.Contains(out, "kind: Job\n")) || c.says != "" &&
			(err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
	}
}

// TestOutside: kustomize takes files from below the kustomization alone, and so does Overlay.
func TestOutside(t *testing.T) {
	dir := folder(t, map[string]string{
		"tegen.yaml": generator, "in/job.yaml": job,
		"in/kustomization.yaml":      header + "resources: [job.yaml]\ntransformers: [../tegen.yaml]\n",
		"in/deep/kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [link.yaml]\n",
		"in/deep/job.yaml":           job,
	})
	if err := os.Symlink("../../tegen.yaml", filepath.Join(dir, "in/deep/link.yaml")); err != nil {
		t.Fatal(err)
	}
	for sub, entry := range map[string]string{"in": "../tegen.yaml", "in/deep": "link.yaml"} {
		if _, err := overlay(t, filepath.Join(dir, sub)); err == nil ||
			!strings.Contains(err.Error(), entry+" is outside of its directory") {
			t.Errorf("%s: %v", sub, err)
		}
	}
}

// TestOnlyTegen: an overlay may leave the jobs to the command line.
func TestOnlyTegen(t *testing.T) {
	dir := folder(t, map[string]string{
		"kustomization.yaml": header + "transformers: [tegen.yaml]\n",
		"tegen.yaml":         generator,
	})
	out, err := krm.Overlay(dir, []schema.Source{{Name: "job.yaml", Data: []byte(job)}})
	if err != nil || len(out.Bundles) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := krm.Overlay(dir, nil); err != nil || len(out.Bundles) != 0 || len(out.Rest) != 0 {
		t.Errorf("of no job: %+v, %v", out, err)
	}
}

// TestPipes: reading a pipe would wait for ever.
func TestPipes(t *testing.T) {
	for what, files := range map[string]map[string]string{
		"resource":    {"kustomization.yaml": header + "resources: [job.yaml, pipe]\ntransformers: [tegen.yaml]\n"},
		"transformer": {"kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [pipe, tegen.yaml]\n"},
		"patch": {"kustomization.yaml": header + "resources: [job.yaml]\npatches: [{path: pipe}]\n" +
			"transformers: [tegen.yaml]\n"},
		"of a plugin": {
			"kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [plugin.yaml, tegen.yaml]\n",
			"plugin.yaml":        "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: pipe\n",
		},
	} {
		t.Run(what, func(t *testing.T) {
			files["job.yaml"], files["tegen.yaml"] = job, generator
			dir := folder(t, files)
			if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
				t.Skip("no pipes here")
			}
			if _, err := overlay(t, dir); err == nil || !strings.Contains(err.Error(),
				"neither a file nor a directory") {
				t.Errorf("%v", err)
			}
		})
	}
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "kustomization.yaml"), 0o600); err != nil {
		t.Skip("no pipes here")
	}
	if _, err := overlay(t, dir); err == nil || !strings.Contains(err.Error(), "neither a file nor a directory") {
		t.Errorf("%v", err)
	}
}

// TestSurrogatesInOverlays: a job in JSON has two escapes for some characters.
func TestSurrogatesInOverlays(t *testing.T) {
	text := `{"apiVersion": "tegen.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "resnet", "namespace": ` +
		`"ml"}, "spec": {"image": "x:1", "command": ["a", "\ud83d\ude00"], "workers": {"replicas": 1}}}`
	out := mustOverlay(t, folder(t, map[string]string{
		"kustomization.yaml": header +
			"resources: [job.json]\ntransformers: [tegen.yaml]\n", "job.json": text, "tegen.yaml": generator,
	}))
	if !strings.Contains(out, "😀") {
		t.Errorf("the character is lost:\n%s", out)
	}
}

// TestUnmatchedPatches: kustomize silently ignores a patch whose target nothing matches.
func TestUnmatchedPatches(t *testing.T) {
	const change = "  patch: |\n    - {op: replace, path: /spec/workers/replicas, value: 5}\n"
	target := func(text string) string { return "- target: {" + text + "}\n" + change }
	files := func(patches string) map[string]string {
		return map[string]string{
			"kustomization.yaml": header + "resources: [base]\nnamePrefix: b-\ntransformers: [tegen.yaml]\npatches:\n" +
				patches,
			"tegen.yaml": generator, "base/job.yaml": job,
			"base/kustomization.yaml": header + "resources: [job.yaml]\nnamePrefix: a-\n",
		}
	}
	label := "- target: {kind: TrainingJob}\n  patch: |\n    - {op: add, path: /metadata/labels, value: {made: here}}\n"
	for what, c := range map[string]struct{ patches, says string }{
		"by its kind":                   {target("kind: TrainingJob"), ""},
		"by the name that it had first": {target("name: resnet"), ""},
		"by the name of the base":       {target("name: a-resnet"), ""},
		"by a pattern":                  {target("kind: Training.*, name: .*net"), ""},
		"by a label of another patch":   {label + target("labelSelector: made=here"), ""},
		"a name that nothing has": {
			target("kind: TrainingJob, name: resnett"),
			"kustomization.yaml:7:3: patches[0]: nothing matches its target (kind: TrainingJob, name: resnett)",
		},
		"the second": {
			target("kind: TrainingJob") + target("kind: TraningJob"),
			"kustomization.yaml:10:3: patches[1]: nothing matches its target (kind: TraningJob)",
		},
		"a label that nothing has": {
			target("labelSelector: made=here"),
			"kustomization.yaml:7:3: patches[0]: nothing matches its target (labelSelector: made=here)",
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := folder(t, files(c.patches))
			_, err := krm.Overlay(dir, nil)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			// Of jobs from outside, others may have what the patch is for.
			out, err := krm.Overlay(dir, []schema.Source{{
				Name: "bert.yaml",
				Data: []byte(strings.Replace(job, "name: resnet", "name: bert", 1)),
			}})
			if err != nil {
				t.Fatal(err)
			}
			if (len(out.Notes) == 0) != (c.says == "") || c.says != "" &&
				!strings.Contains(out.Notes[0].String(), strings.Replace(c.says, ": patches", ": note: patches", 1)) {
				t.Errorf("notes %q", out.Notes)
			}
		})
	}
	// A patch for a job that only comes from outside.
	out, err := krm.Overlay(folder(t, files(target("name: bert"))),
		[]schema.Source{{Name: "bert.yaml", Data: []byte(strings.Replace(job, "name: resnet", "name: bert", 1))}})
	if err != nil || len(out.Notes) > 0 || out.Bundles[0].Job.Spec.Workers.Replicas != 5 {
		t.Errorf("%+v, %v", out, err)
	}
}
