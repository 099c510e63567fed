package importer_test

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// indexed is a Job with one container, of these further fields.
func indexed(t *testing.T, annotations, container, volumes string) (out importer.Result, notes string) {
	t.Helper()
	text := `apiVersion: batch/v1
kind: Job
metadata: {name: j-worker, annotations: ` + annotations + `}
spec:
  completionMode: Indexed
  completions: 1
  parallelism: 1
  template:
    spec:
      restartPolicy: Never
      volumes: ` + volumes + `
      containers: [{name: worker, image: "a/b:1", ` + container + `}]
`
	out = importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(text)}})
	var b strings.Builder
	for _, n := range out.Notes {
		b.WriteString(n.String() + "\n")
	}
	return out, b.String()
}

// TestWritten: what stands without quotes where text belongs is taken as it was written, not as YAML reads it.
func TestWritten(t *testing.T) {
	t.Parallel()
	out, notes := indexed(t, "{tag: 1.10, sum: 0123456, y: 12e4}",
		"command: [python, t.py, 1e-4, 00017, on], env: [{name: N, value: yes}]", "[]")
	for written, note := range map[string]string{
		`tag: "1.10"`: ".tag: 1.10: error", `sum: "0123456"`: ".sum: 0123456: error", `"y": "12e4"`: ".y: 12e4: error",
		`- "1e-4"`: "command[2]: 1e-4: error", `- "00017"`: "command[3]: 00017: error",
		`- "on"`:    "command[4]: on: error",
		`name: "N"`: "env[0].name: N: error", `value: "yes"`: "env[0].value: yes: error",
	} {
		if !strings.Contains(string(out.YAML), written) {
			t.Errorf("no %s in the job:\n%s", written, out.YAML)
		}
		if !strings.Contains(notes, note) {
			t.Errorf("no note %s in\n%s", note, notes)
		}
	}
}

// TestRoom: volumes that the input bounds, but not the memory or storage that they count against, are no mistake of
// its.
func TestRoom(t *testing.T) {
	t.Parallel()
	const mounts = "command: [python, t.py], volumeMounts: [{name: m, mountPath: /dev/shm}, {name: s, mountPath: " +
		"/scratch}]"
	for _, size := range []string{"4Gi", "160Gi"} {
		out, notes := indexed(t, "{}", mounts,
			"[{name: m, emptyDir: {medium: Memory, sizeLimit: "+size+"}}, {name: s, emptyDir: {sizeLimit: "+size+"}}]")
		want := "  resources:\n    cpu: none\n    memory: none\n    shm: " + size + "\n    tmp: none\n"
		if out.Invalid || !strings.Contains(string(out.YAML), want) || strings.Contains(string(out.YAML), "volumes:") {
			t.Errorf("want a valid job with %q, got\n%s%s", want, out.YAML, notes)
		}
	}
}

// TestNothingAdded: what a pod is given by default, and its source does not have, is switched off in the job.
func TestNothingAdded(t *testing.T) {
	t.Parallel()
	out, notes := indexed(t, "{}", "command: [python, t.py]", "[]")
	text := renders(t, out.YAML)
	for _, added := range []string{
		"cpu:", "memory:", "ephemeral-storage", "runAs", "fsGroup", "65534", "/dev/shm",
		"/tmp", "seccomp", "drop:", "allowPrivilegeEscalation", "HOME", "automountServiceAccountToken: false",
		"enableServiceLinks: false", "NetworkPolicy", "PodDisruptionBudget", "ttlSeconds",
	} {
		if strings.Contains(text, added) {
			t.Errorf("%s is rendered, and was not there", added)
		}
	}
	if t.Failed() {
		t.Logf("%s%s%s", out.YAML, notes, text)
	}
}

func TestRequestedAccelerators(t *testing.T) {
	t.Parallel()
	out, notes := indexed(t, "{}", "command: [python, t.py], resources: {requests: {nvidia.com/gpu: 2}}", "[]")
	if !strings.Contains(string(out.YAML), "gpu: 2\n") || strings.Contains(string(out.YAML), "containers:") ||
		!strings.Contains(notes, `requests["nvidia.com/gpu"]: 2: error`) {
		t.Errorf("want spec.resources.gpu 2 and a error, got\n%s%s", out.YAML, notes)
	}
}

// TestUnlikePods: what only the first of several bare pods has, the others are given, and a note of each says so.
func TestUnlikePods(t *testing.T) {
	t.Parallel()
	const pod = `---
apiVersion: v1
kind: Pod
metadata: {name: p-worker-NUMBER, labels: {LABEL: x}}
spec:
  restartPolicy: OnFailure
  containers: [{name: worker, image: "a/b:1", args: [t.py], env: [{name: RDZV_ENDPOINT,
    value: "etcd:2379"}, {name: VARIABLE, value: x}]}]
`
	text := strings.NewReplacer("NUMBER", "1", "LABEL", "first", "VARIABLE", "ONLY1").Replace(pod) +
		strings.NewReplacer("NUMBER", "2", "LABEL", "second", "VARIABLE", "ONLY2").Replace(pod)
	out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(text)}})
	for _, n := range out.Notes {
		if n.Object == "Pod p-worker-2" && n.Verdict == importer.Added && strings.Contains(n.Why, "ONLY1") &&
			strings.Contains(n.Why, "first") && !strings.Contains(n.Why, "/tmp") {
			return
		}
	}
	t.Errorf("no note of what the second pod is given: %v", out.Notes)
}
