package command

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/finding"
)

// TestFindingsOfCommands: what each command finds is the same in each format: as many findings, with one exit code, in
// documents that are whole, whatever goes wrong.
func TestFindingsOfCommands(t *testing.T) {
	atRoot(t)
	t.Setenv("GITHUB_WORKSPACE", "")
	schema := findingsSchema(t)
	job := content(t, "fixtures/valid/minimal.yaml")
	rendered, _, _ := tegen("", "render", "fixtures/valid/minimal.yaml")
	broken := strings.ReplaceAll(rendered, "kind: Service\n", "kind: ConfigMap\n")
	for _, c := range []struct {
		args, stdin string
		code        int
		rules       string // that findings have
	}{
		{"vet fixtures/valid/minimal.yaml --overlay nosuch", "", 1, "tool/error"},
		{"vet --nosuch", "", 2, "tool/usage"},
		{"vet -", job + "---\n" + job, 1, "job/duplicate"},
		{"vet -", "a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n", 1, "job/depth"},
		{"vet -", strings.Repeat("# a\n", 3<<20), 1, "job/size"},
		{"vet -", "a: [", 1, "job/yaml"},
		{"check -", rendered, 0, ""},
		{"check -", broken, 1, "manifest/decode"},
		{"check -", "", 1, "tool/error"},
		{"check -", "a: [", 1, "manifest/yaml"},
		{"check", "", 2, "tool/usage"},
		{"check - --crds overlays/crds", custom, 1, "crd/dropped crd/refused crd/undefined"},
		{"check - --crds nosuch", rendered, 1, "tool/error"},
		{"import -", foreign, 0, "import/dropped"},
		{"import - --strict", foreign, 1, "import/dropped tool/error"},
		{"import -", rendered, 0, ""},
		{"import -", "a: 1\n", 1, "tool/error"},
		{"import nosuch.yaml", "", 1, "tool/error"},
		{"import --strict=maybe", "", 2, "tool/usage"},
		{"plan -", "a: 1\n", 1, "job/required"},
		{"plan - --inventory -", job, 2, "tool/usage"},
		{"plan - --inventory nosuch", job, 1, "tool/error"},
	} {
		t.Run(c.args+" of "+c.stdin[:min(len(c.stdin), 9)], func(t *testing.T) {
			args := strings.Fields(c.args)
			_, text, code := tegen(c.stdin, args...)
			if code != c.code {
				t.Fatalf("exit %d, want %d:\n%s", code, c.code, text)
			}
			out := map[string]string{}
			for _, format := range finding.Formats {
				stdout, msg, same := tegen(c.stdin, append(slices.Clone(args), "-o", format)...)
				if same != code || msg != "" {
					t.Errorf("%s: exit %d, text has %d; standard error: %s", format, same, code, msg)
				}
				out[format] = stdout
			}
			lines := jsonLines(t, schema, out["json"])
			n := strings.Count(lines, "\n")
			for format, others := range map[string]string{
				"sarif": sarifLines(t, out["sarif"]), "github": annotationLines(t, out["github"]),
			} {
				if got := strings.Count(others, "\n"); got != n {
					t.Errorf("%s has %d findings, JSON %d:\n%s\n%s", format, got, n, others, lines)
				}
			}
			if said := strings.Count(strings.ReplaceAll(text, "See 'tegen --help'.\n", ""), "\n"); said != n {
				t.Errorf("text has %d lines, JSON %d findings:\n%s\n%s", said, n, text, lines)
			}
			var doc struct {
				Findings []finding.Finding
				Jobs     string
			}
			if err := json.Unmarshal([]byte(out["json"]), &doc); err != nil {
				t.Fatal(err)
			}
			var rules []string
			for _, f := range doc.Findings {
				rules = append(rules, f.Rule)
			}
			for rule := range strings.FieldsSeq(c.rules) {
				if !slices.Contains(rules, rule) {
					t.Errorf("no finding of %s: %q", rule, rules)
				}
			}
			jobs := strings.HasPrefix(c.args, "import") && (c.stdin == rendered || c.stdin == foreign)
			if jobs != (doc.Jobs != "") {
				t.Errorf("the document has the jobs %q", doc.Jobs)
			}
		})
	}
}

const custom = `apiVersion: elastic.pytorch.org/v1alpha1
kind: ElasticJob
metadata: {name: resnet, namespace: training}
spec:
  rdzvEndpoint: etcd:2379
  suspend: true
  replicaSpecs: {Worker: {replicas: "2", template: {spec: {containers: [{name: worker}]}}}}
---
apiVersion: example.org/v1
kind: Other
metadata: {name: x, namespace: training}
`

const foreign = `apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: ml}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: 'example.org/a:1', command: [torchrun, train.py], tty: true}
      hostAliases: [{ip: 10.0.0.1, hostnames: [x]}]
`

// TestFindingsPlaces: check tells machines where in which file the field of an object is.
func TestFindingsPlaces(t *testing.T) {
	atRoot(t)
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/pods.yaml", []byte(pods), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	out, _, _ := tegen("", "check", "pods.yaml", "-o", "json")
	var doc struct{ Findings []finding.Finding }
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	at := map[string][2]int{}
	for _, f := range doc.Findings {
		if f.File != "pods.yaml" {
			t.Errorf("%s is in %q", f.Field, f.File)
		}
		at[f.Object+" "+f.Field] = [2]int{f.Line, f.Column}
	}
	for what, want := range map[string][2]int{
		"Pod ml/a spec.containers[main].env[TOKEN]":              {10, 7},
		"Pod default/b spec.volumes[data].persistentVolumeClaim": {19, 28},
		"Pod ml/c spec.imagePullSecrets[pull]":                   {26, 24},
	} {
		if at[what] != want {
			t.Errorf("%s is at %v, want %v; all: %v", what, at[what], want, at)
		}
	}
}

const pods = `apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ml}
spec:
  containers:
  - name: side
    image: x
  - name: main
    env:
    - name: TOKEN
      valueFrom: {secretKeyRef: {name: token, key: t}}
---
apiVersion: v1
kind: Pod
metadata: {name: b}
spec:
  volumes:
  - name: data
    persistentVolumeClaim: {claimName: data}
  containers: [{name: main}]
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: c, namespace: ml}, spec: {containers: [{name: main}],
    imagePullSecrets: [{name: pull}]}}
`
