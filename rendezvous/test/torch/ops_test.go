//go:build linux

package torch

import (
	"fmt"
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
			theirs := v.operations(t, v.python("ops.py", "own"))
			ours := v.operations(t, v.python("ops.py", serve(t).tcpstore))
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Fatalf("torch's own server and ours differ (-torch +ours):\n%s", diff)
			}
			t.Logf("%d operations with the same answers", len(ours))
		})
	}
}

// TestProxyOperations does the same with a proxy, whose etcd takes no values of megabytes.
func TestProxyOperations(t *testing.T) {
	start(t)
	etcd := etcdV3(t)
	const longest = "1000000"
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			theirs := v.operations(t, v.python("ops.py", "own", longest))
			ours := v.operations(t, []string{
				"env", "PET_RDZV_ID=" + fmt.Sprintf("ops%d", started.Add(1)),
				v.program(t), "proxy", "--endpoints=" + etcd, "--",
				"sh", "-c", strings.Join(v.python("ops.py", "$PET_RDZV_ENDPOINT", longest), " "),
			})
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Fatalf("torch's own server and ours differ (-torch +ours):\n%s", diff)
			}
			t.Logf("%d operations with the same answers", len(ours))
		})
	}
}

// python is a command that runs one of the programs here.
func (v version) python(program string, args ...string) []string {
	return append([]string{"/usr/bin/python3", "-u", v.folder() + "/" + program}, args...)
}

// operations runs ops.py by a command.
func (v version) operations(t *testing.T, command []string) []string {
	t.Helper()
	p := v.spawn(t, "ops-"+v.name, v.environment(), command...)
	if code := p.wait(t, 3*time.Minute); code != 0 {
		t.Fatalf("%s ended with %d", command, code)
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
		t.Fatalf("%s printed %d lines", command, len(lines))
	}
	return lines
}
