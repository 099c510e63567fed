package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/cli"
)

// TestNotesOfVariants: a note names each place where a job stands once, however many variants are made of it.
func TestNotesOfVariants(t *testing.T) {
	const kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	const job = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: b, namespace: ml}\n" +
		"spec: {image: 'x:1', command: [python, $(V)], workers: {replicas: 1}}\n"
	dir := t.TempDir()
	top := kustomization + "transformers: [tegen.yaml]\nresources:\n"
	files := map[string]string{
		"base/kustomization.yaml": kustomization + "resources: [job.yaml]\n",
		"base/job.yaml":           strings.Replace(job, "name: b", "name: a", 1) + "---\n" + job,
		"tegen.yaml":              "apiVersion: tegen.dev/v1alpha1\nkind: Generator\nmetadata: {name: tegen}\n",
	}
	for _, variant := range []string{"v", "w", "x", "z"} {
		files[variant+"/kustomization.yaml"] = kustomization + "namePrefix: " + variant + "-\nresources: [../base]\n"
		top += "- " + variant + "\n"
	}
	files["kustomization.yaml"] = top
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, msg, code := tegen("", "render", "--overlay", dir)
	if code != cli.ExitOK || strings.Contains(msg, "more jobs") {
		t.Fatalf("exit %d:\n%s", code, msg)
	}
	for _, line := range []string{"1", "6"} {
		place := filepath.Join("base", "job.yaml") + ":" + line + ":1: note: spec.command[1]: no variable V"
		if n := strings.Count(msg, place); n != 1 {
			t.Errorf("line %s is named %d times:\n%s", line, n, msg)
		}
	}
}
