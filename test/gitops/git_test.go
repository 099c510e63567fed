package gitops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGit: what is committed can be cloned over HTTP, and nobody can push that way.
func TestGit(t *testing.T) {
	ctx := t.Context()
	served, err := serveGit(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	r, err := served.Create(ctx, "jobs")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		if err := os.WriteFile(filepath.Join(r.Dir, "job.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.Commit(ctx, text); err != nil {
			t.Fatal(err)
		}
		clone := filepath.Join(t.TempDir(), "clone")
		if _, err := git(ctx, "clone", "--quiet", r.URL, clone); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(clone, "job.yaml"))
		if err != nil || string(got) != text {
			t.Errorf("the clone has %q (%v), want %q", got, err, text)
		}
		head, err := git(ctx, "-C", clone, "rev-parse", "HEAD")
		if err != nil || head != r.Head+"\n" {
			t.Errorf("the clone is at %q (%v), want %s", head, err, r.Head)
		}
		if _, err := git(ctx, "-C", clone, "push", "--quiet", "origin", "HEAD:other"); err == nil {
			t.Error("whoever reaches the server may push")
		}
	}
}

// TestProtect: a private repository is read with its password alone, and no other is closed.
func TestProtect(t *testing.T) {
	ctx := t.Context()
	served, err := serveGit(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	for name, wants := range map[string]map[string]bool{
		"private": {"": false, "me:wrong@": false, "me:right@": true}, "public": {"": true, "me:wrong@": true},
	} {
		r, err := served.Create(ctx, name)
		if err == nil {
			err = r.Commit(ctx, "first")
		}
		if err != nil {
			t.Fatal(err)
		}
		if name == "private" {
			served.Protect(r, "right")
		}
		for login, want := range wants {
			_, err := git(ctx, "ls-remote", strings.Replace(r.URL, "http://", "http://"+login, 1))
			if (err == nil) != want {
				t.Errorf("%s is read with %q: %v", name, login, err)
			}
		}
	}
}
