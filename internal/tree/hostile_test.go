//go:build linux || darwin

package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/render"
)

// TestTwoWriters: of two renders into one directory one is whole, never a mixture, whichever comes second.
func TestTwoWriters(t *testing.T) {
	for round := range 20 {
		dir := filepath.Join(t.TempDir(), "out")
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			wg.Go(func() {
				var bundles []render.Bundle
				for j := range 30 {
					bundles = append(bundles, bundle(fmt.Sprintf("ml/job-%d", j), fmt.Sprintf("worker: of %d", i),
						fmt.Sprintf("only-%c: of %d", 'a'+i, i)))
				}
				errs[i] = writeTo(t.Context(), dir, bundles, nil)
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		of := map[string]int{}
		for name, text := range state(t, dir) {
			if strings.Contains(name, ".tegen-") {
				t.Errorf("round %d: %s is left", round, name)
			}
			if _, who, ok := strings.Cut(text, "\nof "); ok {
				of[who]++
			}
		}
		if len(of) != 1 {
			t.Fatalf("round %d: a mixture: %v", round, of)
		}
	}
}

// TestBusy: a render that waits too long for another writer fails, and has written nothing.
func TestBusy(t *testing.T) {
	defer func(before time.Duration) { lockTimeout = before }(lockTimeout)
	lockTimeout = 50 * time.Millisecond
	dir := t.TempDir()
	opened(t, dir)
	err := writeTo(t.Context(), dir, []render.Bundle{bundle("ml/a", "worker: w")}, nil)
	if err == nil || !strings.Contains(err.Error(), "another tegen is writing there") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	lockTimeout = time.Minute
	if err := writeTo(ctx, dir, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an interrupted wait ends in %v", err)
	}
	if diff := cmp.Diff(map[string]string{".": "dir"}, state(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestInTheWay: a render neither follows links, nor waits for pipes, nor reads large files of others.
func TestInTheWay(t *testing.T) {
	link := func(to string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			t.Helper()
			if err := os.Symlink(to, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	pipe := func(t *testing.T, path string) {
		t.Helper()
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	large := func(t *testing.T, path string) { // no byte of it is on the disk, and all of them could be read
		t.Helper()
		if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 20<<30)); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := t.TempDir()
	put(t, filepath.Join(elsewhere, "worker.yaml"), header("ml/a")+"old\n")
	for what, c := range map[string]struct {
		path string
		make func(t *testing.T, path string)
		says string // "" where it is not in the way
	}{
		"a folder that is a link":     {"a", link(elsewhere), "a is a symbolic link"},
		"a folder that leads nowhere": {"a", link("gone"), "a is a symbolic link"},
		"a file that is a link": {
			"a/worker.yaml", link(filepath.Join(elsewhere, "worker.yaml")),
			"a/worker.yaml is a symbolic link",
		},
		"a link within":                  {"a/worker.yaml", link("other.yaml"), "a/worker.yaml is a symbolic link"},
		"a pipe":                         {"a/worker.yaml", pipe, "a/worker.yaml is neither a file nor a directory"},
		"a pipe beside":                  {"a/pipe.yaml", pipe, ""},
		"a link beside":                  {"a/link.yaml", link(filepath.Join(elsewhere, "worker.yaml")), ""},
		"somebody's 20 GB":               {"a/worker.yaml", large, "a/worker.yaml was not written by tegen"},
		"somebody's 20 GB beside":        {"a/data.yaml", large, ""},
		"a folder that is a pipe":        {"a", pipe, "a is neither a file nor a directory"},
		"a folder that is somebody's":    {"a", func(t *testing.T, path string) { put(t, path, "x") }, "a is a file"},
		"a kustomization that is a pipe": {"a/kustomization.yaml", pipe, "a/kustomization.yaml is neither"},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, c.path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			c.make(t, path)
			err := writeTo(t.Context(), dir, []render.Bundle{
				bundle("ml/a", "worker: new"),
				bundle("ml/b", "worker: new"),
			}, nil)
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if _, err := os.Lstat(filepath.Join(dir, "b")); err == nil {
				t.Error("the other job's folder was written")
			}
		})
	}
	if diff := cmp.Diff(map[string]string{".": "dir", "worker.yaml": header("ml/a") + "old\n"},
		state(t, elsewhere)); diff != "" {
		t.Errorf("where the links lead (-want +got):\n%s", diff)
	}
}

// TestReadOnly: where nothing may be written, a write fails and says so, and a check works.
func TestReadOnly(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	mustWrite(t, dir, "", bundle("ml/a", "worker: old"))
	before := state(t, dir)
	for _, path := range []string{"a", "."} {
		if err := os.Chmod(filepath.Join(dir, path), 0o555); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.Chmod(filepath.Join(dir, path), 0o755) }()
	}
	place := Place{Dir: dir, Bundles: []render.Bundle{bundle("ml/a", "worker: new"), bundle("ml/b", "worker: new")}}
	if _, err := Write(t.Context(), place); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("%v", err)
	}
	if n, _, err := Check(io.Discard, place); n != 4 || err != nil {
		t.Errorf("%d files differ, want 4; %v", n, err)
	}
	if diff := cmp.Diff(before, state(t, dir)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestLinkedDirectory: the directory itself may be a link, since the user named it.
func TestLinkedDirectory(t *testing.T) {
	base := t.TempDir()
	put(t, filepath.Join(base, "real", "README"), "x")
	if err := os.Symlink("real", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(base, "link"), "", bundle("ml/a", "worker: w"))
	if _, err := os.Stat(filepath.Join(base, "real/a/worker.yaml")); err != nil {
		t.Error(err)
	}
}

// TestUmask: files and directories have modes by the user's umask.
func TestUmask(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	before := syscall.Umask(0o027)
	err := writeTo(t.Context(), dir, []render.Bundle{bundle("ml/a", "worker: w")}, nil)
	syscall.Umask(before)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{
		"": 0o750, "a": 0o750, "a/worker.yaml": 0o640,
		"a/kustomization.yaml": 0o640,
	} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q has mode %o, want %o", path, got, want)
		}
	}
}
