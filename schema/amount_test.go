package schema

import (
	"encoding/json"
	"testing"

	"github.com/tegen-dev/tegen/schema/job"
)

// TestNoneAsWord: what may be a word in place of a value is written as it was read.
func TestNoneAsWord(t *testing.T) {
	for text, into := range map[string]any{
		`{"ttlAfterFinished":"none"}`: &struct {
			TTLAfterFinished job.Lifetime `json:"ttlAfterFinished"`
		}{},
		`{"ttlAfterFinished":"168h0m0s"}`: &struct {
			TTLAfterFinished job.Lifetime `json:"ttlAfterFinished"`
		}{},
		`{"cpu":"none"}`:                &job.Amounts{},
		`{"cpu":"500m","memory":"2Gi"}`: &job.Amounts{},
	} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(into); err != nil || string(got) != text {
			t.Errorf("%s is written as %s (%v)", text, got, err)
		}
	}
}
