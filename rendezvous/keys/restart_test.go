package keys

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestRestarted: the first write after a restart of the store's process is done.
func TestRestarted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s := processIn(t, dir)
	k, err := Open(soon(t), s.Client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	put(t, k, "/k", Put{Value: "before"})
	killStore(t, dir+".pid")
	if _, err := s.Get(soon(t), "k"); err != nil {
		t.Fatal(err)
	}
	put(t, k, "/k", Put{Value: "after"})
}

// killStore returns once another process has begun in its place.
func killStore(t *testing.T, file string) {
	t.Helper()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(before))
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	for ctx := soon(t); ; time.Sleep(time.Millisecond) {
		if now, err := os.ReadFile(file); err == nil && len(now) > 0 && string(now) != string(before) {
			return
		}
		if ctx.Err() != nil {
			t.Fatal("the store does not begin again")
		}
	}
}
