package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// newState is a state of a machine that is a folder, and the groups that were removed from it.
func newState(t *testing.T) (s state, removed *[]string) {
	t.Helper()
	removed = new([]string)
	s = state{dir: filepath.Join(t.TempDir(), "run"), sysctls: t.TempDir(), removeCgroup: func(group string) error {
		*removed = append(*removed, group)
		return nil
	}}
	set(t, s, "vm/overcommit_memory", "0")
	set(t, s, "kernel/panic", "1")
	return s, removed
}

func set(t *testing.T, s state, name, value string) {
	t.Helper()
	file := filepath.Join(s.sysctls, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700),
		os.WriteFile(file, []byte(value+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, s state, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.sysctls, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func enter(t *testing.T, s state, spec Spec) *host {
	t.Helper()
	h, err := s.enter(spec)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHostIsPutBack(t *testing.T) {
	s, _ := newState(t)
	h := enter(t, s, Spec{})
	set(t, s, "kernel/panic", "10") // as a kubelet does
	if err := h.leave(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "kernel/panic"); got != "1" {
		t.Errorf("kernel.panic is %s, and was 1", got)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state stays: %v", err)
	}
}

// TestLastLabPutsBack has a lab in another process, which is a file that another descriptor locked.
func TestLastLabPutsBack(t *testing.T) {
	s, _ := newState(t)
	first := enter(t, s, Spec{})
	if err := os.Rename(first.file.Name(), first.file.Name()+"0"); err != nil { // as if of another process
		t.Fatal(err)
	}
	set(t, s, "kernel/panic", "10")
	if err := enter(t, s, Spec{}).leave(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "kernel/panic"); got != "10" {
		t.Errorf("kernel.panic is %s while a lab runs that has set it to 10", got)
	}
}

func TestKilledLabIsSweptAfter(t *testing.T) {
	s, removed := newState(t)
	dir := t.TempDir()
	killed := enter(t, s, Spec{Dir: dir, Cgroup: "/tegen-lab-1"})
	if err := os.Rename(killed.file.Name(), killed.file.Name()+"0"); err != nil {
		t.Fatal(err)
	}
	if err := killed.file.Close(); err != nil { // and with it the lock, as the kernel does
		t.Fatal(err)
	}
	set(t, s, "vm/overcommit_memory", "1")

	h := enter(t, s, Spec{Cgroup: "/tegen-lab-2"})
	if want := []string{"/tegen-lab-1"}; !slices.Equal(*removed, want) {
		t.Errorf("removed the cgroups %q, want %q", *removed, want)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the killed lab's folder stays: %v", err)
	}
	set(t, s, "vm/overcommit_memory", "1")
	if err := h.leave(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "vm/overcommit_memory"); got != "0" {
		t.Errorf("vm.overcommit_memory is %s, and was 0 before the killed lab", got)
	}
}

func TestKilledBeforeItBegan(t *testing.T) {
	s, removed := newState(t)
	if err := os.MkdirAll(s.labs(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.labs(), "17"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := enter(t, s, Spec{}).leave(); err != nil {
		t.Fatal(err)
	}
	if len(*removed) > 0 {
		t.Errorf("removed the cgroups %q of a lab without any", *removed)
	}
}
