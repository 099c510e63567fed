package importer_test

import (
	"regexp"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// TestUsers: each container runs as whom it ran as before.
func TestUsers(t *testing.T) {
	t.Parallel()
	const trains = `{name: worker, image: "a/b:1", command: [python, t.py]`
	for name, c := range map[string]struct {
		pod           string
		jobs, notJobs []string
		reported      string
	}{
		"one container's own user": {
			pod: `initContainers: [{name: chown, image: "b/b:1", command: [chown, -R, "1000", /data]}], ` +
				`containers: [` + trains +
				`, securityContext: {runAsUser: 1000, runAsGroup: 1000}}, {name: side, image: "c/b:1"}]`,
			jobs: []string{
				`security:\n    runAsUser: image\n`,
				`- name: worker\n +securityContext:\n +runAsGroup: 1000\n +runAsUser: 1000`,
			},
			notJobs: []string{`security:\n    runAsUser: 1000`},
		},
		"the pod's user": {
			pod:  `securityContext: {runAsUser: 1000}, containers: [` + trains + `}, {name: side, image: "c/b:1"}]`,
			jobs: []string{`security:\n    runAsUser: 1000\n`}, reported: `added: .*HOME .*"/tmp"`,
		},
		"root among them": {
			pod: `securityContext: {runAsUser: 1000}, initContainers: [{name: chown, image: "b/b:1", ` +
				`securityContext: {runAsUser: 0}}], containers: [` + trains + `}]`,
			jobs: []string{
				`security:\n    runAsUser: image\n`, `securityContext:\n +runAsUser: 1000`,
				`- name: chown\n +image: b/b:1\n +securityContext:\n +runAsUser: 0`,
			},
			notJobs: []string{`security:\n    runAsUser: 1000`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j-worker}\nspec: {completionMode: Indexed, " +
				"completions: 1, parallelism: 1, template: {spec: {restartPolicy: Never, " + c.pod + "}}}\n"
			out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(in)}})
			for _, want := range c.jobs {
				if !regexp.MustCompile(want).Match(out.YAML) {
					t.Errorf("nothing in the job is like %s", want)
				}
			}
			for _, not := range c.notJobs {
				if regexp.MustCompile(not).Match(out.YAML) {
					t.Errorf("the job has %s", not)
				}
			}
			if !regexp.MustCompile(c.reported).MatchString(lines(out.Notes)) {
				t.Errorf("no line like %s", c.reported)
			}
			if out.Invalid || out.Lossy {
				t.Errorf("invalid %v, lossy %v", out.Invalid, out.Lossy)
			}
			text := renders(t, out.YAML)
			if c.notJobs != nil && regexp.MustCompile(`runAsNonRoot`).MatchString(text) {
				t.Error("root is forbidden, and was not")
			}
			if t.Failed() {
				t.Logf("%s%s%s", out.YAML, lines(out.Notes), text)
			}
		})
	}
}
