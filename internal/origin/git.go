package origin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Source is the URL of the remote called origin of the repository that a directory is in, without credentials.
func Source(ctx context.Context, dir string) (string, error) {
	remote, err := git(ctx, dir, "remote", "get-url", "origin")
	if err != nil {
		return "", err
	}
	clean, err := withoutCredentials(remote)
	if err != nil {
		return "", fmt.Errorf("the URL of its remote 'origin' %w", err)
	}
	return clean, nil
}

// Revision is the branch and commit of the repository that a directory is in. It is an error where something that git
// tracks differs from that commit, or where git tracks only some of the files in the directory: what is there was then
// not made of the commit alone. A directory of which git tracks nothing is taken for what was made of it.
func Revision(ctx context.Context, dir string) (string, error) {
	commit, err := git(ctx, dir, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return "", err
	}
	changed, err := git(ctx, dir, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return "", err
	}
	tracked, err := git(ctx, dir, "ls-files", "--", ".")
	if err == nil && changed == "" && tracked != "" {
		changed, err = git(ctx, dir, "status", "--porcelain", "--untracked-files=all", "--", ".")
	}
	if err != nil {
		return "", err
	}
	if changed != "" {
		first, _, more := strings.Cut(changed, "\n")
		if more {
			first += ", and more"
		}
		return "", fmt.Errorf("it has changes that are not committed (%s): commit them", strings.TrimSpace(first))
	}
	algorithm := "sha1:"
	if len(commit) == 64 {
		algorithm = "sha256:"
	}
	branch, err := git(ctx, dir, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil || branch == "" { // a commit was checked out, as many builds do
		return algorithm + commit, nil
	}
	return branch + "@" + algorithm + commit, nil
}

// Untracked are the manifests in the repository of a directory, wherever they are in it, that git neither tracks nor
// ignores.
func Untracked(ctx context.Context, dir string) ([]string, error) {
	root, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	list, err := git(ctx, root, "ls-files", "-z", "--others", "--exclude-standard", "--", "*.yaml", "*.yml", "*.json")
	if err != nil {
		return nil, err
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		if name != "" {
			files = append(files, filepath.Join(root, name))
		}
	}
	return files, nil
}

// git runs one command that reads, and returns what it prints, without the space around it.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := gitBytes(ctx, dir, nil, args...)
	return strings.TrimSpace(string(out)), err
}

// gitBytes runs one command that reads, with an input, and returns what it prints.
func gitBytes(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, error) {
	// A monitor is a program that a repository's configuration names.
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "core.fsmonitor=false"}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
	var out, msg bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &msg
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && msg.Len() > 0:
		first, _, _ := strings.Cut(strings.TrimSpace(msg.String()), "\n")
		return nil, fmt.Errorf("git %s: %s", args[0], first)
	case err != nil:
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out.Bytes(), nil
}
