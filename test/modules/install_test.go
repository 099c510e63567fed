// Package modules tests that each Go module of the repository can be installed by itself, as from a module proxy.
package modules

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	root    = "../.."
	modPath = "github.com/tegen-dev/tegen"
	version = "v0.0.1"
)

// programs are the commands, by the folders of their modules, and what shows that an installed one works.
var programs = []struct {
	folder, command string
	args            []string
	want            string
}{
	{"", "tegen", []string{"render", "fixtures/valid/readme.yaml"}, "kind: Job\n"},
	{"", "tegen", []string{"version"}, "tegen " + version + "\n"},
	{"rendezvous", "tegen-rendezvous", []string{"version"}, "tegen-rendezvous " + version + "\n"},
	{"scheduler", "tegen-scheduler", []string{"--help"}, "--leader-elect"},
}

// TestInstall runs "go install" of each command with an empty GOPATH. The module proxy is a file tree with the modules
// of HEAD; their dependencies come from the module cache of this machine, which has the layout of a proxy, and what is
// missing there from GOPROXY.
func TestInstall(t *testing.T) {
	if os.Getenv("TEGEN_INSTALL") == "" {
		t.Skip("installs all programs anew: set TEGEN_INSTALL=1, or run make e2e-install")
	}
	proxy, gopath := t.TempDir(), t.TempDir()
	for _, folder := range []string{"", "rendezvous", "scheduler"} {
		publish(t, proxy, folder)
	}
	env := append(os.Environ(), "GOPATH="+gopath, "GOBIN="+filepath.Join(gopath, "bin"),
		"GOMODCACHE="+filepath.Join(gopath, "mod"), "GOFLAGS=-modcacherw -trimpath", "GOWORK=off", "CGO_ENABLED=0",
		"GONOSUMDB="+modPath+","+modPath+"/*",
		"GOPROXY="+strings.Join([]string{"file://" + proxy, "file://" + downloads(t), goEnv(t, "GOPROXY")}, ","))
	t.Run("example", func(t *testing.T) { testExample(t, env) })
	installed := map[string]bool{}
	for _, p := range programs {
		if !installed[p.command] {
			at := path.Join(modPath, p.folder, "cmd", p.command) + "@" + version
			cmd := exec.CommandContext(t.Context(), "go", "install", at)
			cmd.Dir, cmd.Env = t.TempDir(), env
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("go install %s: %v\n%s", at, err, out)
				continue
			}
			installed[p.command] = true
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(gopath, "bin", p.command), p.args...)
		cmd.Dir = root
		if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), p.want) {
			t.Errorf("%s %q: %v, without %q:\n%s", p.command, p.args, err, p.want, out)
		}
	}
}

// testExample builds examples/alerts, which adds a generator to tegen, as its README does, and runs its test. The
// program must list the generator, and run as a KRM function of kustomize.
func testExample(t *testing.T, env []string) {
	const example = "examples/alerts"
	dir, bin := t.TempDir(), t.TempDir()
	archive := filepath.Join(t.TempDir(), "example.tar")
	in := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	in(root, "git", "archive", "-o", archive, "HEAD:"+example)
	in(dir, "tar", "-xf", archive)
	mod := in(dir, "cat", "go.mod")
	in(dir, "go", "mod", "tidy") // go.sum is not committed: it would have the digest of each commit of tegen
	if diff := cmp.Diff(in(dir, "cat", "go.mod"), mod); diff != "" {
		t.Errorf("%s/go.mod is not tidy (-want +got):\n%s", example, diff)
	}
	in(dir, "go", "vet", ".")
	in(dir, "go", "test", "-vet=off", ".")
	in(dir, "go", "build", "-o", filepath.Join(bin, "tegen"), ".")
	if list := in(dir, filepath.Join(bin, "tegen"), "fn", "--list"); !strings.Contains(list, "\nalerts ") {
		t.Errorf("tegen fn --list:\n%s", list)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	overlay := filepath.Join(dir, "overlay")
	all := kustomize(t, overlay)
	for _, want := range []string{"kind: Job\n", "name: eu-resnet-alerts\n", `job=\"ml/eu-resnet-worker\"`} {
		if !strings.Contains(strings.ReplaceAll(all, `"`, `\"`), want) {
			t.Errorf("kustomize build, without %s:\n%s", want, all)
		}
	}
	f, err := os.OpenFile(filepath.Join(overlay, "tegen.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("spec: {generators: [alerts]}\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if one := kustomize(t, overlay); !strings.Contains(one, "kind: PrometheusRule\n") ||
		strings.Contains(one, "kind: Job\n") {
		t.Errorf("kustomize build with one generator:\n%s", one)
	}
}

// kustomize builds as "kustomize build --enable-alpha-plugins --enable-exec" does. It starts the functions.
func kustomize(t *testing.T, dir string) string {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.EnabledPluginConfig(types.BploUseStaticallyLinked)
	options.PluginConfig.FnpLoadingOptions.EnableExec = true
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// publish writes a module of HEAD to a file tree in the layout of a module proxy.
func publish(t *testing.T, proxy, folder string) {
	t.Helper()
	m := module.Version{Path: path.Join(modPath, folder), Version: version}
	dir := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	show := exec.CommandContext(t.Context(), "git", "-C", root, "show", "HEAD:"+path.Join(folder, "go.mod"))
	mod, err := show.Output()
	if err != nil {
		t.Fatalf("reading go.mod of HEAD: %v", err)
	}
	info := fmt.Sprintf(`{"Version": %q, "Time": "2026-01-01T00:00:00Z"}`, version)
	for name, text := range map[string]string{
		"list": version + "\n", version + ".info": info, version + ".mod": string(mod),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := zip.CreateFromVCS(file, m, root, "HEAD", folder); err != nil {
		t.Fatalf("packing %s: %v", m, err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// downloads is the part of the module cache that has the layout of a proxy.
func downloads(t *testing.T) string {
	return filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download")
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
