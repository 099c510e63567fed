package proxystore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// member is an etcd in a process of its own.
type member struct {
	t       *testing.T
	wrapper []string // the command that starts it, if any
	dir     string
	address string
	cmd     *exec.Cmd
	in      io.Closer
	ended   chan struct{}
}

func newMember(t *testing.T, dir string, wrapper ...string) *member {
	t.Helper()
	m := &member{t: t, wrapper: wrapper, dir: dir, address: ports.Address(t)}
	t.Cleanup(m.kill)
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	return m
}

// start waits until the etcd serves.
func (m *member) start() error {
	m.ended = make(chan struct{})
	command := append(append([]string{}, m.wrapper...), os.Args[0], storeRole, m.dir, m.address)
	m.cmd = exec.Command(command[0], command[1:]...)
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err1 := m.cmd.StdinPipe() // it ends with its input
	out, err2 := m.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, m.cmd.Start()); err != nil {
		close(m.ended)
		return err
	}
	m.in = in
	_, err := bufio.NewReader(out).ReadString('\n')
	go func() {
		_ = m.cmd.Wait() // how it ended does not matter
		close(m.ended)
	}()
	if err != nil {
		return fmt.Errorf("starting an etcd: %w", err)
	}
	return nil
}

// kill ends the process and its wrapper with SIGKILL.
func (m *member) kill() {
	if m.cmd.Process != nil {
		_ = syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
	}
	<-m.ended
}

// injected is the command that has the kernel delay a process's syncs, or fail them.
func injected(t *testing.T, what string) []string {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed, which delays and fails the syncs of an etcd")
	}
	return []string{
		"strace", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e",
		"inject=fsync,fdatasync:" + what,
	}
}

// through is one relay for each pod to an address.
func through(t *testing.T, address string) (endpoints [][]string) {
	t.Helper()
	for range pods {
		endpoints = append(endpoints, []string{newRelay(t, address).address})
	}
	return endpoints
}

// TestSlowDisk: a sync of the etcd takes longer than a proxy waits before it repeats a request. Writes are in doubt.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	m := newMember(t, t.TempDir(), injected(t, "delay_exit=1200ms")...)
	exercise(t, through(t, m.address), 4, func(_, stop chan struct{}, _ func() *rand.Rand) { <-stop })
}

// TestFailedSync: syncs of the etcd fail, upon which it ends. What was answered before is there when it is back.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	m := newMember(t, t.TempDir(), injected(t, "error=EIO:when=25")...)
	restarts := 0
	exercise(t, through(t, m.address), 200, func(_, stop chan struct{}, _ func() *rand.Rand) {
		for {
			select {
			case <-m.ended:
				restarts++
				if err := m.start(); err != nil {
					t.Log(err) // a sync failed at once
				}
			case <-stop:
				return
			}
		}
	})
	if t.Logf("the etcd was restarted %d times", restarts); restarts == 0 {
		t.Error("no sync has failed")
	}
}

// filesystem is an ext4 in a file, which can lose what was not synced.
type filesystem struct {
	t          *testing.T
	image, dir string
}

func newFilesystem(t *testing.T) *filesystem {
	t.Helper()
	f := &filesystem{t, filepath.Join(t.TempDir(), "image"), t.TempDir()}
	if err := errors.Join(os.WriteFile(f.image, nil, 0o600), os.Truncate(f.image, 192<<20)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", f.image).CombinedOutput(); err != nil {
		t.Skipf("no file system can be made here: %v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", f.image, f.dir).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = syscall.Unmount(f.dir, syscall.MNT_DETACH) })
	return f
}

// shutDown loses all that was not synced, as a loss of power does. Nothing can be written from then on. It is
// EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH.
func (f *filesystem) shutDown() error {
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	flag := uint32(2)
	_, _, code := syscall.Syscall(syscall.SYS_IOCTL, dir.Fd(), 0x8004587d, uintptr(unsafe.Pointer(&flag)))
	if err := dir.Close(); code == 0 {
		return err
	}
	return code
}

// again mounts what is left, as a copy: the file system stays shut down while a process of another mount namespace has
// it.
func (f *filesystem) again() error {
	if err := syscall.Unmount(f.dir, syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting: %w", err)
	}
	left := f.image + "-"
	for _, command := range [][]string{
		{"cp", "--sparse=always", f.image, left}, {"mount", "-o", "loop", left, f.dir},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("mounting again: %w: %s", err, out)
		}
	}
	f.image, left = left, f.image
	return os.Remove(left)
}

// TestLostWrites: the machine of the etcd loses its power again and again, and with it all that was not synced. What
// was answered before is there when it is back.
func TestLostWrites(t *testing.T) {
	t.Parallel()
	f := newFilesystem(t)
	m := newMember(t, filepath.Join(f.dir, "data"))
	losses, lost := 0, 0
	lose := func() error {
		canary := filepath.Join(f.dir, "canary")
		if err := errors.Join(os.WriteFile(canary, []byte("not synced"), 0o600), f.shutDown()); err != nil {
			return err
		}
		m.kill()
		if err := f.again(); err != nil {
			return err
		}
		text, err := os.ReadFile(canary)
		if err != nil || len(text) == 0 { // otherwise a sync of the etcd came after it
			lost++
		}
		losses++
		return m.start()
	}
	exercise(t, through(t, m.address), 500, func(_, stop chan struct{}, dice func() *rand.Rand) {
		// The first loss is early: a machine with nothing else to do has soon carried out everything.
		for d, wait := dice(), 20; ; wait = 100 + d.IntN(500) {
			select {
			case <-time.After(time.Duration(wait) * time.Millisecond):
			case <-stop:
				return
			}
			if err := lose(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	if t.Logf("%d losses of power, of which %d lost a file of the test", losses, lost); lost == 0 {
		t.Error("nothing was lost")
	}
}

// TestOneWay: of two gateways to an etcd one or both are reached in one direction only, by the pods or by the etcd:
// requests arrive and answers do not, or a gateway is connected to the etcd and no request arrives at it.
func TestOneWay(t *testing.T) {
	t.Parallel()
	const gateways = 2
	var behind [gateways]*relay       // between a gateway and the etcd
	var before [gateways][pods]*relay // between the pods and a gateway
	endpoints := make([][]string, pods)
	for g := range gateways {
		behind[g] = newRelay(t, etcd(t))
		at := gated(t, behind[g].address)
		for i := range pods {
			before[g][i] = newRelay(t, at)
			endpoints[i] = append(endpoints[i], before[g][i].address)
		}
	}
	var done [2]atomic.Int64
	interrupt := func(d *rand.Rand, stop chan struct{}) {
		for {
			g, length := d.IntN(gateways), time.Duration(50+d.IntN(2000))*time.Millisecond
			cut := d.IntN(3) == 0 // connections do not survive it
			relays, kind := []*relay{behind[g]}, 0
			if d.IntN(2) == 0 {
				relays, kind = before[g][:], 1
			}
			way := func(r *relay) *atomic.Bool { return &r.deaf }
			if d.IntN(2) == 0 {
				way = func(r *relay) *atomic.Bool { return &r.mute }
			}
			for _, r := range relays {
				way(r).Store(true)
			}
			ended := false
			select {
			case <-time.After(length):
			case <-stop:
				ended = true
			}
			for _, r := range relays {
				if cut {
					r.cut()
				}
				way(r).Store(false)
				r.open()
			}
			if done[kind].Add(1); ended {
				return
			}
			time.Sleep(time.Duration(d.IntN(200)) * time.Millisecond)
		}
	}
	exercise(t, endpoints, 150, func(_, stop chan struct{}, dice func() *rand.Rand) {
		var both sync.WaitGroup
		for range 2 {
			d := dice()
			both.Go(func() { interrupt(d, stop) })
		}
		both.Wait()
	})
	t.Logf("%d interruptions before the etcd, %d before the pods", done[0].Load(), done[1].Load())
}
