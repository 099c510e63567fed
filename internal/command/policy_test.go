package command

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/render"
)

// TestKustomizePolicy: kustomize itself, with tegen as its exec function, refuses what 'tegen render --overlay' refuses
// by a policy that the overlay brings, and builds the same objects otherwise.
func TestKustomizePolicy(t *testing.T) {
	atRoot(t)
	files := map[string]string{
		"kustomization.yaml": "resources: [job.yaml, environment.yaml]\ncomponents: [policy]\n" +
			"transformers: [tegen.yaml]\n",
		"tegen.yaml": content(t, "overlays/kind/tegen.yaml"),
		"environment.yaml": "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: kind}\n" +
			"spec: {namespace: training, fence: true}\n",
		"policy/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n" +
			"configMapGenerator:\n- name: policy\n  files: [acme.cue]\n  options:\n    annotations: " +
			"{config.kubernetes.io/local-config: \"true\", tegen.dev/policy: \"true\"}\n",
		"policy/acme.cue": "package policy\n\npod: spec: hostPID?: false @message(\"no host processes\")\n" +
			"job: spec: image!: =~\"^registry\\\\.acme\\\\.com/\"\n",
	}
	job := content(t, "fixtures/valid/minimal.yaml")
	for name, c := range map[string]struct{ image, more, want string }{
		"refused job": {"ghcr.io/acme/resnet", "", "spec.image: must match ^registry\\.acme\\.com/"},
		"refused pod": {
			"registry.acme.com/resnet", "  podTemplate: {spec: {hostPID: true}}\n",
			"Job training/resnet-worker-",
		},
		"outside the fence": {
			"registry.acme.com/resnet", "  podTemplate: {spec: {hostIPC: true}}\n",
			"hostIPC: not allowed: memory of the node (fence of Environment kind)",
		},
		"accepted": {"registry.acme.com/resnet", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files["job.yaml"] = strings.Replace(job, "ghcr.io/acme/resnet", c.image, 1) + c.more
			dir := fieldDir(t, files)
			built, err := builtByKustomize(dir)
			out, msg, code := tegen("", "render", "--overlay", dir)
			if c.want == "" {
				if err != nil || code != 0 || !maps.Equal(leavesOf(t, out), leavesOf(t, built)) {
					t.Errorf("kustomize: %v; tegen: exit %d: %s\n%s\n%s", err, code, msg, out, built)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "exit status 1") { // the reason is on standard error
				t.Errorf("kustomize: %v", err)
			}
			if code != 1 || !strings.Contains(msg, c.want) {
				t.Errorf("tegen: exit %d: %s, want %s", code, msg, c.want)
			}
		})
	}
}

// editorTask is what a test needs of a task of VS Code.
type editorTask struct {
	Command        string
	Args           []string
	ProblemMatcher struct {
		Pattern struct {
			Regexp                                string
			File, Line, Column, Severity, Message int
		}
	}
}

// read returns the findings that the editor reads in a text.
func (task editorTask) read(t *testing.T, text string) (list finding.List) {
	t.Helper()
	p := task.ProblemMatcher.Pattern
	pattern := regexp.MustCompile(p.Regexp)
	for line := range strings.Lines(text) {
		m := pattern.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			t.Fatalf("the pattern does not match %q", line)
		}
		f := finding.Finding{Level: cmp.Or(finding.Level(m[p.Severity]), finding.Error), Message: m[p.Message]}
		list = append(list, f.At(m[p.File]+":"+m[p.Line]+":"+m[p.Column]))
	}
	return list.Sorted()
}

// TestEditorTask: the task that docs/editors.md shows runs, and its pattern reads the place, the level and the words of
// each finding, as -o json has them.
func TestEditorTask(t *testing.T) {
	atRoot(t)
	var file struct{ Tasks []editorTask }
	text := readPage(t, "docs/editors.md").marked(t, ".vscode/tasks.json").text
	if err := json.Unmarshal([]byte(text), &file); err != nil || len(file.Tasks) != 1 {
		t.Fatalf("%+v: %v", file, err)
	}
	task := file.Tasks[0]
	if task.Command != "tegen" {
		t.Errorf("the task runs %s", task.Command)
	}
	page := readPage(t, "docs/policy.md").marked(t, "policies/acme.cue").text
	job := content(t, "fixtures/valid/network.yaml")
	noted := content(t, "fixtures/valid/real-llama-fsdp-p5.yaml")
	for name, c := range map[string]struct {
		job, policy string
		level       finding.Level
	}{
		"violations": {job, page, finding.Error},
		"a mistake":  {strings.Replace(job, "resources: ", "resourcs: ", 1), page, finding.Error},
		"the policy": {job, "pod: spec: hostNetwrk?: false\n", finding.Error},
		"a note":     {noted, "pod: spec: hostNetwork?: false\n", finding.Note},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "jobs/a.yaml", c.job)
			write(t, "policies/acme.cue", c.policy)
			_, said, _ := tegen("", task.Args...)
			report, _, _ := tegen("", append(task.Args, "-o", "json")...)
			var want struct{ Findings finding.List }
			if err := json.Unmarshal([]byte(report), &want); err != nil {
				t.Fatal(err)
			}
			for i, f := range want.Findings {
				want.Findings[i] = finding.Finding{
					Level: f.Level, File: f.File, Line: f.Line, Column: f.Column, Message: f.About(),
				}
			}
			got := task.read(t, said)
			if diff := gocmp.Diff(want.Findings, got); diff != "" || len(got) == 0 || got[0].Level != c.level {
				t.Errorf("%d findings (-json +pattern):\n%s", len(got), diff)
			}
		})
	}
}

// TestPolicyPage: the policy that docs/policy.md shows can be loaded.
func TestPolicyPage(t *testing.T) {
	atRoot(t)
	text := readPage(t, "docs/policy.md").marked(t, "policies/acme.cue").text
	rules, err := policy.Load([]policy.Source{{Name: "acme.cue", Text: []byte(text)}}, render.PolicyTypes())
	if err != nil || !rules.HasPodRules() {
		t.Error(err)
	}
}
