//go:build linux || darwin

package command

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
)

// TestSignals: a render that gets SIGTERM prints an error and writes nothing. It is caught while it waits for
// another's write to end; what becomes of one that has begun is shown with package tree.
func TestSignals(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Skip("no locks here")
	}
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		mine := make(chan os.Signal, 1)
		signal.Notify(mine, sig) // it would end the tests else, where it comes too early
		var msg bytes.Buffer
		done := make(chan int)
		go func() {
			file := filepath.Join(root, "fixtures/valid/minimal.yaml")
			done <- run(generators.Set{}, []string{"tegen", "render", file, "-o", dir}, strings.NewReader(""),
				&bytes.Buffer{}, &msg)
		}()
		for code := -1; code < 0; {
			self, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = self.Signal(sig)
			}
			if err != nil {
				t.Fatal(err)
			}
			select {
			case code = <-done:
				if code != cli.ExitError || !strings.Contains(msg.String(), "nothing was written") {
					t.Errorf("%v: exit code %d, %s", sig, code, msg.String())
				}
			case <-time.After(20 * time.Millisecond):
			}
		}
		signal.Stop(mine)
	}
}
