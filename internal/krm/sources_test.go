package krm_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/schema"
)

// TestSources: jobs from outside come out as they would if the overlay listed them, however many there are. Objects of
// the overlay that are none of theirs stay as they are.
func TestSources(t *testing.T) {
	const component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
	const five = "\n  patch: " + `'[{"op": "replace", "path": "/spec/workers/replicas", "value": 5}]'` + "\n"
	named := func(kind, name, rest string) string {
		return "apiVersion: tegen.dev/v1alpha1\nkind: " + kind +
			"\nmetadata: {name: " + name + ", namespace: ml}\n" + rest
	}
	const replicas = "spec: {workers: {replicas: 3}}\n"
	for what, files := range map[string]map[string]string{
		"prefix, suffix, namespace and labels": {"overlay": "namePrefix: a-\nnameSuffix: -z\nnamespace: prod\n" +
			"labels: [{pairs: {team: vision}}]\ncommonAnnotations: {owner: me}\n"},
		"a patch by target":        {"overlay": "patches:\n- target: {kind: TrainingJob}" + five},
		"a patch by target's name": {"overlay": "patches:\n- target: {kind: TrainingJob, name: job-1.7}" + five},
		"a patch whose text ends in a block": {
			"overlay": "patches:\n- target: {kind: TrainingJob, name: job-1.7}\n  patch: |\n" +
				"    - op: add\n      path: /spec/env\n      value: [{name: A, value: \"a\\u00a0b # c\"}]\n" +
				"    - op: add\n      path: /spec/args\n      value:\n        - |\n          train.py\n",
		},
		"patches by name": {
			"overlay":    "patches: [{path: patch.yaml}]\n",
			"patch.yaml": named("TrainingJob", "job-3", replicas) + "---\n" + named("TrainingJob", "job-110", replicas),
		},
		"a patch by name, before one by label": {
			"overlay":    "patches:\n- path: patch.yaml\n- target: {kind: TrainingJob, labelSelector: '!x'}" + five,
			"patch.yaml": named("TrainingJob", "job-3", "spec: {image: example.org/train:2.0}\n"),
		},
		"patches by name, as they were written once": {
			"overlay":    "patchesStrategicMerge: [patch.yaml]\n",
			"patch.yaml": named("TrainingJob", "job-3", replicas),
		},
		"a patch of what is no job": {
			"overlay": "patches: [{path: patch.yaml}]\n",
			"patch.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: ml}\n" +
				"data: {a: c}\n",
		},
		"a component": {
			"overlay": "components: [component]\n",
			"component/kustomization.yaml": component + "namePrefix: c-\ncomponents: [inner]\n" +
				"resources: [environment.yaml]\npatches:\n- target: {kind: TrainingJob, name: job-1.*}" + five,
			"component/environment.yaml": environment,
			"component/inner/kustomization.yaml": component + "patches: [{path: patch.yaml}]\n" +
				"configMapGenerator: [{name: made, literals: [a=b]}]\n",
			"component/inner/patch.yaml": named("TrainingJob", "job-115", replicas),
		},
		"what relates jobs": {
			"overlay": "replacements:\n- source: {kind: TrainingJob, name: job-0, fieldPath: spec.workers.replicas}\n" +
				"  targets: [{select: {name: job-2.*}, fieldPaths: [spec.workers.replicas]}]\n",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var sources []schema.Source
			listed, outside := maps.Clone(files), maps.Clone(files)
			var names []string
			for i := range 120 {
				text := strings.Replace(job, "name: resnet", fmt.Sprintf("name: job-%d", i), 1)
				names = append(names, fmt.Sprintf("job-%d.yaml", i))
				listed[names[i]] = text
				if i < 20 { // the rest are in one file
					sources = append(sources, schema.Source{Name: names[i], Data: []byte(text)})
				} else if i == 20 {
					sources = append(sources, schema.Source{Name: "many.yaml", Data: []byte(text)})
				} else {
					sources[20].Data = append(sources[20].Data, "---\n"+text...)
				}
			}
			for _, all := range []map[string]string{listed, outside} {
				all["tegen.yaml"], all["other.yaml"] = generator, configMap
				if files["component/environment.yaml"] != "" {
					all["tegen.yaml"] = strings.Replace(labGenerator, "lab", "c-lab", 1) // with the component's prefix
				}
			}
			listed["kustomization.yaml"] = header + "resources: [other.yaml, " + strings.Join(names, ", ") + "]\n" +
				"transformers: [tegen.yaml]\n" + files["overlay"]
			outside["job-0.yaml"] = listed["job-0.yaml"]
			outside["kustomization.yaml"] = header + "resources: [other.yaml, job-0.yaml]\n" +
				"transformers: [tegen.yaml]\n" + files["overlay"]
			out, err := krm.Overlay(folder(t, outside), sources)
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Notes) > 0 {
				t.Fatalf("notes %q", out.Notes)
			}
			var got strings.Builder
			if err := out.Write(&got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(byID(t, mustOverlay(t, folder(t, listed))), byID(t, got.String())); diff != "" {
				t.Errorf("(-listed +from outside):\n%s", diff)
			}
		})
	}
}

// TestSourcesTwice: two jobs of one name are refused, in whichever groups they are.
func TestSourcesTwice(t *testing.T) {
	dir := folder(t, map[string]string{
		"kustomization.yaml": header + "transformers: [tegen.yaml]\nresources: [job.yaml]\n",
		"job.yaml":           job, "tegen.yaml": generator,
	})
	var sources []schema.Source
	for i := range 150 {
		sources = append(sources, schema.Source{
			Name: fmt.Sprintf("job-%d.yaml", i),
			Data: []byte(strings.Replace(job, "name: resnet", fmt.Sprintf("name: job-%d", i%149), 1)),
		})
	}
	if _, err := overlay(t, dir, sources...); err == nil || !strings.Contains(err.Error(), "job-0") {
		t.Errorf("two jobs of one name: %v", err)
	}
}

// TestSeveralDocuments: a document that kustomize or tegen would not read is an error. Transformers may be in one file,
// and have different names.
func TestSeveralDocuments(t *testing.T) {
	const labels = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: l}\nlabels: {team: one}\n" +
		"fieldSpecs: [{path: metadata/labels, create: true}]\n"
	for _, c := range []struct{ kustomization, config, want string }{
		{"", "---\n" + labels, "tegen.yaml:10:1: transformers: LabelTransformer l: another "},
		{"", "---\n" + strings.Replace(labels, "name: l", "name: n", 1), ""},
		{"---\nnamePrefix: x-\n", "", "kustomization.yaml: it has several documents"},
		{"---\n# a comment\n", "---\n# a comment\n", ""},
	} {
		_, err := overlay(t, folder(t, map[string]string{
			"kustomization.yaml": header + "transformers: [two.yaml, tegen.yaml]\nresources: [job.yaml]\n" +
				c.kustomization,
			"job.yaml": job, "tegen.yaml": generator + c.config,
			"two.yaml": labels + "---\n" + strings.Replace(labels, "name: l", "name: m", 1),
		}))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q and %q: %v, want %q", c.kustomization, c.config, err, c.want)
		}
	}
}

// TestSourcesDeleted: a patch that deletes the jobs from outside leaves nothing, and not the overlay's own jobs.
func TestSourcesDeleted(t *testing.T) {
	dir := folder(t, map[string]string{
		"kustomization.yaml": header + "transformers: [tegen.yaml]\nresources: [job.yaml]\n" +
			"patches: [{target: {kind: TrainingJob, name: other}, patch: \"$patch: delete\\napiVersion: " +
			"tegen.dev/v1alpha1\\nkind: TrainingJob\\nmetadata: {name: other}\\n\"}]\n",
		"job.yaml": job, "tegen.yaml": generator,
	})
	source := schema.Source{Name: "a.yaml", Data: []byte(strings.Replace(job, "name: resnet", "name: other", 1))}
	if text, err := overlay(t, dir, source); err != nil || text != "" {
		t.Errorf("%v: want nothing, since the only job that was named is deleted, not\n%.200s", err, text)
	}
}

// TestSourcesBroken: a patch that cannot be read is an error with jobs from outside too.
func TestSourcesBroken(t *testing.T) {
	for what, patch := range map[string]string{
		"no YAML":           "a: [",
		"JSON, of nothing":  `[{"op": "replace", "path": "/spec/image", "value": "a:1"}]`,
		"of what is nobody": "{apiVersion: tegen.dev/v1alpha1, kind: TrainingJob, metadata: {name: x, namespace: ml}}",
	} {
		dir := folder(t, map[string]string{
			"kustomization.yaml": header + "transformers: [tegen.yaml]\nresources: [job.yaml]\n" +
				"patches: [{path: p.yaml}]\n",
			"job.yaml": job, "tegen.yaml": generator, "p.yaml": patch,
		})
		source := schema.Source{Name: "a.yaml", Data: []byte(job)}
		if _, err := overlay(t, dir, source); err == nil || !strings.Contains(err.Error(), "patch") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestGivenNames: a mistake that kustomize finds in files from outside has their names.
func TestGivenNames(t *testing.T) {
	dir := folder(t, map[string]string{
		"kustomization.yaml": header + "transformers: [tegen.yaml]\n", "tegen.yaml": generator,
	})
	_, err := krm.Overlay(dir, []schema.Source{{Name: "jobs/a.yaml", Data: []byte(job + "---\n" + job)}})
	if err == nil || !strings.Contains(err.Error(), "resources from 'jobs/a.yaml'") ||
		strings.Contains(err.Error(), "tegen-input") {
		t.Errorf("%v", err)
	}
}
