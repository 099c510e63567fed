//go:build linux

package torch

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStoreOperations does the same to torch's own TCPStore and to ours with each torch's client, operation by
// operation.
func TestStoreOperations(t *testing.T) {
	start(t)
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			theirs := v.operations(t, "own")
			ours := v.operations(t, serve(t).tcpstore)
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Fatalf("torch's own server and ours differ (-torch +ours):\n%s", diff)
			}
			t.Logf("%d operations with the same answers", len(ours))
		})
	}
}

// operations runs ops.py against a server.
func (v version) operations(t *testing.T, where string) []string {
	t.Helper()
	p := v.spawn(t, "ops-"+v.name, v.environment(), "/usr/bin/python3", "-u", v.folder()+"/ops.py", where)
	if code := p.wait(t, 3*time.Minute); code != 0 {
		t.Fatalf("ops.py %s ended with %d", where, code)
	}
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		// torch prints its own about those that fail
		if op, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "op "); ok {
			lines = append(lines, op)
		}
	}
	if len(lines) < 100 {
		t.Fatalf("ops.py %s printed %d lines", where, len(lines))
	}
	return lines
}
