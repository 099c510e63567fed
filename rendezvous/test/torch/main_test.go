//go:build linux

// Package torch proves with real PyTorch, of three ages, that torchrun finds its peers through tegen-rendezvous, and
// that a run outlives what is killed. What counts as a proof is the sum that the workers of a world arrive at together;
// how long it took is printed, and no test evaluates it. TEGEN_TORCH_VERSIONS limits the versions.
//
// Nothing here is played: the agents are processes, so are their stores. make e2e-torch installs what they need.
package torch

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// wanted is what must be 1 for anything to be started.
const wanted = "TEGEN_TORCH"

// shared is the folder that all processes see, those in a root folder of their own as sharedInRoot.
var shared string

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(wanted) != "1" {
		os.Exit(m.Run())
	}
	os.Exit(inShared(m.Run))
}

// inShared makes the folder that the tests share, and leaves neither it nor a process behind.
func inShared(run func() int) int {
	dir, err := os.MkdirTemp("", "tegen-torch-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a folder for the tests:", err)
		return 1
	}
	shared = dir
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		killMarked(dir + "/")
		_ = os.RemoveAll(dir) // the user does not wait for more
		os.Exit(1)
	}()
	code := run()
	if killed := killMarked(dir + "/"); killed > 0 {
		fmt.Fprintf(os.Stderr, "%d processes were left over and had to be killed\n", killed)
		code = 1
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "removing the folder of the tests:", err)
		return 1
	}
	return code
}

// start skips a test where torch is not wanted, and lays out what agents run.
func start(t *testing.T) {
	t.Helper()
	if os.Getenv(wanted) != "1" {
		t.Skip("starts real PyTorch: set " + wanted + "=1, as make e2e-torch does")
	}
	if os.Getuid() != 0 {
		t.Fatal("root folders are entered by chroot: this needs root")
	}
	if err := layOut(); err != nil {
		t.Fatal(err)
	}
}

// layOut copies the programs to where every agent sees it.
var layOut = sync.OnceValue(func() error {
	if err := os.CopyFS(filepath.Join(shared, "site"), os.DirFS("site")); err != nil {
		return fmt.Errorf("laying out what agents run: %w", err)
	}
	for _, name := range []string{"train.py", "ops.py"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("laying out what agents run: %w", err)
		}
		if err := os.WriteFile(filepath.Join(shared, name), text, 0o600); err != nil {
			return fmt.Errorf("laying out what agents run: %w", err)
		}
	}
	return nil
})

// binary builds tegen-rendezvous, without cgo: it runs in every root folder. TEGEN_RENDEZVOUS may name one that is
// ready.
var binary = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	path := filepath.Join(shared, "tegen-rendezvous")
	if ready := os.Getenv("TEGEN_RENDEZVOUS"); ready != "" {
		text, err := os.ReadFile(ready)
		if err != nil {
			return "", fmt.Errorf("copying tegen-rendezvous: %w", err)
		}
		return path, os.WriteFile(path, text, 0o700)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "../../cmd/tegen-rendezvous")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building tegen-rendezvous: %w\n%s", err, out)
	}
	return path, nil
})
