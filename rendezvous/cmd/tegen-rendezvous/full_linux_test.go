package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
)

// TestFullDisk takes a server its disk away while agents write: writes are refused with a status, reads and the other
// APIs go on, it starts again on the full disk, and takes writes again once there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		fill func(t *testing.T, dir string)
		says []int // one of these
	}{
		{
			"slowly", func(t *testing.T, dir string) { fill(t, dir, 1<<20, 20<<20) },
			[]int{http.StatusInsufficientStorage},
		},
		// etcd's own next write fails, and it ends.
		{
			"at once", func(t *testing.T, dir string) { fill(t, dir, 64<<20, 0) },
			[]int{http.StatusInsufficientStorage, http.StatusInternalServerError},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := disk(t, "size=192m")
			p := serve(t, "--data-dir", filepath.Join(dir, "data"))
			code, body := ask(t, http.MethodPut, p.client, "/v2/keys/k", "value", "0")
			expect(t, http.StatusCreated, code, body)
			agent := torchAgent(t, p.c10d, "resnet")
			stop, stopped := make(chan struct{}), make(chan int)
			go func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						stopped <- n
						return
					default:
						ask(t, http.MethodPut, p.client, "/v2/keys/load", "value", strings.Repeat("x", 100_000))
					}
				}
			}()
			time.Sleep(time.Second)
			c.fill(t, dir)
			saysNo(t, p, c.says...)
			until(t, func() bool { // no client is sent to a store that refuses its writes
				code, _ := ask(t, http.MethodGet, p.status, "/readyz")
				return code == http.StatusServiceUnavailable
			})
			time.Sleep(3 * time.Second) // etcd writes what it has gathered each 100 ms
			close(stop)
			if n := <-stopped; n < 10 {
				t.Errorf("only %d writes were tried", n)
			}
			goesOn(t, p, agent)
			p.signal(syscall.SIGKILL)
			p.exit()

			p = serve(t, "--data-dir", filepath.Join(dir, "data"))
			agent = torchAgent(t, p.c10d, "resnet")
			saysNo(t, p, http.StatusInsufficientStorage, http.StatusServiceUnavailable) // the store may not open
			if _, metrics := ask(t, http.MethodGet, p.status, "/metrics"); !strings.Contains(metrics,
				"tegen_rendezvous_store_full 1\n") {
				t.Error("no metric says that the disk is full")
			}
			goesOn(t, p, agent)
			if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
				t.Fatal(err)
			}
			until(t, func() bool {
				code, _ := ask(t, http.MethodPut, p.client, "/v2/keys/k", "value", "1")
				return code == http.StatusOK
			})
			expectReady(t, p)
		})
	}
}

// TestBeginFull: a server whose disk is full from the start serves what it can, and all once there is room.
func TestBeginFull(t *testing.T) {
	t.Parallel()
	dir := disk(t, "size=192m")
	fill(t, dir, 1<<20, 0)
	p := serve(t, "--data-dir", dir)
	agent := torchAgent(t, p.c10d, "resnet")
	code, body := ask(t, http.MethodPut, p.client, "/v2/keys/k", "value", "1")
	if expect(t, http.StatusServiceUnavailable, code, body); !strings.Contains(body, "the disk of the store is full") {
		t.Errorf("it does not say why: %s", body)
	}
	code, body = ask(t, http.MethodGet, p.status, "/readyz")
	expect(t, http.StatusServiceUnavailable, code, body)
	goesOn(t, p, agent)
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		code, _ := ask(t, http.MethodPut, p.client, "/v2/keys/k", "value", "1")
		return code == http.StatusCreated
	})
	expectReady(t, p)
}

// TestStoreEnds: an end of the store's process is not the server's, and the store comes back with what it held.
func TestStoreEnds(t *testing.T) {
	t.Parallel()
	p := serve(t, "--data-dir", t.TempDir())
	code, body := ask(t, http.MethodPut, p.client, "/v2/keys/k", "value", "0")
	expect(t, http.StatusCreated, code, body)
	agent := torchAgent(t, p.c10d, "resnet")
	for _, pid := range children(t, p.cmd.Process.Pid) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	until(t, func() bool { return strings.Contains(p.logged(), "store exited") })
	goesOn(t, p, agent)
	until(t, func() bool {
		code, _ := ask(t, http.MethodPut, p.client, "/v2/keys/k", "value", "1", "prevValue", "0")
		return code == http.StatusOK
	})
}

// TestDamaged: data that cannot be read is an error of a line, and not a trace of etcd's.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(t *testing.T, file string, size int64){
		"log":      func(t *testing.T, file string, _ int64) { scribble(t, file, 100, 5000) },
		"database": func(t *testing.T, file string, size int64) { scribble(t, file, 0, int(size)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := serve(t, "--data-dir", dir)
			for i := range 20 {
				code, body := ask(t, http.MethodPut, p.client, "/v2/keys/k"+strconv.Itoa(i), "value",
					strings.Repeat("x", 10_000))
				expect(t, http.StatusCreated, code, body)
			}
			p.signal(syscall.SIGTERM)
			p.exit()
			path := filepath.Join(dir, "member", "snap", "db")
			if name == "log" {
				all, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
				if err != nil || len(all) == 0 {
					t.Fatalf("%v, %v", all, err)
				}
				path = all[0]
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			harm(t, path, info.Size())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "serve", "--data-dir", dir, "--listen-client=127.0.0.1:0",
				"--listen-c10d=", "--listen-status=")
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != cli.ExitError {
				t.Errorf("it ended with %v", err)
			}
			if text := string(out); !strings.Contains(text, "tegen-rendezvous: opening the store in "+dir+": ") ||
				strings.Contains(text, "goroutine ") {
				t.Errorf("it says %s", text)
			} else {
				t.Log(text[strings.LastIndex(text, "tegen-rendezvous: "):])
			}
		})
	}
}

func scribble(t *testing.T, path string, at int64, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, n), at)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// children are the processes that a process has started.
func children(t *testing.T, pid int) (all []int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range threads {
		text, _ := os.ReadFile(path) // a thread may have ended
		for _, f := range strings.Fields(string(text)) {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		t.Fatal("it has started no process")
	}
	return all
}

// disk is a small file system of its own.
func disk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tegen-test", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("no file system can be mounted here, so nobody fills one: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill writes until there is no room, or only so much.
func fill(t *testing.T, dir string, step int, left uint64) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "ballast"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for zeros := make([]byte, step); ; {
		var s syscall.Statfs_t
		if err := syscall.Statfs(dir, &s); err != nil {
			t.Fatal(err)
		}
		if s.Bavail*uint64(s.Bsize) < left {
			return
		}
		if _, err := f.Write(zeros); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// saysNo waits until a write is refused, with one of these statuses, and with the reason.
func saysNo(t *testing.T, p *process, statuses ...int) {
	t.Helper()
	until(t, func() bool {
		code, body := ask(t, http.MethodPut, p.client, "/v2/keys/k", "value", "1")
		if code == http.StatusInsufficientStorage && !strings.Contains(body, "the disk of the store is full") {
			t.Errorf("it does not say why: %s", body)
		}
		if code >= http.StatusInternalServerError && !slices.Contains(statuses, code) {
			t.Fatalf("a write gets %d, want one of %v: %s", code, statuses, body)
		}
		return code >= http.StatusInternalServerError
	})
}

// goesOn says that the server lives, and that a client of the TCPStore is served on its old connection.
func goesOn(t *testing.T, p *process, agent io.ReadWriter) {
	t.Helper()
	select {
	case <-p.ended:
		t.Fatal("the server has ended")
	default:
	}
	code, body := ask(t, http.MethodGet, p.status, "/healthz")
	expect(t, http.StatusOK, code, body)
	// CHECK of one key, in the wire of torch 2.
	const check = "\x04\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00k"
	if _, err := io.WriteString(agent, check); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1)
	if _, err := io.ReadFull(agent, got); err != nil {
		t.Fatalf("the TCPStore: %v", err)
	}
}
