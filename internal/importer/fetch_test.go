package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// TestFetched: what fetches data for a job, beside it or in its pods, is told of with the field that takes its place.
func TestFetched(t *testing.T) {
	t.Parallel()
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec: {template: {spec: {restartPolicy: " +
		"Never, %scontainers: [{name: c, image: 'a/b:1', command: [torchrun, t.py], volumeMounts: [{name: d, " +
		"mountPath: /data}]}], volumes: [{name: d, persistentVolumeClaim: {claimName: %s}}]}}}\n"
	const pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: get}\nspec: {containers: [{name: c, image: " +
		"'a/c:1', %s}], volumes: [{name: x, persistentVolumeClaim: {claimName: data}}]}\n"
	const beside = "into claim data, which job train mounts: keep it beside and let it end before the job starts, or " +
		"have the job fetch it, by "
	for name, c := range map[string]struct{ init, claim, fetch, want, not string }{
		"a bucket": {
			fetch: `command: [sh, -c, "mkdir -p /d && aws s3 sync --no-progress s3://b/sets /d"]`,
			want:  beside + "spec.storage[0].dataset.url: s3://b/sets/",
		},
		"one object": {
			fetch: `command: [aws], args: [s3, cp, "s3://b/a.tar", /d]`,
			want:  beside + "spec.storage[0].dataset.url: s3://b/a.tar",
		},
		"what goes into a bucket": {
			fetch: `command: [aws, s3, cp, /d, "s3://b/out"]`, want: "Pod get: beside: not part",
		},
		"a model": {
			fetch: `command: [sh, -c, "pip install huggingface_hub; huggingface-cli download meta/llama-3"]`,
			want:  beside + "spec.storage[0].dataset.url: hf://meta/llama-3",
		},
		"a dataset of the Hub": {
			fetch: `command: [hf, download, --repo-type, dataset, org/set]`,
			want:  beside + "spec.storage[0].dataset.url: hf://datasets/org/set",
		},
		"an archive": {
			fetch: `command: [sh, -c, "wget -q -O /d/a.tar https://example.org/a.tar && tar xf /d/a.tar"]`,
			want:  beside + "spec.storage[0].dataset.url: https://example.org/a.tar",
		},
		"a repository": {
			fetch: `command: [git, clone, --depth, "1", "https://example.org/a.git", /d]`,
			want:  beside + "spec.code.git.repository: https://example.org/a.git",
		},
		"a place that a variable names": {
			fetch: `command: [sh, -c, "aws s3 sync s3://$BUCKET/sets /d"]`, want: "Pod get: beside: not part",
		},
		"another claim": {
			claim: "other", fetch: `command: [aws, s3, cp, "s3://b/a.tar", /d]`, want: "Pod get: beside: not part",
		},
		"git-sync in the pod": {
			init: "initContainers: [{name: get, image: 'a/git-sync:v4.4.0', args: ['--repo=https://example.org/a.git'" +
				"]}], ",
			fetch: "command: [x]",
			want: `initContainers[0].name: "get": warning: it fetches https://example.org/a.git, ` +
				"anew in each pod: it is kept in podTemplate; a git-sync that tegen renders fetches it, by " +
				"spec.code.git.repository: https://example.org/a.git",
		},
		"a bucket in the pod": {
			init:  "initContainers: [{name: get, image: 'a/aws:1', command: [aws, s3, sync, 's3://b/sets', /d]}], ",
			fetch: "command: [x]", want: "a volume of spec.storage has it fetched once for all pods, by " +
				"spec.storage[n].dataset.url: s3://b/sets/",
		},
		"what fetches nothing": {
			init: "initContainers: [{name: get, image: 'a/aws:1', command: [chown, '1', /d]}], ", fetch: "command: [x]",
			want: "Pod get: beside: not part", not: "it fetches",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := "data"
			if c.claim != "" {
				claim = c.claim
			}
			in := fmt.Sprintf(job, c.init, claim) + fmt.Sprintf(pod, c.fetch)
			var notes strings.Builder
			for _, n := range importer.Jobs([]schema.Source{{Name: "x.yaml", Data: []byte(in)}}).Notes {
				fmt.Fprintln(&notes, n)
			}
			if !strings.Contains(notes.String(), c.want) || c.not != "" && strings.Contains(notes.String(), c.not) {
				t.Errorf("want %q and not %q in:\n%s", c.want, c.not, notes.String())
			}
		})
	}
}
