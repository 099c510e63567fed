package command

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/cli/clitest"
	"github.com/tegen-dev/tegen/internal/names"
)

// asReleased makes the command that of a release, which knows the images of its companions.
const asReleased = "TEGEN_TEST_RELEASED"

func mainOfTests() {
	if os.Getenv(asReleased) != "" {
		names.ReleasedRendezvous = "registry.example/tegen-rendezvous:1.0.0"
		names.ReleasedScheduler = "registry.example/tegen-scheduler:1.0.0"
	}
	program()
}

func program() { os.Exit(Main()) }

// others stand in for the programs that examples call beside tegen. Each fails where it gets nothing to do.
var others = map[string]string{
	"kubectl": `case "$*" in
"get crds -o yaml") exec tegen install crds;;
"get nodes,pods "*) exec cat nodes.yaml;;
"get pytorchjob resnet -o yaml") exec cat pytorchjob.yaml;;
"get job,pod,"*"--show-managed-fields") for file in rendered/eks/resnet/[!k]*.yaml; do echo ---; cat "$file"; done;;
"apply "*" -f -"|"apply -f -") grep -q kind:;;
"apply "*) for file; do :; done; grep -q kind: "$file";;
*) echo "kubectl $*: not foreseen" >&2; exit 1;;
esac`,
	"kustomize": `for overlay; do :; done; exec tegen render --overlay "$overlay"`,
	"cosign":    `[[ "$1" = sign && "$2" = *@sha256:* ]]`,
	"dot":       `grep digraph`,
	"jq":        `grep '"jobs"'`,
	"man":       `[[ "$1" = -l && -s "$2" ]]`,
}

// TestExamples runs the examples of every command's help, those of one command one after the other in a repository of
// jobs.
func TestExamples(t *testing.T) {
	for _, program := range []string{"bash", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s here, by which examples are run: install it", program)
		}
	}
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true),
		registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	at := strings.TrimPrefix(server.URL, "http://")
	// No registry of an example exists.
	here := strings.NewReplacer("tegen publish oci://registry.example/", "tegen publish --plain-http oci://"+at+"/",
		"tegen publish oci://localhost:5000/", "tegen publish oci://"+at+"/")
	sh := newExampleShell(t)
	clitest.RunExamples(t, ownCommands(cli.Streams{}), func(t *testing.T, lines []string) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(sh.repository)); err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			sh.run(t, dir, here.Replace(line))
		}
	})
}

// exampleShell runs lines as a person does who has a repository of jobs.
type exampleShell struct {
	programs   string // where others are
	repository string
}

func newExampleShell(t *testing.T) exampleShell {
	t.Helper()
	sh := exampleShell{t.TempDir(), t.TempDir()}
	for name, script := range others {
		script = "#!/usr/bin/env bash\nset -eu\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(sh.programs, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(sh.repository, name) }
	for from, to := range map[string]string{
		"fixtures/nodes.yaml": "nodes.yaml", "fixtures/pytorchjob.yaml": "pytorchjob.yaml",
		"fixtures/install/scheduler.yaml": "scheduling.yaml",
	} {
		text, err := os.ReadFile(filepath.Join(root, from))
		if err != nil {
			t.Fatal(err)
		}
		// What a TrainingJob has no word for would be a reason to fail for import --strict.
		write(t, in(to), strings.NewReplacer("{annotations: {sidecar.istio.io/inject: false}}", "{}",
			"ExitCode", "OnFailure").Replace(string(text)))
	}
	sh.run(t, sh.repository, `
for place in eks kind production; do
	tegen init --overlay overlays/$place of/$place
	mkdir -p overlays
	mv of/$place/overlays/$place overlays
	sed 's/name: train/name: own/' of/$place/jobs/train.yaml >overlays/$place/own.yaml
	sed -i.bak 's#\.\./\.\./jobs#own.yaml#' overlays/$place/kustomization.yaml
done
mkdir -p jobs crds clusters/eks policies
echo 'pod: spec: hostNetwork?: false' | tee acme.cue >policies/acme.cue
printf 'apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: a}\nspec: {namespace: a, fence: true}\n' \
	>fenced.yaml
sed 's/name: train/name: resnet/' of/eks/jobs/train.yaml >jobs/resnet.yaml
sed 's/name: train/name: bert/' of/eks/jobs/train.yaml >job.yaml
rm -r of overlays/*/*.bak
cp nodes.yaml nodes.json # all JSON is YAML, and tegen reads the names of no files
git init -q -b main
git remote add origin https://git.example/team/jobs
tegen render jobs --overlay overlays/eks --overlay overlays/kind -o rendered
git add .
git commit -q -m 'Add jobs'
sed -i.bak 's/:1.0.0/:1.0.1/' jobs/resnet.yaml
rm jobs/*.bak
tegen render jobs --overlay overlays/eks --overlay overlays/kind -o rendered
git add .
git commit -q -m 'Take the next image'`)
	return sh
}

func (sh exampleShell) run(t *testing.T, dir, line string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", "-o", "pipefail", "-c", line)
	cmd.Dir = dir
	path := sh.programs + string(filepath.ListSeparator) + os.Getenv("PATH")
	cmd.Env = append(os.Environ(), "PATH="+path, asReleased+"=1",
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", line, err, out[max(len(out)-2000, 0):])
	}
}
