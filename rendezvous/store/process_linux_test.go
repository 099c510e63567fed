package store

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
)

// asStore makes the test binary the store's process; asStuck one that never gets anywhere.
const asStore, asStuck = "TEGEN_TEST_STORE", "TEGEN_TEST_STUCK"

// asSlow is for how long a store reads before it opens.
const asSlow = "TEGEN_TEST_SLOW"

// asKilled makes it one that says something and is killed; asLimits what starts a store, and says what memory both have.
const asKilled, asLimits, asLimited = "TEGEN_TEST_KILLED", "TEGEN_TEST_LIMITS", "TEGEN_TEST_LIMITED"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asStuck) != "":
		time.Sleep(time.Hour)
	case os.Getenv(asKilled) != "":
		fmt.Fprintln(os.Stderr, "WARNING: something of no concern")
		fmt.Fprintln(os.Stderr, "tegen-rendezvous: something else")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // as the kernel does
	case os.Getenv(asLimited) != "":
		fmt.Fprintln(os.Stderr, "panic: "+os.Getenv("GOMEMLIMIT"))
		os.Exit(1)
	case os.Getenv(asLimits) != "":
		_ = os.Setenv(asLimited, "1")
		c, err := launch(zap.NewNop(), []string{os.Args[0]})
		if err != nil {
			panic(err)
		}
		<-c.ended
		_, _ = fmt.Fprintln(os.Stdout, c.reason(), debug.SetMemoryLimit(-1))
		return
	case os.Getenv(asStore) != "":
		if d, err := time.ParseDuration(os.Getenv(asSlow)); err == nil {
			readSlowly(d)
		}
		if err := Main(Embedded{Dir: os.Args[1], Listen: os.Args[2], Log: zap.NewNop()}, os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestProcess: a store in a process of its own keeps what it was given, also where its path is too long for a socket, and
// leaves no socket behind.
func TestProcess(t *testing.T) {
	t.Setenv(asStore, "1")
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dirs := map[string]string{"short": filepath.Join(temp, "s"), "long": filepath.Join(temp, strings.Repeat("d", 120))}
	for _, name := range []string{"a b", "a[b", "a?b", "a#b", "a%41b", "a%zz", "a*b", `a\b`, "a:b", "a,b", "a=b", "ä"} {
		dirs[name] = filepath.Join(temp, name)
	}
	for name, dir := range dirs {
		for i, want := range []int{0, 1} {
			s, err := Process{Dir: dir, Command: []string{os.Args[0]}}.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Get(t.Context(), "k")
			if err != nil || len(r.Kvs) != want {
				t.Errorf("%s, start %d: %d keys, %v", name, i, len(r.Kvs), err)
			}
			if _, err := s.Put(t.Context(), "k", "v"); err != nil {
				t.Error(err)
			}
			if err := s.Room(); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			for _, in := range []string{dir, temp} {
				files, err := os.ReadDir(in)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					if strings.HasSuffix(f.Name(), socketSuffix) || strings.HasPrefix(f.Name(), tempPrefix) {
						t.Errorf("%s: %s is left in %s", name, f.Name(), in)
					}
				}
			}
		}
	}
}

// TestSweep: what killed stores have left goes, and what others use stays.
func TestSweep(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	listen := func(name string) *net.UnixListener {
		dir := filepath.Join(temp, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, "a"+socketSuffix)})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	_ = listen(tempPrefix + "dead").Close()
	_ = listen("other-dead").Close()
	listen(tempPrefix + "live")
	if err := os.Mkdir(filepath.Join(temp, tempPrefix+"begins"), 0o700); err != nil {
		t.Fatal(err)
	}
	sweepTemp()
	for name, want := range map[string]bool{tempPrefix + "dead": false, "other-dead": true, tempPrefix + "live": true, tempPrefix + "begins": true} {
		if _, err := os.Stat(filepath.Join(temp, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReason: a store that the kernel has killed ended by that, and not by what it said once.
func TestReason(t *testing.T) {
	t.Setenv(asKilled, "1")
	c, err := launch(zap.NewNop(), []string{os.Args[0]})
	if err != nil {
		t.Fatal(err)
	}
	<-c.ended
	if got := c.reason(); got != "signal: killed" {
		t.Errorf("got %s", got)
	}
	for line, want := range map[string]string{
		"WARNING: 1": "", "tegen-rendezvous: no": "no", "panic: x": "panic: x", "fatal error: out": "fatal error: out", "goroutine 1 [running]:": "",
	} {
		c := &child{}
		if c.hear(zap.NewNop(), line); c.last != want {
			t.Errorf("%s: remembered is %q, want %q", line, c.last, want)
		}
	}
}

// TestMemory: the soft limits of both processes together are the one that was set.
func TestMemory(t *testing.T) {
	for set, want := range map[string]string{"300MiB": "panic: 104857600 209715200", "": "exit status 1 9223372036854775807"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), asLimits+"=1", "GOMEMLIMIT="+set)
		out, err := cmd.Output()
		if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != want {
			t.Errorf("%q: got %q, want %q, %v", set, got, want, err)
		}
	}
}

// TestPurge: old files of the log go even after it could not be read once.
func TestPurge(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wal")
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { purge(ctx, zap.NewNop(), dir, 10*time.Millisecond) })
	defer running.Wait()
	defer cancel()
	time.Sleep(50 * time.Millisecond)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.wal", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d files are left", len(files))
		}
	}
}

// TestStuck: a store that does not advance is given up, with a word, however much time there is.
func TestStuck(t *testing.T) {
	t.Setenv(asStuck, "1")
	begin := time.Now()
	dir := t.TempDir()
	_, err := Process{Dir: dir, Command: []string{os.Args[0]}, Stall: 2 * time.Second}.Open(t.Context())
	if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), dir+": it has not advanced for 2s") || took > 20*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
}

// TestSlowOpening: a store that opens for longer than it may stand still is waited for while it reads.
func TestSlowOpening(t *testing.T) {
	t.Setenv(asStore, "1")
	t.Setenv(asSlow, "7s")
	begin := time.Now()
	s, err := Process{Dir: t.TempDir(), Command: []string{os.Args[0]}, Stall: 3 * time.Second}.Open(t.Context())
	if err != nil {
		t.Fatalf("after %s: %v", time.Since(begin), err)
	}
	if took := time.Since(begin); took < 7*time.Second {
		t.Errorf("it took %s", took)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// readSlowly reads as a store reads a large log from a slow disk.
func readSlowly(d time.Duration) {
	log := filepath.Join(os.Args[1], "log")
	_ = os.WriteFile(log, make([]byte, 256<<10), 0o600) // without it nothing is read, and the store is given up
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		_, _ = os.ReadFile(log)
	}
}

// TestWork tells a process that reads or computes from one that looks now and then whether a lock is free.
func TestWork(t *testing.T) {
	before := work{cpu: time.Second, bytes: 1000, pages: 10}
	for name, c := range map[string]struct {
		now  work
		want bool
	}{
		"nothing":   {before, false},
		"a lock":    {work{cpu: time.Second + 50*time.Millisecond, bytes: 2000, pages: 12}, false},
		"computing": {work{cpu: 2 * time.Second, bytes: 1000, pages: 10}, true},
		"reading":   {work{cpu: time.Second, bytes: 1 << 20, pages: 10}, true},
		"mapping":   {work{cpu: time.Second, bytes: 1000, pages: 100}, true},
	} {
		if got := c.now.since(before, 10*time.Second); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if w, ok := working(os.Getpid()); !ok || w.bytes == 0 {
		t.Errorf("this process has done %+v, %v", w, ok)
	}
	if _, ok := working(1 << 30); ok {
		t.Error("a process that is not there works")
	}
}
