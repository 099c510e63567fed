package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// tutorial turns the tutorial's manifests as they are published into what a user applies: the ids are filled in, and
// the key that stands twice stands once. The namespace is the test's own, since another test has the tutorial's.
var tutorial = strings.NewReplacer(
	"<BUCKET>", "acme-training", "<USER>", "ana", "<JOB_ID>", "imagenet",
	"    - {name: dshm, mountPath: /scratch}\n", "",
	"  - name: persistent-storage\n    name: persistent-storage\n", "  - name: persistent-storage\n",
)

// filling is the tutorial's pod that fills the volume, which import leaves beside the job. There is no network here, so
// it makes a file.
const filling = `apiVersion: v1
kind: Pod
metadata: {name: download-dataset-task, namespace: imported}
spec:
  restartPolicy: OnFailure
  containers:
  - name: app
    image: torchelastic/examples:0.1.0rc1
    command: [/bin/sh, -c, "mkdir -p /data/tiny-imagenet-200/train && touch /data/tiny-imagenet-200/train/n01443537"]
    volumeMounts: [{name: persistent-storage, mountPath: /data}]
  volumes:
  - name: persistent-storage
    persistentVolumeClaim: {claimName: efs-claim}
`

// TestImported takes the tutorial's manifests through import and render, and trains with what comes out.
func TestImported(t *testing.T) {
	w := begin(t)
	j := w.job(t, "1 tutorial, imported", importedTutorial(t), "")
	beside := filepath.Join(t.TempDir(), "download.yaml")
	if err := os.WriteFile(beside, []byte(filling), 0o600); err != nil {
		t.Fatal(err)
	}
	// The tutorial's pods are held to nothing, and import adds nothing that changes how they run.
	j.kubectl(t, "label", "namespace", "imported", "pod-security.kubernetes.io/enforce=baseline", "--overwrite")
	j.apply()
	j.kubectl(t, "apply", "-f", beside)
	two := j.awaitWorld(2, j.applied, patience)
	j.took("apply to two workers that train", j.applied, two.stepped)
	j.checkMaster(two)
	j.stop(two.joins[1].Pod)
	j.awaitDone(2, two.stepped, patience)
	for _, e := range two.joins {
		j.awaitSucceeded(e.Pod)
	}
}

// importedTutorial renders what import makes of the manifests.
func importedTutorial(t *testing.T) (file string) {
	t.Helper()
	name := filepath.Join(root, "internal/importer/testdata/torchelastic-pods.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	out := importer.Jobs([]schema.Source{{Name: name, Data: []byte(tutorial.Replace(string(text)))}})
	for _, n := range out.Notes {
		t.Log(n)
	}
	if out.Jobs != 1 || out.Invalid || out.Lossy { // tegen import --strict
		t.Fatalf("%d jobs, invalid: %t, something was lost: %t\n%s", out.Jobs, out.Invalid, out.Lossy, out.YAML)
	}
	job := strings.Replace(string(out.YAML), "  name: imagenet\n", "  name: imagenet\n  namespace: imported\n", 1)
	return manifest(t, "imported.yaml", job, "kind")
}

// TestImportedRenders needs no lab.
func TestImportedRenders(t *testing.T) {
	t.Parallel()
	importedTutorial(t)
}
