package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/note"
)

// TestSharedNotes: who divides a GPU hears what NCCL makes of it, and nobody else does.
func TestSharedNotes(t *testing.T) {
	for words, want := range map[string]string{
		"2 nvidia.com/mig-1g.10gb nccl": "one MIG instance alone",
		"2 nvidia.com/gpu.shared nccl":  "no more of it than one",
		"1 nvidia.com/gpu.shared nccl":  "NCCL refuses two",
		"1 nvidia.com/gpu.shared gloo":  "",
		"2 nvidia.com/gpu nccl":         "",
		"2 amd.com/gpu nccl":            "",
	} {
		said := strings.Fields(words)
		spec := "resources: {gpu: " + said[0] + ", gpuResource: " + said[1] + ", cpu: 4, memory: 16Gi}, " +
			"network: {collective: " + said[2] + "}"
		jobs, err := Load([]Source{{Name: "job", Data: []byte(machineJob + spec + "}")}})
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		notes := strings.Join(note.SharedNotes(&jobs[0].Spec), "\n")
		if (notes != "") != (want != "") || !strings.Contains(notes, want) {
			t.Errorf("%s: want a note with %q, not %q", spec, want, notes)
		}
	}
}
