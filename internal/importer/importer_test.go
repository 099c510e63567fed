package importer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// imported imports a file of testdata under its bare name.
func imported(t *testing.T, file string) importer.Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return importer.Jobs([]schema.Source{{Name: file, Data: text}})
}

// TestGolden imports manifests in the forms of others' examples.
func TestGolden(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	files := golden.Open(t, "testdata/golden")
	for _, path := range inputs {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			out := imported(t, name+".yaml")
			var notes strings.Builder
			for _, n := range out.Notes {
				fmt.Fprintln(&notes, n)
			}
			files.Compare(t, name+".yaml", out.YAML)
			files.Compare(t, name+".txt", []byte(notes.String()))
			if source, err := os.ReadFile(path); err == nil && !out.Invalid {
				for _, gain := range gains(t, string(source), renders(t, out.YAML), out.Notes) {
					t.Errorf("rendered without a word: %s", gain)
				}
			}
			if _, err := schema.Load([]schema.Source{{Name: name, Data: out.YAML}}); (err != nil) != out.Invalid {
				t.Errorf("invalid is %v, and loading the result says %v", out.Invalid, err)
			}
		})
	}
	files.Orphans(t, ".")
}

// TestErrors names what is known to be wrong in others' examples: each must be told, whatever else is.
func TestErrors(t *testing.T) {
	t.Parallel()
	results := map[string]importer.Result{}
	for name, c := range map[string]struct{ file, want string }{
		"an annotation that is a number": {"dlrover-gang.yaml", `min-available"\]: 2: error: must be a string`},
		"a gang below the rendezvous": {
			"dlrover-gang.yaml",
			`error: spec\.gang\.minAvailable: 2 is below spec\.workers\.min 3`,
		},
		"two processes on one accelerator": {
			"dlrover-gang.yaml",
			`error: spec\.command\[2\]: --nproc_per_node=2 is above spec\.resources\.gpu 1`,
		},
		"a gang that no scheduler reads": {"dlrover-gang.yaml", `error: the pods name no schedulerName`},
		"kind in a pod template": {
			"elasticjob.yaml",
			`template\.kind: "Pod": dropped: no pod template has this field`,
		},
		"apiVersion in a pod template": {
			"elasticjob.yaml",
			`template\.apiVersion: "v1": dropped: no pod template has this field`,
		},
		"etcd latest with the v2 API": {
			"torchelastic-pods.yaml",
			`"quay\.io/coreos/etcd:latest": error: etcd 3\.6`,
		},
		"an address that nobody has": {
			"torchelastic-pods.yaml",
			`"http://0\.0\.0\.0:2379": error: .*advertises`,
		},
		"a key that stands twice": {
			"torchelastic-pods.yaml",
			`spec\.volumes\[0\]\.name: warning: the key stands twice`,
		},
		"a volume that anyone may take": {
			"torchelastic-pods.yaml",
			`storageClassName: "efs-sc": error: any claim`,
		},
		"a placeholder": {
			"torchelastic-pods.yaml",
			`error: spec\.script\.s3: must be an S3 URI.*placeholders`,
		},
		"a worker that is unlike the others": {
			"torchelastic-pods.yaml",
			`volumeMounts\[2\].*dropped: the workers of a job are alike`,
		},
		"a sidecar of a foreign etcd": {"etcd-pod.yaml", `Pod etcd: spec\.containers\[1\].*dropped`},
		"a class's parameters": {
			"etcd-pod.yaml",
			`StorageClass efs-sc: parameters\.fileSystemId: "fs-9": dropped`,
		},
		"the one that trains among several": {
			"driver.yaml",
			`replicatedJobs\[1\]\.name: "trainers": translated: these pods are those of group worker`,
		},
		"an image without a version": {"pytorchjob.yaml", `refused: spec\.image: must be an image with a tag`},
	} {
		found := false
		out, ok := results[c.file]
		if !ok {
			out = imported(t, c.file)
			results[c.file] = out
		}
		for _, n := range out.Notes {
			found = found || regexp.MustCompile(c.want).MatchString(n.String())
		}
		if !found {
			t.Errorf("%s: no note on %s like %s", name, c.file, c.want)
		}
		if out.Jobs == 0 || len(out.YAML) == 0 {
			t.Errorf("%s: %s gave no job", name, c.file)
		}
	}
}

// TestBroken imports what can be imported of a stream in which other documents cannot be read.
func TestBroken(t *testing.T) {
	t.Parallel()
	const text = `a: [
---
just text
---
kind: Nameless
---
apiVersion: v1
kind: Pod
metadata: {name: sole}
---
apiVersion: batch/v1
kind: Job
metadata: {name: 7}
spec: {completionMode: Indexed, template: [], parallelism: many}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
spec: {replicatedJobs: {}}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: no-spec}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a-name-that-is-much-longer-than-forty-characters}
spec: {pytorchReplicaSpecs: {Worker: {template: {spec:
  {containers: [{}, 3, {name: x, env: 5, volumeMounts: [{}], args: {}}]}}}}}
`
	out := importer.Jobs([]schema.Source{{Name: "broken.yaml", Data: []byte(text)}})
	if out.Jobs != 2 || !out.Invalid || !out.Lossy {
		t.Errorf("%d jobs, invalid %v, lossy %v: want 2 jobs, both true", out.Jobs, out.Invalid, out.Lossy)
	}
	for _, n := range out.Notes {
		if n.Line == 0 && n.Verdict != importer.Unread {
			t.Errorf("a note without a line: %s", n)
		}
	}
}

// TestSame: the same input gives the same bytes and notes.
func TestSame(t *testing.T) {
	t.Parallel()
	first := imported(t, "pytorchjob.yaml")
	for range 5 {
		if diff := cmp.Diff(first, imported(t, "pytorchjob.yaml")); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
	}
}
