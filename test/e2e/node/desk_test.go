package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/test/gitops"
	"github.com/tegen-dev/tegen/test/node"
)

// flux is the real one, which runs from the first scenario that wants it to the end of the run.
type flux struct {
	once sync.Once
	lab  *gitops.Lab
	err  error
}

// start runs Flux beside the cluster, as processes of this machine.
func (f *flux) start(kubeconfig string) (*gitops.Lab, error) {
	f.once.Do(func() {
		dir := os.Getenv(node.LabEnv) // whose logs are kept where a test fails
		if dir == "" {
			if dir, f.err = os.MkdirTemp("", "tegen-e2e-node-"); f.err != nil {
				return
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		f.lab, f.err = gitops.FluxAt(ctx, filepath.Join(dir, "flux"), kubeconfig)
	})
	return f.lab, f.err
}

// desk is where a person works: a shell in a clone of an empty repository that Flux can read, with tegen, git and
// kubectl.
type desk struct {
	*world
	t          *testing.T
	flux       *gitops.Flux
	repository *gitops.Repository
	dir        string // of the clone
	env        []string
}

func (w *world) newDesk(t *testing.T, name string) *desk {
	t.Helper()
	lab, err := w.flux.start(w.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	repository, err := lab.Git.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	d := w.shell(t, repository.Dir)
	d.flux, d.repository = lab.Flux, repository
	return d
}

// shell is a desk without a repository, in a folder.
func (w *world) shell(t *testing.T, dir string) *desk {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := exec.LookPath(w.Kubectl())
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{bin, filepath.Dir(kubectl), os.Getenv("PATH")}, ":")
	return &desk{
		world: w, t: t, dir: dir,
		env: append(gitops.GitEnv(), "PATH="+path, "HOME="+t.TempDir(), "KUBECONFIG="+w.Kubeconfig()),
	}
}

// write saves a file in the clone.
func (d *desk) write(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		d.t.Fatal(err)
	}
}

// run gives a shell a command, which must succeed, and returns what it prints.
func (d *desk) run(command string) string {
	d.t.Helper()
	out, err := d.start(command, patience, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

// follow gives a shell a command that prints until it is stopped, and stops it when it has printed enough.
func (d *desk) follow(command string, enough func(printed string) bool) {
	d.t.Helper()
	if out, err := d.start(command, patience, enough); err != nil && !enough(out) {
		d.t.Fatal(err)
	}
}

// start runs a command in the clone, and ends it with all that it started when it has printed enough.
func (d *desk) start(command string, within time.Duration, enough func(string) bool) (string, error) {
	d.t.Helper()
	d.t.Logf("$ %s", command)
	ctx, cancel := context.WithTimeoutCause(d.t.Context(), within, fmt.Errorf("not within %v", within))
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", command)
	cmd.Dir, cmd.Env = d.dir, d.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	var words bytes.Buffer
	out := &watched{enough: enough, stop: cancel}
	cmd.Stdout, cmd.Stderr = out, &words
	cmd.WaitDelay = poll * 10
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("running %s: %w (%w): %s%s", command, err, context.Cause(ctx), out.String(), &words)
	}
	return out.String(), err
}

// watched keeps what is printed and stops the program when it is enough.
type watched struct {
	mu     sync.Mutex
	text   bytes.Buffer
	enough func(string) bool // nil where the program ends by itself
	stop   func()
}

func (w *watched) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(text)
	if w.enough != nil && w.enough(w.text.String()) {
		w.stop()
	}
	return n, err
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
