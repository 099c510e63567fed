package images_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Call forms of the programs that run functions in containers. Each hands the image a ResourceList on standard input,
// and no arguments.
var (
	// kustomize: getCommand in kyaml's fn/runtime/container/container.go, with the variables of NewContainerEnv.
	kustomizeForm = []string{
		"run", "--rm", "-i", "-a", "STDIN", "-a", "STDOUT", "-a", "STDERR", "--network", "none", "--user", "nobody",
		"--security-opt=no-new-privileges", "-e", "LOG_TO_STDERR=true", "-e", "STRUCTURED_RESULTS=true",
	}
	// kpt: getCmd in its internal/fnruntime/container.go.
	kptForm = []string{
		"run", "--rm", "-i", "--network", "none", "--user", "nobody", "--security-opt=no-new-privileges", "--pull",
		"missing",
	}
)

// limits are those of processes in a sandbox, which may not raise its own.
var limits = []string{"--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"}

// runFunctions runs the image as kustomize and kpt do, by their call forms and, where they are there, themselves.
func runFunctions(t *testing.T, image string, list []byte) {
	for name, form := range map[string][]string{"kustomize": kustomizeForm, "kpt": kptForm} {
		t.Run("form of "+name, func(t *testing.T) {
			args := append(append([]string{form[0]}, limits...), append(form[1:], image)...)
			out, said, err := podman(t, list, args...)
			if err != nil || !strings.Contains(out, "kind: ResourceList") || !strings.Contains(out, "kind: JobSet") {
				t.Errorf("%v: %s%s", err, out, said)
			}
			mistaken := bytes.Replace(list, []byte("target: jobset"), []byte("target: jobsets"), 1)
			if out, said, err = podman(t, mistaken, args...); err == nil || strings.Contains(out, "kind: JobSet") ||
				!strings.Contains(out, "severity: error") || !strings.Contains(said, `did you mean "jobset"`) {
				t.Errorf("a mistake: %v: %s%s", err, out, said)
			}
		})
	}
	dir := t.TempDir()
	_, job, _ := strings.Cut(string(list), "items:\n- ")
	for name, text := range map[string]string{
		"job.yaml": strings.ReplaceAll(job, "\n  ", "\n"),
		"tegen.yaml": "apiVersion: tegen.dev/v1alpha1\nkind: Generator\nmetadata:\n  name: tegen\n  annotations:\n" +
			"    config.kubernetes.io/function: |\n      container: {image: '" + image + "'}\n",
		"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" +
			"resources: [job.yaml]\ntransformers: [tegen.yaml]\n",
		"Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: jobs}\n" +
			"pipeline: {mutators: [{image: '" + image + "', configPath: tegen.yaml}]}\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	usePodman(t)
	t.Run("kustomize", func(t *testing.T) {
		options := krusty.MakeDefaultOptions()
		options.PluginConfig = types.EnabledPluginConfig(types.BploUseStaticallyLinked) // without --enable-exec
		built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil || !bytes.Contains(text, []byte("kind: JobSet")) || bytes.Contains(text, []byte("TrainingJob")) {
			t.Errorf("%v: %s", err, text)
		}
	})
	t.Run("kpt", func(t *testing.T) {
		if _, err := exec.LookPath("kpt"); err != nil {
			t.Skip("this machine has no kpt; its call form was run above")
		}
		cmd := exec.Command("kpt", "fn", "render", dir)
		cmd.Env = append(os.Environ(), "KPT_FN_RUNTIME=podman")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, "resnet-js", "worker.yaml"))
		if err != nil || !bytes.Contains(text, []byte("kind: JobSet")) {
			t.Errorf("%v: %s", err, text)
		}
	})
}

// usePodman makes podman what kustomize starts as docker, and kpt as podman.
func usePodman(t *testing.T) {
	t.Helper()
	program, err := exec.LookPath("podman")
	if err != nil {
		t.Fatal(err)
	}
	engine := program
	if _, err := exec.LookPath("runc"); err == nil {
		engine += " --runtime runc"
	}
	dir := t.TempDir()
	script := "#!/bin/sh\nverb=$1; shift\nif [ \"$verb\" = run ]; then exec " + engine + " run " +
		strings.Join(limits, " ") + " \"$@\"; fi\nexec " + engine + " \"$verb\" \"$@\"\n"
	for _, name := range []string{"docker", "podman"} {
		write(t, filepath.Join(dir, name), script)
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}
