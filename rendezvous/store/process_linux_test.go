package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

// asStore makes the test binary the store's process; asStuck one that never gets anywhere.
const asStore, asStuck = "TEGEN_TEST_STORE", "TEGEN_TEST_STUCK"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asStuck) != "":
		time.Sleep(time.Hour)
	case os.Getenv(asStore) != "":
		if err := Main(Embedded{Dir: os.Args[1], Listen: os.Args[2], Log: zap.NewNop()}, os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestProcess: a store in a process of its own keeps what it was given, also where its path is too long for a socket, and
// leaves no socket behind.
func TestProcess(t *testing.T) {
	t.Setenv(asStore, "1")
	for name, dir := range map[string]string{"short": t.TempDir(), "long": filepath.Join(t.TempDir(), strings.Repeat("d", 120))} {
		for i, want := range []int{0, 1} {
			s, err := Process{Dir: dir, Command: []string{os.Args[0]}}.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Get(t.Context(), "k")
			if err != nil || len(r.Kvs) != want {
				t.Errorf("%s, start %d: %d keys, %v", name, i, len(r.Kvs), err)
			}
			if _, err := s.Put(t.Context(), "k", "v"); err != nil {
				t.Error(err)
			}
			if err := s.Room(); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*"+socketSuffix)); len(left) > 0 {
				t.Errorf("%s: %v are left", name, left)
			}
		}
	}
}

// TestStuck: a store that does not advance is given up, with a word, however much time there is.
func TestStuck(t *testing.T) {
	t.Setenv(asStuck, "1")
	begin := time.Now()
	dir := t.TempDir()
	_, err := Process{Dir: dir, Command: []string{os.Args[0]}, Stall: 2 * time.Second}.Open(t.Context())
	if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), dir+": it has not advanced for 2s") || took > 20*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
}

// TestWork tells a process that reads or computes from one that looks now and then whether a lock is free.
func TestWork(t *testing.T) {
	before := work{cpu: time.Second, bytes: 1000, pages: 10}
	for name, c := range map[string]struct {
		now  work
		want bool
	}{
		"nothing":   {before, false},
		"a lock":    {work{cpu: time.Second + 50*time.Millisecond, bytes: 2000, pages: 12}, false},
		"computing": {work{cpu: 2 * time.Second, bytes: 1000, pages: 10}, true},
		"reading":   {work{cpu: time.Second, bytes: 1 << 20, pages: 10}, true},
		"mapping":   {work{cpu: time.Second, bytes: 1000, pages: 100}, true},
	} {
		if got := c.now.since(before, 10*time.Second); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if w, ok := working(os.Getpid()); !ok || w.bytes == 0 {
		t.Errorf("this process has done %+v, %v", w, ok)
	}
	if _, ok := working(1 << 30); ok {
		t.Error("a process that is not there works")
	}
}
