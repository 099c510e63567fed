package krm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/schema"
)

const imagesConfig = "images:\n- {path: spec/image, kind: TrainingJob}\n"

// notes are those of an overlay, as lines.
func notes(t *testing.T, dir string, sources ...schema.Source) (lines []string) {
	t.Helper()
	out, err := krm.Overlay(dir, sources)
	if err != nil {
		t.Fatal(err)
	}
	for _, note := range out.Notes {
		lines = append(lines, strings.ReplaceAll(note.String(), dir+"/", ""))
	}
	return lines
}

// TestIdleImages: an entry of images that changes nothing, or leaves an image of a job that has its name, is noted at
// its place, in each kustomization that an overlay is built of. One that acts is not.
func TestIdleImages(t *testing.T) {
	const tag = "images:\n- {name: example.org/train, newTag: '2'}\n"
	for what, c := range map[string]struct {
		base, top string
		want      []string // parts, one for each note
	}{
		"without a configuration": {"", tag, []string{
			"kustomization.yaml:6:3: note: images[0]: TrainingJob resnet keeps example.org/train:1.0 in spec.image: ",
		}},
		"with one":              {"", tag + "configurations: [c.yaml]\n", nil},
		"with one in the base":  {"configurations: [c.yaml]\n", tag, nil},
		"in the base":           {tag, "", []string{"base/kustomization.yaml:5:3: note: images[0]: TrainingJob"}},
		"in the base, with one": {tag + "configurations: [c.yaml]\n", "", nil},
		"two that follow": {
			tag + "configurations: [c.yaml]\n", "images: [{name: example.org/train, newTag: '3'}]\n", nil,
		},
		"one that renames for it": {
			"images: [{name: example.org/train, newName: a}]\nconfigurations: [c.yaml]\n",
			"images: [{name: a, newName: b}]\n", nil,
		},
		"a digest that is there": {"", "images: [{name: example.org/train, newTag: '1.0'}]\n", nil},
		"a name that nothing has": {"", "images: [{name: example.org/tran, newTag: '2'}]\n", []string{
			"kustomization.yaml:5:10: note: images[0]: no image has the name example.org/tran, so it changes nothing; ",
		}},
		"a name in a podTemplate": {"", "images: [{name: example.org/side, newTag: '2'}]\n", nil},
	} {
		t.Run(what, func(t *testing.T) {
			dir := folder(t, map[string]string{
				"base/kustomization.yaml": header + "resources: [job.yaml]\n" + c.base,
				"base/job.yaml": job + "  podTemplate: {spec: {initContainers: [{name: s, image: " +
					"'example.org/side:1'}]}}" +
					"\n",
				"base/c.yaml": imagesConfig, "c.yaml": imagesConfig, "tegen.yaml": generator,
				"kustomization.yaml": header + "resources: [base]\ntransformers: [tegen.yaml]\n" + c.top,
			})
			got := notes(t, dir)
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for i, want := range c.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}
}

// TestNamedJobs: a job that is named on the command line has what the overlay's images and the base's configuration
// make of it, as if the base had it. What the base would do to it is noted.
func TestNamedJobs(t *testing.T) {
	files := map[string]string{
		"base/kustomization.yaml": header + "resources: [job.yaml]\nconfigurations: [c.yaml]\n",
		"base/job.yaml":           job, "base/c.yaml": imagesConfig, "tegen.yaml": generator,
		"kustomization.yaml": header + "resources: [base]\ntransformers: [tegen.yaml]\n" +
			"images: [{name: example.org/train, newTag: '2'}]\n",
	}
	dir := folder(t, files)
	named := schema.Source{Name: dir + "/base/job.yaml", Data: []byte(job)}
	if diff := cmp.Diff(byID(t, mustOverlay(t, dir)), byID(t, mustOverlay(t, dir, named))); diff != "" {
		t.Errorf("(-listed +named):\n%s", diff)
	}
	if got := notes(t, dir, named); len(got) > 0 {
		t.Errorf("noted: %q", got)
	}
	files["base/kustomization.yaml"] += "namePrefix: eu-\nlabels: [{pairs: {a: b}}]\n"
	dir = folder(t, files)
	named.Name = dir + "/base/job.yaml"
	want := "base/kustomization.yaml: note: namePrefix, labels: jobs that are named on the command line do not pass "
	if got := notes(t, dir, named); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("noted %q, want %q", got, want)
	}
	if got := notes(t, dir); len(got) > 0 {
		t.Errorf("without a job that is named it is noted: %q", got)
	}
	named.Name = "other.yaml"
	if got := notes(t, dir, named); len(got) > 0 {
		t.Errorf("of a job that the base does not list it is noted: %q", got)
	}
}

// TestChangedLater: an object that a kustomization changed after tegen is noted at that kustomization, once; the
// function that checks fails. What a prefix adds to references is no change, but the hash of a generator is.
func TestChangedLater(t *testing.T) {
	git := strings.Replace(job, "  gitops: false\n", "", 1)
	middle := map[string]string{
		"base/kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [tegen.yaml]\n",
		"base/job.yaml":           git, "base/tegen.yaml": generator,
		"middle/kustomization.yaml": header + "resources: [../base]\nimages: [{name: example.org/train, newTag: " +
			"'2'}]\n",
		"kustomization.yaml": header + "resources: [middle]\nlabels: [{pairs: {a: b}}]\n",
	}
	dir := folder(t, middle)
	if got := notes(t, dir); len(got) != 1 || !strings.HasPrefix(got[0],
		"middle/kustomization.yaml: note: Job ml/resnet-worker-") {
		t.Errorf("noted %q", got)
	}
	settings := func(field string) string {
		return folder(t, map[string]string{
			"kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [tegen.yaml]\n" + field,
			"job.yaml":           git + "  env: [{name: A, configMap: {name: settings, key: a}}]\n",
			"settings.yaml":      configMap, "tegen.yaml": generator,
		})
	}
	const made = "configMapGenerator: [{name: settings, namespace: ml, literals: [a=b]}]\n"
	for field, changed := range map[string]bool{
		made: true, made + "namePrefix: a-\n": true, made + "generatorOptions: {disableNameSuffixHash: true}\n": false,
		made + "generatorOptions: {disableNameSuffixHash: true}\nnamePrefix: a-\nnameSuffix: -z\n": false,
	} {
		got := notes(t, settings(field))
		if strings.Contains(strings.Join(got, "\n"), "tegen.dev/content-hash") != changed {
			t.Errorf("%s: noted %q", field, got)
		}
	}
	checked := folder(t, map[string]string{
		"kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [tegen.yaml, image.yaml, check.yaml]\n",
		"job.yaml":           git, "tegen.yaml": generator, "check.yaml": strings.Replace(generator, "kind: Generator",
			"kind: Check", 1),
		"image.yaml": "apiVersion: builtin\nkind: ImageTagTransformer\nmetadata: {name: image}\n" +
			"imageTag: {name: example.org/train, newTag: '2'}\n",
	})
	_, msg, err := newKustomize(t).build(t, checked, full...)
	if err == nil || !strings.Contains(msg, "tegen.dev/content-hash") {
		t.Errorf("the function that checks: %v\n%s", err, msg)
	}
}

// TestIdleReplacements: a target of a replacement that selects nothing is refused, in a file of its own too, as is a
// patch that does; the error leads to where the object is.
func TestIdleReplacements(t *testing.T) {
	const source = "source: {kind: TrainingJob, name: resnet, fieldPath: spec.image}\n"
	const kept = "- select: {kind: TrainingJob, name: resnet}\n  fieldPaths: [spec.image]\n"
	const idle = "- select: {kind: TrainingJob, name: other}\n  fieldPaths: [spec.image]\n"
	indented := func(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }
	for what, c := range map[string]struct{ field, file, want string }{
		"all act": {"replacements:\n- " + indented(source+"targets:\n"+kept), "", ""},
		"one idles": {
			"replacements:\n- " + indented(source+"targets:\n"+kept+idle), "", "replacements[0]: nothing matches",
		},
		"in a file": {
			"replacements: [{path: r.yaml}]", "- " + indented(source+"targets:\n"+idle), "replacements[0]: nothing",
		},
		"one in a file": {
			"replacements: [{path: r.yaml}]", source + "targets:\n" + idle,
			"kustomization.yaml:5:16: replacements[0]: nothing matches its target (kind: TrainingJob, name: other)",
		},
		"of what a patch adds": {"patches: [{target: {kind: TrainingJob}, patch: '[{\"op\": \"add\", \"path\": " +
			"\"/spec/workingDir\", \"value\": \"/a\"}]'}]\nreplacements: [{source: {kind: TrainingJob, fieldPath: " +
			"spec.workingDir}, targets: [{select: {kind: TrainingJob}, fieldPaths: [spec.workingDir]}]}]", "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			dir := folder(t, map[string]string{
				"kustomization.yaml": header + "resources: [job.yaml]\ntransformers: [tegen.yaml]\n" + c.field + "\n",
				"job.yaml":           job, "tegen.yaml": generator, "r.yaml": c.file,
			})
			_, err := overlay(t, dir)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
