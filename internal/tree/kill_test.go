//go:build linux || darwin

package tree

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/render"
)

// killVariable is how many files a process renames before it is killed.
const killVariable = "TEGEN_TREE_KILLED_AFTER"

func osRoot(dir string) (*disk, error) {
	root, err := os.OpenRoot(dir)
	return &disk{root}, err
}

// places2 are two places in which one job changes, one comes and one goes.
func places2(base, worker string) []Place {
	bundles := []render.Bundle{bundle("ml/a", "etcd: "+worker, "worker: "+worker), bundle("ml/b", "worker: "+worker)}
	return []Place{
		{Dir: filepath.Join(base, "eks"), Bundles: bundles, Prune: true},
		{Dir: filepath.Join(base, "kind"), Bundles: bundles, Prune: true, Rest: []byte(worker + "\n")},
	}
}

// TestKilled kills a render before each file that it renames, see stopped.
func TestKilled(t *testing.T) {
	killed := stopped(t, killedAfter)
	if killed["before there is a journal"] != 1 || killed["with a journal"] < 8 {
		t.Errorf("killed %v", killed)
	}
}

// TestDead lets the disk fail from each change of the file system on, which leaves what a crash would there.
func TestDead(t *testing.T) {
	killed := stopped(t, func(t *testing.T, changes int, dir string) bool {
		t.Helper()
		alive := changing
		defer func() { changing = alive }()
		changing = func(_, _ string) error {
			if changes--; changes < 0 {
				return errors.New("the disk is dead")
			}
			return nil
		}
		_, _, err := (Top{Dir: dir}).Write(t.Context(), places2(dir, "new")...)
		return err != nil
	})
	if killed["before there is a journal"] < 50 || killed["with a journal"] < 20 || killed["when it is gone"] != 1 {
		t.Errorf("stopped %v", killed)
	}
}

// TestFlaky: a single change that fails, while the disk goes on, loses nothing either: what the journal lists stays
// staged.
func TestFlaky(t *testing.T) {
	failed := stopped(t, func(t *testing.T, changes int, dir string) bool {
		t.Helper()
		alive := changing
		defer func() { changing = alive }()
		changing = func(_, _ string) error {
			if changes--; changes == -1 {
				return errors.New("an error of the disk")
			}
			return nil
		}
		_, _, err := (Top{Dir: dir}).Write(t.Context(), places2(dir, "new")...)
		return err != nil
	})
	if failed["before there is a journal"] < 50 || failed["with a journal"] < 20 {
		t.Errorf("failed %v", failed)
	}
}

// stopped stops a render after each number of changes. It then has either changed nothing, or left a journal by which
// the next write of any job completes it: in both places, of all jobs. No temporary file stays.
func stopped(t *testing.T, stop func(t *testing.T, changes int, dir string) bool) map[string]int {
	t.Helper()
	base := t.TempDir()
	old := filepath.Join(base, "old")
	for _, place := range []string{"eks", "kind"} {
		at := filepath.Join(old, place)
		mustWrite(t, at, "", bundle("ml/a", "prefetch: p", "worker: old"), bundle("ml/gone", "worker: old"))
		put(t, filepath.Join(at, "a/mine/notes.txt"), "mine")
	}
	prepare := func(name string) string {
		dir := filepath.Join(base, name)
		if err := os.CopyFS(dir, os.DirFS(old)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	whole := prepare("new")
	if _, _, err := (Top{Dir: whole}).Write(t.Context(), places2(whole, "new")...); err != nil {
		t.Fatal(err)
	}
	before, want := files(t, old), files(t, whole)
	killed := map[string]int{}
	for i := 0; ; i++ {
		dir := prepare(strconv.Itoa(i))
		if !stop(t, i, dir) {
			return killed
		}
		expected, when := want, "with a journal"
		if Unfinished(dir) == nil {
			expected, when = before, "before there is a journal"
			if got := files(t, dir); got[topFile] != "" {
				expected, when = want, "when it is gone"
			}
			check(t, i, when, expected, files(t, dir))
		}
		killed[when]++
		others, err := Write(t.Context(), Place{Dir: filepath.Join(dir, "eks")}) // of no job at all
		if err != nil || others.Completed != (when == "with a journal") {
			t.Fatalf("%d: %+v, %v", i, others, err)
		}
		check(t, i, when+", after the next write", expected, files(t, dir))
		if _, _, err := (Top{Dir: dir}).Write(t.Context(), places2(dir, "new")...); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if diff := cmp.Diff(state(t, whole), state(t, dir)); diff != "" {
			t.Errorf("%d: %s, after the same write again (-want +got):\n%s", i, when, diff)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// killedAfter writes in a process that is killed after it renamed so many files, and says whether it was.
func killedAfter(t *testing.T, renames int, dir string) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
	cmd.Env = append(os.Environ(), killVariable+"="+strconv.Itoa(renames), "TEGEN_TREE_DIR="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("%d: %v\n%s", renames, err, out)
	}
	return false
}

// files are those below a directory but the temporary ones.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := state(t, dir)
	maps.DeleteFunc(all, func(name, text string) bool { return text == "dir" || strings.Contains(name, ".tegen-new-") })
	return all
}

// TestKilledChild is the process that is killed.
func TestKilledChild(t *testing.T) {
	left, err := strconv.Atoi(os.Getenv(killVariable))
	if err != nil {
		t.Skip("TestKilled starts it")
	}
	setChanging(t, func(op, _ string) error {
		if op != "rename" {
			return nil
		}
		if left--; left < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it comes
		}
		return nil
	})
	dir := os.Getenv("TEGEN_TREE_DIR")
	if _, _, err := (Top{Dir: dir}).Write(t.Context(), places2(dir, "new")...); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, i int, when string, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%d: %s (-want +got):\n%s", i, when, diff)
	}
}
