package krm_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/schema"
)

// TestPositions: notes about a job have the position where it was written, whatever its name in the overlay, and no
// line where that is unknown.
func TestPositions(t *testing.T) {
	other := strings.Replace(job, "name: resnet", "name: bert", 1)
	rename := "patches:\n- target: {kind: TrainingJob}\n  options: {allowNameChange: true}\n  patch: |\n" +
		"    - {op: replace, path: /metadata/name, value: x}\n"
	for what, c := range map[string]struct {
		files map[string]string
		given string
		want  map[string]string // by the name at the end
	}{
		"its own": {
			files: map[string]string{"kustomization.yaml": "resources: [job.yaml]\n", "job.yaml": "# what for\n" + job},
			want:  map[string]string{"ml/resnet": "job.yaml:2:1"},
		},
		"the second of a file": {
			files: map[string]string{
				"kustomization.yaml": "resources: [job.yaml]\n",
				"job.yaml":           configMap + "---\n" + job,
			},
			want: map[string]string{"ml/resnet": "job.yaml:9:1"},
		},
		"of a base, with prefixes, a suffix and a namespace": {
			files: map[string]string{
				"kustomization.yaml":      "resources: [base]\nnamePrefix: a-\nnameSuffix: -c\nnamespace: prod\n",
				"base/kustomization.yaml": "resources: [job.yaml, bert.yaml]\nnamePrefix: b-\n",
				"base/job.yaml":           job, "base/bert.yaml": other,
			},
			want: map[string]string{"prod/a-b-resnet-c": "base/job.yaml:1:1", "prod/a-b-bert-c": "base/bert.yaml:1:1"},
		},
		"of a component that renames": {
			files: map[string]string{
				"kustomization.yaml": "resources: [job.yaml]\ncomponents: [c]\n", "job.yaml": job,
				"c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n" +
					"resources: [bert.yaml]\nnamePrefix: c-\n", "c/bert.yaml": other,
			},
			want: map[string]string{"ml/c-resnet": "job.yaml:1:1", "ml/c-bert": "c/bert.yaml:1:1"},
		},
		"two of a name": {
			files: map[string]string{
				"kustomization.yaml": "resources: [job.yaml, other.yaml]\n",
				"job.yaml":           job,
				"other.yaml":         strings.Replace(job, "namespace: ml", "namespace: nlp", 1),
			},
			want: map[string]string{"ml/resnet": "job.yaml:1:1", "nlp/resnet": "other.yaml:1:1"},
		},
		"given, of the name of one": {
			files: map[string]string{
				"kustomization.yaml": "resources: [job.yaml]\nnamePrefix: a-\n",
				"job.yaml":           "\n\n" + job,
			},
			given: "# new\n" + job,
			want:  map[string]string{"ml/a-resnet": "given.yaml:2:1"},
		},
		"given, whose name is written with an escape": {
			files: map[string]string{"kustomization.yaml": ""},
			given: "# new\n" + strings.Replace(job, "name: resnet", "name: \"res\\u006eet\"", 1),
			want:  map[string]string{"ml/resnet": "given.yaml:2:1"},
		},
		"given, whose name is a part of another's": {
			files: map[string]string{"kustomization.yaml": "namePrefix: a-\nnameSuffix: -c\nnamespace: prod\n"},
			given: strings.Replace(job, "name: resnet", "name: resnet-2", 1) + "---\n" + job + "---\n" + other,
			want: map[string]string{
				"prod/a-resnet-2-c": "given.yaml:1:1", "prod/a-resnet-c": "given.yaml:13:1",
				"prod/a-bert-c": "given.yaml:25:1",
			},
		},
		"a patch's name": {
			files: map[string]string{"kustomization.yaml": "resources: [job.yaml]\n" + rename, "job.yaml": job},
			want:  map[string]string{"ml/x": "TrainingJob/x"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			c.files["kustomization.yaml"] += "transformers: [tegen.yaml]\n"
			c.files["tegen.yaml"] = generator
			dir := folder(t, c.files)
			t.Chdir(dir)
			var given []schema.Source
			if c.given != "" {
				given = []schema.Source{{Name: "given.yaml", Data: []byte(c.given)}}
			}
			out, err := krm.Overlay(".", given)
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Bundles) != len(c.want) {
				t.Errorf("%d jobs, want %d", len(out.Bundles), len(c.want))
			}
			for _, b := range out.Bundles {
				id := b.Job.Metadata.Namespace + "/" + b.Job.Metadata.Name
				if got := b.Job.Position(); got != filepath.FromSlash(c.want[id]) {
					t.Errorf("%s stands at %q, want %q", id, got, c.want[id])
				}
			}
		})
	}
}

// TestPositionsOfMany: jobs are found where they stand, whether a few of them are asked for or all.
func TestPositionsOfMany(t *testing.T) {
	t.Parallel()
	var given strings.Builder
	want := map[string]string{}
	for i := range 40 {
		want[fmt.Sprintf("a-job-%d", i)] = fmt.Sprintf("given.yaml:%d:1", 2+strings.Count(given.String(), "\n"))
		given.WriteString("---\n" + strings.Replace(job, "name: resnet", fmt.Sprintf("name: job-%d", i), 1))
	}
	dir := folder(t, map[string]string{
		"kustomization.yaml": header + "namePrefix: a-\ntransformers: [tegen.yaml]\n", "tegen.yaml": generator,
	})
	out, err := krm.Overlay(dir, []schema.Source{{Name: "given.yaml", Data: []byte(given.String())}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, b := range out.Bundles {
		got[b.Job.Metadata.Name] = b.Job.Position()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
}
