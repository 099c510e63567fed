package krm_test

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/schema"
)

// TestOutlines: however a job from outside is written, a selector of labels finds it, its notes have its position, and
// what no selector finds is named.
func TestOutlines(t *testing.T) {
	const spec = "spec:\n  image: example.org/train:1.0\n  command: [python, train.py]\n  workers: {replicas: 2}\n"
	const head = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\n"
	const metadata = "metadata:\n  name: resnet\n  namespace: ml\n  labels: {team: vision}\n"
	for what, c := range map[string]struct{ text, at string }{
		"as most are":     {head + metadata + spec, "a.yaml:1:1"},
		"a marker before": {"# of a team\n---\n" + head + metadata + spec, "a.yaml:3:1"},
		"its spec first":  {spec + metadata + head, "a.yaml:1:1"},
		"a list at the left edge": {
			head + strings.Replace(spec, "workers:", "args:\n  - a\n  workers:", 1) + metadata, "a.yaml:1:1",
		},
		"in braces": {
			"{apiVersion: tegen.dev/v1alpha1, kind: TrainingJob, metadata: {name: resnet, namespace: ml,\n" +
				"labels: {team: vision}}, spec: {image: 'a:1', command: [a], workers: {replicas: 2}}}\n", "a.yaml:1:1",
		},
		"its kind in quotes": {
			"apiVersion: tegen.dev/v1alpha1\nkind: \"TrainingJob\"\n" + metadata + spec, "a.yaml:1:1",
		},
		"a text that looks like a key": {
			head + "metadata:\n  name: resnet\n  namespace: ml\n  labels: {team: vision}\n  annotations:\n" +
				"    example.org/a: |\n      spec:\n        x\n" + spec, "a.yaml:1:1",
		},
		"line ends of Windows": {strings.ReplaceAll(head+metadata+spec, "\n", "\r\n"), "a.yaml:1:1"},
	} {
		t.Run(what, func(t *testing.T) {
			for selector, want := range map[string]string{"team=vision": "", "team=nlp": "nothing matches its target"} {
				dir := folder(t, map[string]string{
					"kustomization.yaml": header + "transformers: [tegen.yaml]\nresources: [job.yaml]\npatches:\n" +
						"- target: {labelSelector: " + selector + "}\n  patch: |\n" +
						"    - {op: replace, path: /spec/workers/replicas, value: 5}\n",
					"job.yaml": job, "tegen.yaml": generator,
				})
				out, err := krm.Overlay(dir, []schema.Source{{Name: "a.yaml", Data: []byte(c.text)}})
				if err != nil {
					t.Fatal(err)
				}
				if (len(out.Notes) == 0) != (want == "") || !strings.Contains(out.Notes.Error(), want) {
					t.Errorf("%s: notes %q, want %q", selector, out.Notes, want)
				}
				if at := out.Bundles[0].Job.Position(); at != c.at {
					t.Errorf("%s: it is at %s, want %s", selector, at, c.at)
				}
				if n := out.Bundles[0].Job.Spec.Workers.Replicas; (n == 5) != (want == "") {
					t.Errorf("%s: %d workers", selector, n)
				}
			}
		})
	}
}

// TestOutlineWithoutSpec: where a patch is made of what a job's spec says, selectors are tried on all of it.
func TestOutlineWithoutSpec(t *testing.T) {
	dir := folder(t, map[string]string{
		"kustomization.yaml": header + "transformers: [tegen.yaml]\nresources: [job.yaml]\npatches:\n" +
			"- target: {kind: TrainingJob}\n  patch: |\n" +
			"    - {op: add, path: /metadata/labels, value: {team: vision}}\n" +
			"    - {op: copy, from: /spec/command/0, path: /metadata/labels/runs}\n" +
			"- target: {labelSelector: runs=python}\n  patch: |\n" +
			"    - {op: replace, path: /spec/workers/replicas, value: 5}\n",
		"job.yaml": job, "tegen.yaml": generator,
	})
	out, err := krm.Overlay(dir, []schema.Source{{Name: "a.yaml", Data: []byte(job)}})
	if err != nil || len(out.Notes) > 0 || out.Bundles[0].Job.Spec.Workers.Replicas != 5 {
		t.Errorf("%v, notes %q, jobs %v", err, out.Notes, out.Bundles)
	}
}
