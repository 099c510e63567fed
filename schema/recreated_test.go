package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/note"
)

// TestRecreated: what makes objects anew is refused of all objects, and taken of the workload alone.
func TestRecreated(t *testing.T) {
	const job = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: resnet, namespace: training, META}
spec:
  image: ghcr.io/acme/resnet:1.4.0
  command: [python, train.py]
  workers: {replicas: 2}
  workload: {WORK}
`
	for entry, refused := range map[string]string{
		`annotations: {argocd.argoproj.io/sync-options: "Force=true,Replace=true"}`:     `"Force=true,Replace=true"`,
		`annotations: {argocd.argoproj.io/sync-options: "Validate=false, Force=true"}`:  `"Force=true" has`,
		`annotations: {argocd.argoproj.io/sync-options: Replace=true}`:                  `"Replace=true" has`,
		`annotations: {argocd.argoproj.io/sync-options: "Replace=false,Prune=confirm"}`: "",
		`annotations: {argocd.argoproj.io/hook: PreSync}`:                               `"PreSync" has`,
		`annotations: {argocd.argoproj.io/hook: "PreSync,PostSync"}`:                    `"PreSync,PostSync" has`,
		`annotations: {argocd.argoproj.io/hook: Skip}`:                                  "",
		`annotations: {helm.sh/hook: pre-install}`:                                      `"pre-install" has`,
		`annotations: {helm.sh/hook: crd-install}`:                                      "",
		`annotations: {kustomize.toolkit.fluxcd.io/force: Enabled}`:                     `"Enabled" has`,
		`annotations: {kustomize.toolkit.fluxcd.io/force: disabled}`:                    "",
		`labels: {kustomize.toolkit.fluxcd.io/force: enabled}`:                          `"enabled" has`,
		`annotations: {kustomize.toolkit.fluxcd.io/ssa: Merge}`:                         "",
	} {
		text := strings.NewReplacer("META", entry, "WORK", "labels: {}").Replace(job)
		_, err := Load([]Source{{Name: "job.yaml", Data: []byte(text)}})
		where := "spec.workload." + entry[:strings.Index(entry, ":")]
		if hook := strings.Contains(entry, "hook: "); hook {
			where = "leave it out"
		}
		switch {
		case refused == "" && err != nil:
			t.Errorf("%s is refused: %v", entry, err)
		case refused == "":
		case err == nil || !strings.HasPrefix(err.Error(), "job.yaml:3:") || !strings.Contains(err.Error(), refused) ||
			!strings.Contains(err.Error(), where):
			t.Errorf("%s: want an error with %s and %s in line 3, not %v", entry, refused, where, err)
		}
		text = strings.NewReplacer(", META", "", "WORK", entry).Replace(job)
		if _, err := Load([]Source{{Name: "job.yaml", Data: []byte(text)}}); err != nil {
			t.Errorf("of the workload alone, %s: %v", entry, err)
		}
		jobs, err := LoadForGit([]Source{{Name: "job.yaml", Data: []byte(text)}})
		hook := strings.Contains(entry, "hook: ") && refused != ""
		switch {
		case hook && (err == nil || !strings.Contains(err.Error(), "runs again: leave it out")):
			t.Errorf("of the workload, for git, %s: %v", entry, err)
		case !hook && err != nil:
			t.Errorf("of the workload, for git, %s: %v", entry, err)
		case !hook && strings.Contains(strings.Join(note.Of(jobs[0]), ""), "and starts anew") != (refused != ""):
			t.Errorf("of the workload, for git, %s: notes %q", entry, note.Of(jobs[0]))
		}
	}
}

// TestHookOfPods: pods that stand in the tree themselves are no hooks either, and no others are looked at.
func TestHookOfPods(t *testing.T) {
	const job = `apiVersion: tegen.dev/v1alpha1
kind: TrainingJob
metadata: {name: resnet, namespace: training}
spec:
  image: ghcr.io/acme/resnet:1.4.0
  command: [python, train.py]
  workers: {replicas: 2}
  target: TARGET
  podTemplate: {metadata: {annotations: {argocd.argoproj.io/hook: PostSync}}}
`
	for target, refused := range map[string]bool{"pods": true, "job": false} {
		src := []Source{{Name: "job.yaml", Data: []byte(strings.Replace(job, "TARGET", target, 1))}}
		if _, err := Load(src); err != nil {
			t.Errorf("%s: %v", target, err)
		}
		_, err := LoadForGit(src)
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), `"PostSync" is a hook`) {
			t.Errorf("%s for git: %v", target, err)
		}
	}
}
