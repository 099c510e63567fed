package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/cli"
)

// TestFreshDirectory: a dataset works on a file system that was made a minute ago, where the driver can see to it;
// where nobody does, the job says whose turn it is. A volume that is only read says nothing.
func TestFreshDirectory(t *testing.T) {
	const head = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a, namespace: ml}\n" +
		"spec: {image: 'x:1', command: [python, a.py], workers: {replicas: 1}, storage: [{mountPath: /data, "
	const dataset, checkpoint = ", dataset: {url: 'https://data.acme.example/a.zip'}}]", "}], checkpoint: {path: " +
		"/data/c}"
	const root = "must exist and be writable for user 65534, or "
	for name, c := range map[string]struct{ spec, note, made string }{
		"a dataset":          {"efs: {fileSystem: fs-01234567}" + dataset, "", "provisioningMode: efs-ap"},
		"the root, as it is": {"efs: {fileSystem: fs-01234567}}]", "", "volumeHandle: fs-01234567\n"},
		"the root, by its path": {
			"efs: {fileSystem: fs-01234567, path: /}" + dataset,
			"spec.storage[0]: / of fs-01234567 " + root + "the dataset cannot be fetched; efs.provision",
			"volumeHandle: fs-01234567\n",
		},
		"a directory": {
			"efs: {fileSystem: fs-01234567, path: /d}" + dataset,
			"spec.storage[0]: /d of fs-01234567 " + root + "the dataset", "volumeHandle: fs-01234567:/d\n",
		},
		"a volume by name": {
			"efs: {fileSystem: fs-01234567, volume: efs-pv}" + dataset,
			"spec.storage[0]: / of fs-01234567 " + root + "the dataset", "volumeHandle: fs-01234567\n",
		},
		"checkpoints": {
			"efs: {fileSystem: fs-01234567}" + checkpoint,
			"spec.storage[0]: / of fs-01234567 " + root + "no checkpoint", "volumeHandle: fs-01234567\n",
		},
		"an access point": {
			"efs: {fileSystem: fs-01234567, accessPoint: fsap-01234567}" + dataset, "",
			"volumeHandle: fs-01234567::fsap-01234567\n",
		},
		"an export": {
			"nfs: {server: nfs.acme.example, path: /e}" + dataset,
			"spec.storage[0]: /e of nfs.acme.example " + root, "",
		},
		"a directory of the node": {
			"hostPath: {path: /d}" + dataset,
			"spec.storage[0]: /d of the node " + root + "the dataset cannot be fetched; where it is missing", "",
		},
		"an export that is read":     {"nfs: {server: nfs.acme.example, path: /e}}]", "", ""},
		"pods that are root":         {"hostPath: {path: /d}" + dataset + ", security: {runAsUser: 0}", "", ""},
		"a claim of a default class": {"name: data" + dataset, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, msg, code := tegen(head+c.spec+"}\n", "render", "-")
			if code != cli.ExitOK || !strings.Contains(out, c.made) {
				t.Fatalf("exit %d: %s no %q in:\n%s", code, msg, c.made, out)
			}
			if told := strings.Contains(msg, "spec.storage"); told != (c.note != "") || !strings.Contains(msg, c.note) {
				t.Errorf("%q on standard error, want %q", msg, c.note)
			}
		})
	}
}

// TestFreshPlace: what an environment says of EFS is completed as what a job says.
func TestFreshPlace(t *testing.T) {
	const environment = "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\n" +
		"spec: {storage: {replace: all, efs: {fileSystem: fs-01234567}}}\n"
	const job = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a, namespace: ml}\n" +
		"spec: {image: 'x:1', " +
		"command: [python, a.py], workers: {replicas: 1}, storage: [{mountPath: /data, dataset: {url: " +
		"'https://data.acme.example/a.zip'}}]}\n"
	file := filepath.Join(t.TempDir(), "environment.yaml")
	if err := os.WriteFile(file, []byte(environment), 0o600); err != nil {
		t.Fatal(err)
	}
	out, msg, code := tegen(job, "render", "-", "--environment", file)
	if code != cli.ExitOK || !strings.Contains(out, "provisioningMode: efs-ap") {
		t.Errorf("exit %d: %s no access point in:\n%s", code, msg, out)
	}
}
