package intake_test

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/intake"
	"github.com/tegen-dev/tegen/schema"
)

// TestWritten: what stands without quotes where text belongs is taken as it was written, not as YAML reads it.
func TestWritten(t *testing.T) {
	const text = `apiVersion: batch/v1
kind: Job
metadata: {name: j, annotations: {tag: 1.10, sum: 0123456, y: 12e4}}
spec:
  completionMode: Indexed
  completions: 1
  parallelism: 1
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: worker
        image: a/b:1
        command: [python, t.py, 1e-4, 00017, on]
        env: [{name: N, value: yes}]
`
	out := intake.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(text)}})
	var notes strings.Builder
	for _, n := range out.Notes {
		notes.WriteString(n.String() + "\n")
	}
	for written, note := range map[string]string{
		`tag: "1.10"`: ".tag: 1.10: flaw", `sum: "0123456"`: ".sum: 0123456: flaw", `"y": "12e4"`: ".y: 12e4: flaw",
		`- "1e-4"`: "command[2]: 1e-4: flaw", `- "00017"`: "command[3]: 00017: flaw", `- "on"`: "command[4]: on: flaw",
		`name: "N"`: "env[0].name: N: flaw", `value: "yes"`: "env[0].value: yes: flaw",
	} {
		if !strings.Contains(string(out.YAML), written) {
			t.Errorf("no %s in the job:\n%s", written, out.YAML)
		}
		if !strings.Contains(notes.String(), note) {
			t.Errorf("no note %s in\n%s", note, notes.String())
		}
	}
}
