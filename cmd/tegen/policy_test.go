package main

import (
	"maps"
	"strings"
	"testing"

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
		"tegen.yaml":       content(t, "overlays/kind/tegen.yaml"),
		"environment.yaml": "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: kind}\nspec: {}\n",
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

// TestPolicyPage: the policy that docs/policy.md shows can be loaded.
func TestPolicyPage(t *testing.T) {
	atRoot(t)
	text := readPage(t, "docs/policy.md").marked(t, "policies/acme.cue").text
	rules, err := policy.Load([]policy.Source{{Name: "acme.cue", Text: []byte(text)}}, render.PolicyTypes())
	if err != nil || !rules.HasPodRules() {
		t.Error(err)
	}
}
