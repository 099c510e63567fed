// Package program compiles the commands of this repository for others to run: static, without C, and without a path or
// a setting of the machine, so that one commit gives the same bytes everywhere for one version of Go. What a program
// records of its own origin is read back by Read.
package program

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"time"
)

// Target is a command and what it is compiled for.
type Target struct {
	Root     string // of the module, which is the repository or a folder at its top
	Package  string // such as ./cmd/tegen
	OS, Arch string
	// Unstamped leaves the commit out, so that a program stays the same where its code does. A release is stamped.
	Unstamped bool
	Link      map[string]string // values of variables, by package and name; the program's file does not list them
}

// Root is the folder of the module that the current folder is in.
func Root(ctx context.Context) (string, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("asking the go command for the module: %w", err)
	}
	file := string(bytes.TrimSpace(mod))
	if file == "" || file == os.DevNull {
		return "", errors.New("looking for the module: this folder is in none")
	}
	return filepath.Dir(file), nil
}

// Build compiles into a file.
func (t Target) Build(ctx context.Context, file string) error {
	flags, err := t.ldflags()
	if err != nil {
		return err
	}
	stamp := "true"
	if t.Unstamped || !inClone(t.Root) {
		stamp = "false" // of an archive of the sources nobody knows the commit
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs="+stamp, "-ldflags", flags, "-o", file,
		t.Package)
	cmd.Dir, cmd.Env = t.Root, t.Env()
	var words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &words, &words
	// An interrupted go command ends its compilers, a killed one does not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("compiling %s for %s/%s: %w\n%s", t.Package, t.OS, t.Arch, err,
			bytes.TrimSpace(words.Bytes()))
	}
	return nil
}

// inClone says whether a module is a clone of git, or a folder at the top of one whose root is a module too.
func inClone(dir string) bool {
	exists := func(elem ...string) bool {
		_, err := os.Stat(filepath.Join(append([]string{dir}, elem...)...))
		return err == nil
	}
	return exists(".git") || exists("..", ".git") && exists("..", "go.mod")
}

// Env is the environment of the go command: the caller's, less what would change the program. Of what is empty, the
// value that "go env -w" wrote counts; so only that is empty which has no other word for Go's own choice.
func (t Target) Env() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Arch, "GOFLAGS=-mod=readonly", "GOWORK=off",
		"GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GOEXPERIMENT=")
}

var kubernetes = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes (v\S+)`)

// ldflags leave out what only debuggers read. Without its release, a program made of Kubernetes' modules calls itself
// v0.0.0-master, to the API server too.
func (t Target) ldflags() (string, error) {
	mod, err := os.ReadFile(filepath.Join(t.Root, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading the module's versions: %w", err)
	}
	flags := "-s -w"
	if version := kubernetes.FindSubmatch(mod); version != nil {
		flags += " -X k8s.io/component-base/version.gitVersion=" + string(version[1])
	}
	for _, variable := range slices.Sorted(maps.Keys(t.Link)) {
		flags += " -X " + variable + "=" + t.Link[variable]
	}
	return flags, nil
}

// Info is what a program's file says of itself.
type Info struct {
	*debug.BuildInfo
	SHA256 string
	// Version is that of the module: the tag, or a version made of the commit's time and digest, with +dirty where
	// files differ from the commit. It is empty where the program is not stamped, as are the next two.
	Version  string
	Revision string
	Time     time.Time // of the commit
}

// Read reads what a program's file says of itself.
func Read(file string) (Info, error) {
	build, err := buildinfo.ReadFile(file)
	if err != nil {
		return Info{}, fmt.Errorf("reading how %s was built: %w", file, err)
	}
	i := Info{BuildInfo: build, Version: build.Main.Version}
	if i.Version == "(devel)" {
		i.Version = ""
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Revision = s.Value
		case "vcs.time":
			if i.Time, err = time.Parse(time.RFC3339, s.Value); err != nil {
				return Info{}, fmt.Errorf("reading when %s was committed: %w", file, err)
			}
		}
	}
	i.SHA256, err = digest(file)
	return i, err
}

func digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it is read only
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", file, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
