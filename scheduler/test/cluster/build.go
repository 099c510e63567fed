package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
)

// Root returns the folder of a module of this repository: "scheduler", or "tegen" for the module at its root.
func Root(module string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for the repository: %w", err)
	}
	for ; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(up))); err != nil {
			continue
		}
		if module == "tegen" {
			return dir, nil
		}
		return filepath.Join(dir, module), nil
	}
	return "", errors.New("looking for the repository: this needs a checkout of all of tegen, with " + up)
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`)

var built = struct {
	mu       sync.Mutex
	programs map[string]string
}{programs: map[string]string{}}

// Build compiles a command of a module of this repository once in each process, linked as its image is, and returns the
// path of the program.
func Build(ctx context.Context, module, pkg string) (string, error) {
	built.mu.Lock()
	defer built.mu.Unlock()
	if program := built.programs[pkg]; program != "" {
		return program, nil
	}
	root, err := Root(module)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for the cache folder: %w", err)
	}
	of := sha256.Sum256([]byte(root)) // checkouts do not share programs
	program := filepath.Join(cache, "tegen", "cluster", "commands-"+hex.EncodeToString(of[:8]), filepath.Base(pkg))
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading the module's versions: %w", err)
	}
	flags := "-s -w"
	if version := kubernetesVersion.FindSubmatch(mod); version != nil {
		flags += " -X k8s.io/component-base/version.gitVersion=" + string(version[1])
	}
	scratch := fmt.Sprintf("%s.%d", program, os.Getpid()) // the program itself may be running
	defer os.Remove(scratch)                              //nolint:errcheck // it exists only if the build failed
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", flags, "-o", scratch, "./"+pkg)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	if err := os.Rename(scratch, program); err != nil {
		return "", fmt.Errorf("building %s: %w", pkg, err)
	}
	built.programs[pkg] = program
	return program, nil
}
