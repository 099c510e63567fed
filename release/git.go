package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/origin"
)

// checkCommit returns the commit that everything is made of. It is an error where files differ from it, where it has
// not the wanted tag, or where the go command could not record it.
func (o options) checkCommit(ctx context.Context) (string, error) {
	if at, err := os.Stat(filepath.Join(o.root, ".git")); err != nil || !at.IsDir() {
		return "", fmt.Errorf("%s is no clone: the go command records the commit of a clone alone, and not that of a "+
			"worktree: git clone %s, and release there", o.root, o.root)
	}
	revision, err := origin.Revision(ctx, o.root)
	if err != nil {
		return "", fmt.Errorf("asking git what is released: %w", err)
	}
	if o.version != "" {
		tags, err := git(ctx, o.root, "tag", "--points-at=HEAD")
		if err != nil {
			return "", err
		}
		for _, module := range modules() { // a module below the repository's root has tags with its folder
			if tag := path.Join(module, o.version); !slices.Contains(strings.Fields(tags), tag) {
				return "", fmt.Errorf("the commit has no tag %s: git tag %s, or leave the version out for a snapshot",
					tag, tag)
			}
		}
	}
	return origin.Origin{Revision: revision}.Commit(), nil
}

// modules are the folders of the repository's modules.
func modules() []string { return []string{"", "rendezvous", "scheduler"} }

// git runs a command that reads.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(words.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
