package command

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/schema/job"
)

// TestAddedGenerator: a program with one generator more has it in each of its commands.
func TestAddedGenerator(t *testing.T) {
	var fails error
	set, err := generators.NewSet(generators.Generator{
		Name: "team", Doc: "ConfigMap of the team", Needs: "env: [{name: TEAM, value: a}]",
		Generate: func(j *job.Job) ([]runtime.Object, error) {
			if len(j.Spec.Env) == 0 {
				return nil, fails
			}
			return []runtime.Object{&metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: generators.Meta(j, j.Metadata.Name+"-team", job.RoleWorker),
			}}, fails
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	do := func(in string, args ...string) (string, string, int) {
		var out, msg bytes.Buffer
		code := run(set, append([]string{"tegen"}, args...), strings.NewReader(in), &out, &msg)
		return out.String(), msg.String(), code
	}
	if out, _, _ := do("", "fn", "--list"); !strings.HasSuffix(out, "\nteam        ConfigMap of the team\n") {
		t.Errorf("fn --list:\n%s", out)
	}
	const without = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: bert, namespace: ml}\n" +
		"spec:\n  image: a:1\n  command: [a]\n  workers: {replicas: 1}\n"
	const with = without + "  env: [{name: TEAM, value: a}]\n"
	for _, c := range []struct {
		job, generators, want string
		code                  int
	}{
		{with, "[team]", "name: bert-team\n", cli.ExitOK},
		{with, "[team, worker]", "kind: Job\n", cli.ExitOK},
		{without, "[team]", "team needs fields such as spec: {env: [{name: TEAM, value: a}]}", cli.ExitError},
		{with, "[nobody]", "\"nobody\" is no generator: one of namespace, ", cli.ExitError},
	} {
		out, msg, code := do("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n"+
			"  apiVersion: tegen.dev/v1alpha1\n  kind: Generator\n  metadata: {name: a}\n  spec: {generators: "+
			c.generators+"}\nitems:\n- "+strings.ReplaceAll(strings.TrimSpace(c.job), "\n", "\n  ")+"\n", "fn")
		if code != c.code || !strings.Contains(out+msg, c.want) {
			t.Errorf("fn %s: exit %d, without %q:\n%s%s", c.generators, code, c.want, out, msg)
		}
	}
	dir := t.TempDir()
	file, rendered := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "rendered")
	if err := os.WriteFile(file, []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, msg, code := do("", "render", file, "-o", rendered); code != cli.ExitOK {
		t.Errorf("render: exit %d: %s", code, msg)
	}
	if _, err := os.Stat(filepath.Join(rendered, "bert", "team.yaml")); err != nil {
		t.Error(err)
	}
	own, note := generators.Set{}, rendered+": note: this program lacks the generators of files that it removes, "+
		filepath.Join("bert", "team.yaml")+"; run the program that has them to keep their objects\n"
	for _, args := range [][]string{{"--check"}, {}} {
		var msg bytes.Buffer
		args = append([]string{"tegen", "render", file, "-o", rendered}, args...)
		run(own, args, strings.NewReader(""), io.Discard, &msg)
		if !strings.Contains(msg.String(), note) {
			t.Errorf("%q by tegen itself: %s", args, msg.String())
		}
	}
	for _, command := range []string{"vet", "graph", "plan", "runbook"} {
		if _, msg, code := do("", command, file); code != cli.ExitOK {
			t.Errorf("%s: exit %d: %s", command, code, msg)
		}
	}
	fails = errors.New("no such team")
	again := filepath.Join(dir, "again")
	_, msg, code := do("", "render", file, "-o", again)
	want := file + ":1:1: generator team: no such team\n"
	if _, err := os.Stat(again); code != cli.ExitError || msg != want || err == nil {
		t.Errorf("an error: exit %d, %v: %s", code, err, msg)
	}
}
