package store

import (
	"testing"
)

// TestEmbedded: what was written is there after a restart.
func TestEmbedded(t *testing.T) {
	dir := t.TempDir()
	for i, want := range []int{0, 1} {
		s, err := Embedded{Dir: dir}.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Get(t.Context(), "k")
		if err != nil || len(r.Kvs) != want {
			t.Errorf("start %d: %d keys, %v", i, len(r.Kvs), err)
		}
		if _, err := s.Put(t.Context(), "k", "v"); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestExternal: a server that is not there is an error, and names where it was looked for.
func TestExternal(t *testing.T) {
	if _, err := (External{Endpoints: []string{"127.0.0.1:1"}}).Open(t.Context()); err == nil {
		t.Error("it connects to nothing")
	}
}
