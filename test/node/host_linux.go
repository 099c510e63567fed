package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/tegen-dev/tegen/test/node/image"
)

// machineState is the one that labs share.
var machineState = state{dir: "/run/tegen-lab", sysctls: "/proc/sys", removeCgroup: removeCgroup}

// state is what labs change of the host while any of them runs, noted outside a lab's own folder, so that a lab that
// was killed is cleaned up after by the next one.
type state struct {
	dir          string
	sysctls      string // the folder that shows them as files
	removeCgroup func(group string) error
}

// sysctls are those that a kubelet sets and that no namespace keeps to itself.
var sysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// Spec is what a lab is made of.
type Spec struct {
	Dir      string            `json:"dir"`      // of everything that the lab writes; short, because sockets are in it
	Template string            `json:"template"` // of the images that every node has, see Template
	Shipped  []image.Archive   `json:"shipped"`  // which every node imports when it starts
	Programs map[string]string `json:"programs"` // paths of kubelet, kube-proxy, coredns and kubectl
	Command  []string          `json:"command"`  // runs inside the lab, which ends with it; none waits for an interrupt
	Cgroup   string            `json:"cgroup"`
}

// InsideArg and NodeArg are the first arguments with which a lab starts its own executable again: for what runs inside
// the lab's namespaces, and for the first process of a node. The program that calls Run hands those calls to Inside and
// to NodeInit.
const (
	InsideArg = "lab-inside"
	NodeArg   = "lab-node"
)

// Run starts a lab, runs the spec's command in it, ends the lab and puts the host back. It returns the command's exit
// status. An interrupt ends the command and the lab; even where this process is killed, the kernel ends all of the lab.
func Run(ctx context.Context, spec Spec, progress io.Writer) (status int, err error) {
	spec.Cgroup = "/tegen-lab-" + strconv.Itoa(os.Getpid())
	host, err := machineState.enter(spec)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, removeCgroup(spec.Cgroup), host.leave()) }()
	text, err := json.Marshal(spec)
	if err != nil {
		return 0, fmt.Errorf("starting a lab: %w", err)
	}
	file := filepath.Join(spec.Dir, "spec.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return 0, fmt.Errorf("starting a lab: %w", err)
	}
	// Signals are for the process inside, which ends the command first. Without this, ours would leave before it.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	// No goroutine may end this thread: the kernel would end the lab with it.
	inside := isolated(exec.Command("/proc/self/exe", InsideArg, file), syscall.CLONE_NEWNET)
	inside.Stdout, inside.Stderr = os.Stdout, progress
	done := make(chan error, 1)
	started := make(chan error, 1)
	go startAndWait(inside, started, done)
	if err := <-started; err != nil {
		return 0, fmt.Errorf("starting a lab: %w", err)
	}
	// For a person who wants to look inside with nsenter; where it cannot be written, nothing else suffers.
	_ = os.WriteFile(filepath.Join(spec.Dir, "pid"), []byte(strconv.Itoa(inside.Process.Pid)), 0o600)
	interrupt := ctx.Done()
	for {
		select {
		case <-interrupt:
			interrupt = nil
			_ = inside.Process.Signal(syscall.SIGTERM) // it has ended where this fails, and done says so
		case s := <-signals:
			// A hangup too: what is written to the terminal from now on is lost, the host is not.
			_ = inside.Process.Signal(s)
		case err := <-done:
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.Exited() {
				return exit.ExitCode(), nil
			}
			if err != nil {
				err = fmt.Errorf("running a lab: %w", err)
			}
			return 0, err
		}
	}
}

// host is this lab's share in what is put back when the last lab of the machine ends.
type host struct {
	state
	file *os.File // named as the lab's process, with what it must leave behind; locked as long as the lab runs
}

// enter adds a lab to those of the machine. What killed labs left is removed, and the first one notes what labs change.
func (s state) enter(spec Spec) (*host, error) {
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	others, err := s.sweep()
	if err != nil {
		return nil, err
	}
	if others == 0 {
		if err := errors.Join(s.restore(), s.save()); err != nil {
			return nil, fmt.Errorf("noting the host's state: %w", err)
		}
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("noting the host's state: %w", err)
	}
	file, err := os.Create(filepath.Join(s.labs(), strconv.Itoa(os.Getpid())))
	if err != nil {
		return nil, fmt.Errorf("noting the host's state: %w", err)
	}
	_, err = file.Write(text)
	if err := errors.Join(err, syscall.Flock(int(file.Fd()), syscall.LOCK_EX)); err != nil {
		return nil, errors.Join(fmt.Errorf("noting the host's state: %w", err), file.Close())
	}
	return &host{s, file}, nil
}

// leave takes the lab from those of the machine, and puts the host back where no other one runs.
func (h *host) leave() error {
	unlock, err := h.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := errors.Join(os.RemoveAll(h.file.Name()), h.file.Close()); err != nil { // /run may have been emptied
		return fmt.Errorf("putting the host back: %w", err)
	}
	others, err := h.sweep()
	if err != nil || others > 0 {
		return err // the last one does
	}
	if err := errors.Join(h.restore(), os.RemoveAll(h.dir)); err != nil {
		return fmt.Errorf("putting the host back: %w", err)
	}
	return nil
}

func (s state) labs() string { return filepath.Join(s.dir, "labs") }

// lock lets one process at a time read and change the state.
func (s state) lock() (unlock func(), err error) {
	for {
		if err := os.MkdirAll(s.labs(), 0o700); err != nil {
			return nil, fmt.Errorf("noting the host's state: %w", err)
		}
		path := filepath.Join(s.dir, "state.lock")
		lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("noting the host's state: %w", err)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("noting the host's state: %w", err), lock.Close())
		}
		// While we waited, the last lab may have removed the folder.
		held, err := lock.Stat()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("noting the host's state: %w", err), lock.Close())
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(held, there) {
			return func() { _ = lock.Close() }, nil
		}
		_ = lock.Close()
	}
}

// sweep removes what labs left whose process was killed, and counts those that run.
func (s state) sweep() (running int, err error) {
	entries, err := os.ReadDir(s.labs())
	if err != nil {
		return 0, fmt.Errorf("looking for labs: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(s.labs(), entry.Name())
		file, err := os.Open(path)
		if err != nil {
			return 0, fmt.Errorf("looking for labs: %w", err)
		}
		alive := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
		if alive {
			running++
		} else {
			err = s.removeLeft(path)
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return 0, fmt.Errorf("removing what a killed lab left: %w", err)
		}
	}
	return running, nil
}

// removeLeft removes what a killed lab left. Its processes and mounts ended with it.
func (s state) removeLeft(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var spec Spec
	if err := json.Unmarshal(text, &spec); err != nil || spec.Cgroup == "" {
		return os.Remove(path) // it was killed before it had begun
	}
	return errors.Join(s.removeCgroup(spec.Cgroup), os.RemoveAll(spec.Dir), os.Remove(path))
}

// KeepLogs removes from the folder of a lab that has ended what is large, and nobody reads.
func KeepLogs(dir string) error {
	var errs []error
	for _, pattern := range []string{
		"volumes", "control-plane/etcd", "n*/containerd", "n*/kubelet", "n*/lib",
		"n*/lib.work",
	} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		errs = append(errs, err)
		for _, path := range paths {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}

func (s state) sysctl(name string) string { return filepath.Join(s.sysctls, name) }

func (s state) saved() string { return filepath.Join(s.dir, "sysctls.json") }

// save notes the values of the sysctls.
func (s state) save() error {
	values := map[string]string{}
	for _, name := range sysctls {
		text, err := os.ReadFile(s.sysctl(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		values[name] = strings.TrimSpace(string(text))
	}
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	return os.WriteFile(s.saved(), text, 0o600)
}

// restore puts back the values that were noted, where any were.
func (s state) restore() error {
	text, err := os.ReadFile(s.saved())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var values map[string]string
	if err := json.Unmarshal(text, &values); err != nil {
		return fmt.Errorf("reading %s: %w", s.saved(), err)
	}
	var errs []error
	for name, value := range values {
		if now, err := os.ReadFile(s.sysctl(name)); err == nil && strings.TrimSpace(string(now)) == value {
			continue
		}
		errs = append(errs, os.WriteFile(s.sysctl(name), []byte(value), 0o644))
	}
	return errors.Join(append(errs, os.Remove(s.saved()))...)
}
