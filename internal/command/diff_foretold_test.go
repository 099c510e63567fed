package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/diff"
)

// foretold are changes of jobs that docs/gitops.md has a row about: what Flux and Argo CD were seen to make of each,
// and what diff says of it.
var foretold = []struct {
	row, old, new string
	worst         diff.Class
	changes       map[string]diff.Class // of Kind and path, or of Kind alone where it comes or goes
}{
	{"first sync", "", "", diff.Added, map[string]diff.Class{"Job": diff.Added, "Service": diff.Added}},
	{
		"suspend: false", "suspend: true", "suspend: false", diff.InPlace,
		map[string]diff.Class{"Job spec.suspend": diff.InPlace},
	},
	{
		"a hand's suspension", "suspend: false", "suspend: true", diff.Restart,
		map[string]diff.Class{"Job spec.suspend": diff.Restart},
	},
	{
		"other replicas", "workers: {min: 1, max: 4, replicas: 2}", "workers: {min: 1, max: 4, replicas: 3}",
		diff.InPlace,
		map[string]diff.Class{"Job spec.parallelism": diff.InPlace, "Job spec.completions": diff.InPlace},
	},
	{
		"new image, hashed names", "image: a:1", "image: a:2", diff.Overlap,
		map[string]diff.Class{"Job metadata.name": diff.Overlap},
	},
	{
		"new image, plain names", "{image: a:1, hashedNames: false}", "{image: a:2, hashedNames: false}", diff.Refused,
		map[string]diff.Class{"Job spec.template.spec.containers[worker].image": diff.Refused},
	},
	{
		"two runs, one checkpoint", "{image: a:1, suspend: true}", "{image: a:2, suspend: true}", diff.Recreate,
		map[string]diff.Class{"Job metadata.name": diff.Recreate},
	},
	{"renamed", "{}", "name b", diff.Overlap, map[string]diff.Class{
		"Job metadata.name": diff.Overlap, "Service": diff.Removed, "PersistentVolumeClaim": diff.Removed,
	}},
	{"removed", "{}", "gone", diff.Removed, map[string]diff.Class{
		"Job": diff.Removed, "PersistentVolumeClaim": diff.Removed,
	}},
	{
		"removed, onDelete: delete",
		"storage: [{mountPath: /d, onDelete: delete, dynamic: {size: 1Gi, storageClass: fast}}]",
		"gone", diff.Data,
		map[string]diff.Class{"PersistentVolumeClaim": diff.Data},
	},
	{"another port", "{}", "rendezvous: {port: 29500}", diff.Overlap, map[string]diff.Class{
		"Job metadata.name": diff.Overlap,
	}},
	{
		"another volume of a StatefulSet",
		"rendezvous: {backend: etcd, store: etcd, etcd: {storage: {size: 4Gi, storageClass: fast}}}",
		"rendezvous: {backend: etcd, store: etcd, etcd: {storage: {size: 8Gi, storageClass: fast}}}", diff.Refused,
		map[string]diff.Class{
			"StatefulSet spec.volumeClaimTemplates[0].spec.resources.requests.storage": diff.Refused,
		},
	},
	{
		"JobSet's image", "{target: jobset, image: a:1, hashedNames: false}",
		"{target: jobset, image: a:2, hashedNames: false}", diff.Refused, nil,
	},
	{
		"a queue", "gang: {scheduler: kueue, queue: a}", "gang: {scheduler: kueue, queue: b}", diff.Refused,
		map[string]diff.Class{"Job metadata.labels[\"kueue.x-k8s.io/queue-name\"]": diff.Refused},
	},
	{
		"what finished deletes itself", "{}", "{gitops: false, hashedNames: true}", diff.InPlace,
		map[string]diff.Class{"Job spec.ttlSecondsAfterFinished": diff.InPlace},
	},
}

// TestForetold: what was seen under Flux and Argo CD is what diff says of the same change.
func TestForetold(t *testing.T) {
	for _, c := range foretold {
		t.Run(c.row, func(t *testing.T) {
			before, after := renderedJob(t, c.old), renderedJob(t, c.new)
			if c.row == "first sync" {
				before = t.TempDir()
			}
			var out, notes bytes.Buffer
			args := []string{"tegen", "diff", before, after, "-o", "json"}
			if code := run(generators.Set{}, args, strings.NewReader(""), &out, &notes); code != 0 {
				t.Fatalf("exit code %d: %s", code, &notes)
			}
			var r diff.Report
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if r.Worst != c.worst {
				t.Errorf("worst is %q, want %q: %s", r.Worst, c.worst, &out)
			}
			got := map[string]diff.Class{}
			for _, j := range r.Jobs {
				for _, change := range j.Changes {
					got[strings.TrimSpace(change.Object.Kind+" "+change.Path)] = change.Class
				}
			}
			for what, want := range c.changes {
				if got[what] != want {
					t.Errorf("%s is %q, want %q: %s", what, got[what], want, &out)
				}
			}
		})
	}
}

// renderedJob is the directory of a job that git holds, with what more is said of it.
func renderedJob(t *testing.T, more string) string {
	t.Helper()
	dir := t.TempDir()
	if more == "gone" {
		return dir
	}
	name := "a"
	if after, renamed := strings.CutPrefix(more, "name "); renamed {
		name, more = after, "{}"
	}
	job := "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: " + name + ", namespace: ml}\nspec:\n"
	for _, field := range []string{
		"image: a:1", "command: [train]", "gitops: true", "workers: {replicas: 2}",
		"storage: [{mountPath: /d, dynamic: {size: 1Gi, storageClass: fast}}]",
	} {
		if key, _, _ := strings.Cut(field, ":"); !strings.Contains(more, key+":") {
			job += "  " + field + "\n"
		}
	}
	inner, flow := strings.CutPrefix(more, "{")
	if flow {
		for _, field := range strings.Split(strings.TrimSuffix(inner, "}"), ", ") {
			job += "  " + field + "\n"
		}
	} else {
		job += "  " + more + "\n"
	}
	file := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	rendered := filepath.Join(dir, "rendered")
	args := []string{"tegen", "render", file, "-o", rendered}
	if code := run(generators.Set{}, args, strings.NewReader(""), &out, &notes); code != 0 {
		t.Fatalf("%s\n%s", job, &notes)
	}
	return rendered
}
