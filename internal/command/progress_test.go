package command

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// TestProgress: a command that waits for its input says so on a terminal, and takes that back before it answers.
func TestProgress(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "job.yaml"), "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\n"+
		"metadata: {name: bert}\nspec: {image: 'example.org/bert:1', command: [a], workers: {replicas: 1}}\n")
	cmd := exec.Command("tegen", "plan", "job.yaml", "--inventory", "-")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	mine, tty, err := pty.Open()
	if errors.Is(err, pty.ErrUnsupported) {
		t.Skipf("there are no terminals of this kind on %s", runtime.GOOS)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended unless the test failed
		_ = mine.Close()
	})
	_ = tty.Close()
	const line = "tegen plan: "
	shown, some := "", make([]byte, 1<<10)
	for !strings.Contains(shown, line) || !strings.Contains(shown, "0 MB of the inventory are read\r") {
		n, err := mine.Read(some) // it waits until there is something
		if err != nil {
			t.Fatalf("%q: %v", shown, err)
		}
		shown += string(some[:n])
	}
	if _, err := in.Write([]byte("{apiVersion: v1, kind: Node, metadata: {name: a}}")); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	for { // until the command has ended
		n, err := mine.Read(some)
		if shown += string(some[:n]); err != nil {
			break
		}
	}
	var failed *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &failed) || failed.ExitCode() != 1 { // there is no room
		t.Error(err)
	}
	_, after, _ := strings.Cut(shown[strings.LastIndex(shown, line):], "\r\x1b[K")
	if !strings.HasPrefix(after, "bert in default does not fit") || !strings.Contains(out.String(), "FIT  no") {
		t.Errorf("the terminal shows %q, and after the line %q; the output is\n%s", shown, after, out.String())
	}
}
