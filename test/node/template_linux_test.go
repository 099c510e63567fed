package node

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLink holds that nodes share what nobody changes, and no database.
func TestLink(t *testing.T) {
	template, to := filepath.Join(t.TempDir(), "template"), filepath.Join(t.TempDir(), "node")
	const blob, database = "io.containerd.content.v1.content/blobs/sha256/0", "io.containerd.metadata.v1.bolt/meta.db"
	for _, name := range []string{blob, database} {
		path := filepath.Join(template, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := link(template, to); err != nil {
		t.Fatal(err)
	}
	for name, shared := range map[string]bool{blob: true, database: false} {
		original, err := os.Stat(filepath.Join(template, name))
		if err != nil {
			t.Fatal(err)
		}
		own, err := os.Stat(filepath.Join(to, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := os.SameFile(original, own); got != shared {
			t.Errorf("%s is one file for both: %v, want %v", name, got, shared)
		}
		if text, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(text) != name {
			t.Errorf("%s holds %q: %v", name, text, err)
		}
	}
	if info, err := os.Stat(filepath.Join(to, "io.containerd.metadata.v1.bolt")); err != nil ||
		info.Mode().Perm() != 0o711 {
		t.Errorf("a folder has the mode %v (%v), want that of the template's", info.Mode(), err)
	}
}

func TestRemoveUnused(t *testing.T) {
	cache := t.TempDir()
	for name, used := range map[string]time.Duration{
		"containerd-old": 2 * time.Hour, "containerd-used": time.Minute,
		"worker.tar": 2 * time.Hour,
	} {
		dir := filepath.Join(cache, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-used)
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	removeUnused(cache)
	for name, want := range map[string]bool{"containerd-old": false, "containerd-used": true, "worker.tar": true} {
		if _, err := os.Stat(filepath.Join(cache, name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
}
