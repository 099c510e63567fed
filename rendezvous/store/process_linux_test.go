package store

import (
	"context"
	"flag"
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

// What the test binary does in place of tests where its first argument says so.
const (
	asStore   = "as-store"   // the store's process
	asSlow    = "as-slow"    // the same, which reads for a time before it opens
	asStuck   = "as-stuck"   // a process that never gets anywhere
	asKilled  = "as-killed"  // one that says something and is killed
	asLimits  = "as-limits"  // one that starts a store, and says what memory both have
	asLimited = "as-limited" // that store
	slowly    = 5 * time.Second
)

// self is a command that runs the test binary as one of these.
func self(as string) []string { return []string{os.Args[0], as} }

// TestMain runs more tests at once than there are processors, because they wait far more than they compute.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "as-") {
		os.Exit(runAs(os.Args[1], os.Args[2:]))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func runAs(role string, args []string) int {
	switch role {
	case asStuck:
		time.Sleep(time.Hour)
	case asKilled:
		fmt.Fprintln(os.Stderr, "WARNING: something of no concern")
		fmt.Fprintln(os.Stderr, "tegen-rendezvous: something else")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // as the kernel does
	case asLimited:
		fmt.Fprintln(os.Stderr, "panic: "+os.Getenv("GOMEMLIMIT"))
		return 1
	case asLimits:
		c, err := launch(zap.NewNop(), self(asLimited))
		if err != nil {
			panic(err)
		}
		<-c.ended
		_, _ = fmt.Fprintln(os.Stdout, c.reason(), debug.SetMemoryLimit(-1))
		return 0
	case asSlow:
		readSlowly(args[0], slowly)
	}
	if err := Main(Embedded{Dir: args[0], Listen: args[1], Log: zap.NewNop()}, os.Stdin, os.Stdout); err != nil {
		return 1
	}
	return 0
}

// TestProcess: a store in a process of its own keeps what it was given, also where its path is too long for a socket,
// and leaves no socket behind.
func TestProcess(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Cleanup(func() { checkNoSockets(t, temp) })
	dirs := map[string]string{"short": "s", "long": strings.Repeat("d", 120)}
	for _, name := range []string{"a b", "a[b", "a?b", "a#b", "a%41b", "a%zz", "a*b", `a\b`, "a:b", "a,b", "a=b", "ä"} {
		dirs[name] = name
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(temp, dir)
			for i, want := range []int{0, 1} {
				openAndPut(t, dir, fmt.Sprintf("start %d", i), want)
				checkNoSockets(t, dir)
			}
		})
	}
}

func openAndPut(t *testing.T, dir, start string, want int) {
	t.Helper()
	s, err := Process{Dir: dir, Command: self(asStore)}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Get(t.Context(), "k")
	if err != nil || len(r.Kvs) != want {
		t.Errorf("%s: %d keys, %v", start, len(r.Kvs), err)
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
}

func checkNoSockets(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), socketSuffix) || strings.HasPrefix(f.Name(), tempPrefix) {
			t.Errorf("%s is left in %s", f.Name(), dir)
		}
	}
}

// TestSweep: what killed stores have left goes, and what others use, or are about to, stays.
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
		if err := os.Chtimes(l.Addr().String(), time.Time{}, time.Now().Add(-2*young)); err != nil {
			t.Fatal(err)
		}
		return l
	}
	_ = listen(tempPrefix + "dead").Close()
	_ = listen("other-dead").Close()
	listen(tempPrefix + "live")
	bound := listen(tempPrefix + "bound") // as between bind and listen
	_ = bound.Close()
	if err := os.Chtimes(bound.Addr().String(), time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(temp, tempPrefix+"begins"), 0o700); err != nil {
		t.Fatal(err)
	}
	sweepTemp()
	for name, want := range map[string]bool{
		tempPrefix + "dead": false, "other-dead": true, tempPrefix + "live": true, tempPrefix + "bound": true,
		tempPrefix + "begins": true,
	} {
		if _, err := os.Stat(filepath.Join(temp, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReason: a store that the kernel has killed ended by that, and not by what it said once.
func TestReason(t *testing.T) {
	t.Parallel()
	c, err := launch(zap.NewNop(), self(asKilled))
	if err != nil {
		t.Fatal(err)
	}
	<-c.ended
	if got := c.reason(); got != "signal: killed" {
		t.Errorf("got %s", got)
	}
	for line, want := range map[string]string{
		"WARNING: 1": "", "tegen-rendezvous: no": "no", "panic: x": "panic: x", "fatal error: out": "fatal error: out",
		"goroutine 1 [running]:": "",
	} {
		c := &child{}
		if c.hear(zap.NewNop(), line); c.last != want {
			t.Errorf("%s: remembered is %q, want %q", line, c.last, want)
		}
	}
}

// TestMemory: the soft limits of both processes together are the one that was set.
func TestMemory(t *testing.T) {
	for set, want := range map[string]string{
		"300MiB": "panic: 104857600 209715200",
		"":       "exit status 1 9223372036854775807",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], asLimits)
		cmd.Env = append(os.Environ(), "GOMEMLIMIT="+set)
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
	t.Parallel()
	begin := time.Now()
	dir := t.TempDir()
	_, err := Process{Dir: dir, Command: self(asStuck), Stall: 2 * time.Second}.Open(t.Context())
	if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), dir+": it has not advanced for 2s") ||
		took > 20*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
}

// TestSlowOpening: a store that opens for longer than it may stand still is waited for while it reads.
func TestSlowOpening(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	s, err := Process{Dir: t.TempDir(), Command: self(asSlow), Stall: 3 * time.Second}.Open(t.Context())
	if err != nil {
		t.Fatalf("after %s: %v", time.Since(begin), err)
	}
	if took := time.Since(begin); took < slowly {
		t.Errorf("it took %s", took)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// readSlowly reads as a store reads a large log from a slow disk.
func readSlowly(dir string, d time.Duration) {
	log := filepath.Join(dir, "log")
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
