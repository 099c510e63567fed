package torchetcd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestState: a state that torch wrote is read, and written again byte by byte; unknown fields are kept.
func TestState(t *testing.T) {
	for _, raw := range []string{
		`{"status": "setup"}`,
		`{"status": "closed"}`,
		`{"status": "joinable", "version": "1", "participants": []}`,
		`{"status": "joinable", "version": "12", "participants": [0, 1, 2]}`,
		`{"status": "frozen", "version": "1", "participants": [0, 1], "keep_alives": []}`,
		`{"status": "frozen", "version": "1", "participants": [0, 1],` +
			` "keep_alives": ["/p/run_a<b/rdzv/v_1/rank_1"]}`,
		`{"status": "final", "version": "1", "participants": [0],` +
			` "keep_alives": ["/p/v_1/rank_0"], "num_workers_waiting": 0}`,
		`{"status": "closed", "version": "1", "participants": [0],` +
			` "keep_alives": ["/p/v_1/rank_0"], "num_workers_waiting": 2}`,
		`{"status": "joinable", "version": "1", "participants": [0, 1],` +
			` "agents": ["a", ""], "\u0000": null, "x": {"b": [1,2]}}`,
	} {
		s, err := ParseState(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if diff := cmp.Diff(strings.ReplaceAll(raw, "<", `\u003c`), s.String()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestStateRefused(t *testing.T) {
	for name, raw := range map[string]string{
		"nothing":             ``,
		"a list":              `[]`,
		"null":                `null`,
		"unknown status":      `{"status": "open"}`,
		"no version":          `{"status": "joinable", "participants": []}`,
		"version is a number": `{"status": "joinable", "version": 1, "participants": []}`,
		"version is padded":   `{"status": "joinable", "version": "01", "participants": []}`,
		"version is negative": `{"status": "joinable", "version": "-1", "participants": []}`,
		"version overflows":   `{"status": "joinable", "version": "99999999999999999999", "participants": []}`,
		"ranks with a gap":    `{"status": "joinable", "version": "1", "participants": [0, 2]}`,
		"ranks out of order":  `{"status": "joinable", "version": "1", "participants": [1, 0]}`,
		"too many have confirmed": `{"status": "frozen", "version": "1", "participants": [0],` +
			` "keep_alives": ["a", "b"]}`,
		"fewer than none waiting": `{"status": "final", "version": "1",` +
			` "participants": [0], "num_workers_waiting": -1}`,
		"too long": `{"status": "setup", "x": "` + strings.Repeat("x", maxState) + `"}`,
		"more than can be counted": `{"status": "joinable", "version": "1", "participants": [0` +
			strings.Repeat(",0", maxParticipants) + `]}`,
	} {
		if s, err := ParseState(raw); err == nil {
			t.Errorf("%s is read as %+v", name, s)
		}
	}
}

// FuzzParseState: no text makes it fall over, and what it takes it writes so that it reads the same.
func FuzzParseState(f *testing.F) {
	for _, raw := range []string{
		`{"status": "setup"}`,
		`{"status": "final", "version": "1", "participants": [0],` +
			` "keep_alives": ["/p/v_1/rank_0"], "num_workers_waiting": 0}`,
		`{"status": "joinable", "version": "1", "participants": [0, 1], "agents": ["a", ""], "x": {"b": [1, 2]}}`,
		`{"status": "joinable", "version": "1", "participants": null, "agents": ["a", "b"], "": 0}`,
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		s, err := ParseState(raw)
		if err != nil {
			return
		}
		text := s.String()
		again, err := ParseState(text)
		if err != nil {
			t.Fatalf("%q is written as %q: %v", raw, text, err)
		}
		if got := again.String(); got != text {
			t.Errorf("%q is written as %q, and that as %q", raw, text, got)
		}
	})
}
