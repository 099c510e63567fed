package importer_test

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// TestGroupsElsewhere: a group that writes its checkpoints elsewhere keeps its own variable, and the workers theirs;
// and a Job that only bears the label of the job, without its groups' hosts, is none of its groups.
func TestGroupsElsewhere(t *testing.T) {
	t.Parallel()
	text := string(renderedFixture(t, "groups-job"))
	at := strings.LastIndex(text, "value: /data/ckpt")
	other := text[:at] + "value: /data/eval" + text[at+len("value: /data/ckpt"):]
	for _, c := range []struct{ name, text, want, not string }{
		{"elsewhere", other, "value: /data/eval", "checkpoint:"},
		{"no hosts", strings.ReplaceAll(text, "TEGEN_WORKER_HOST", "OTHER_HOST"), "kind: TrainingJob", "\n  groups:"},
	} {
		out := importer.Jobs([]schema.Source{{Name: "in.yaml", Data: []byte(c.text)}})
		if got := string(out.YAML); !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%s: want %q and not %q in\n%s%v", c.name, c.want, c.not, got, out.Notes)
		}
	}
}
