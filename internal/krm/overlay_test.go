package krm_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/schema"
)

const root = "../.."

// generator is the configuration that makes a kustomization run tegen.
const generator = `apiVersion: tegen.dev/v1alpha1
kind: Generator
metadata:
  name: tegen
  annotations:
    config.kubernetes.io/function: |
      exec:
        path: tegen-fn
`

// labGenerator is the same with the Environment of these tests.
const labGenerator = generator + "spec: {environment: lab}\n"

const job = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata:
  name: resnet
  namespace: ml
spec:
  image: example.org/train:1.0
  command: [python, train.py]
  workers: {replicas: 2}
  rendezvous: {backend: etcd, store: etcd}
  gitops: false
`

// generatorJob is the same job as the configuration of a function.
var generatorJob = strings.Replace(job, "  namespace: ml\n",
	"  namespace: ml\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: tegen-fn}\n", 1)

const environment = `apiVersion: tegen.dev/v1alpha1
kind: Environment
metadata:
  name: lab
spec:
  overrides: {network: {policy: false}}
`

const configMap = `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: ml
data:
  a: b
`

// folder writes files, given as name and text in turn, and returns their directory.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// overlay builds a kustomization in this process, and returns the stream that the command prints.
func overlay(t *testing.T, dir string, sources ...schema.Source) (string, error) {
	t.Helper()
	out, err := krm.Overlay(dir, sources)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	if err := out.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String(), nil
}

func mustOverlay(t *testing.T, dir string, sources ...schema.Source) string {
	t.Helper()
	out, err := overlay(t, dir, sources...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// byID are the objects of a stream as JSON values, by kind, namespace and name.
func byID(t *testing.T, stream string) map[string]any {
	t.Helper()
	out := map[string]any{}
	for doc := range strings.SplitAfterSeq("\n"+stream, "\n---\n") {
		doc = strings.TrimSuffix(doc, "---\n") // and no line end: it may be that of a text
		var v map[string]any
		if err := yaml.Unmarshal([]byte(doc), &v); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		if v == nil {
			continue
		}
		m, _ := v["metadata"].(map[string]any)
		ns, _ := m["namespace"].(string)
		id := v["kind"].(string) + " " + ns + "/" + m["name"].(string)
		if _, ok := out[id]; ok {
			t.Errorf("%s twice", id)
		}
		out[id] = v
	}
	return out
}

func ids(t *testing.T, stream string) []string {
	t.Helper()
	return slices.Sorted(maps.Keys(byID(t, stream)))
}

// TestOneName: patches that give two jobs one name are a mistake of the overlay, where kustomize panics.
func TestOneName(t *testing.T) {
	dir := folder(t, map[string]string{
		"kustomization.yaml": header + "resources: [a.yaml, b.yaml]\ntransformers: [tegen.yaml]\npatches:\n" +
			"- target: {kind: TrainingJob}\n  options: {allowNameChange: true}\n" +
			"  patch: |-\n    - {op: replace, path: /metadata/name, value: one}\n",
		"tegen.yaml": generator, "a.yaml": job, "b.yaml": strings.Replace(job, "name: resnet", "name: bert", 1),
	})
	_, err := krm.Overlay(dir, nil)
	if err == nil || !strings.Contains(err.Error(), "already registered id: TrainingJob.v1alpha1.tegen.dev/one.ml") {
		t.Errorf("%v", err)
	}
}
