package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// The servers that are measured.
const (
	companion = "tegen-rendezvous" // its keys API, with the embedded store
	etcdV2    = "etcd with --enable-v2"
	gateway   = "tegen-rendezvous before an etcd"
	etcdV3    = "etcd 3.6" // this program's own, which is built from the same sources as etcd
)

// bench is what all measurements share.
type bench struct {
	options
	log *log.Logger
	dir string // for programs and data

	program string       // tegen-rendezvous
	etcd    string       // an etcd with --enable-v2; "" where there is none
	runs    atomic.Int64 // so many run ids were used
	within  *cgroup      // that servers run in, if any
	behind  string       // the etcd of gateways
}

// open builds the program, and looks for an etcd.
func (b *bench) open(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "bench-rendezvous-")
	if err != nil {
		return err
	}
	b.dir = dir
	if b.program = b.build; b.program == "" {
		b.program = filepath.Join(dir, "tegen-rendezvous")
		b.log.Print("building tegen-rendezvous")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.program,
			"./cmd/tegen-rendezvous").CombinedOutput(); err != nil {
			return fmt.Errorf("building tegen-rendezvous: %w\n%s", err, out)
		}
	}
	b.etcd, err = exec.LookPath("etcd")
	if err == nil {
		help, _ := exec.CommandContext(ctx, b.etcd, "--help").CombinedOutput()
		if !strings.Contains(string(help), "enable-v2 ") {
			b.etcd = ""
		}
	}
	if b.etcd == "" {
		b.log.Print("no etcd with --enable-v2 in PATH: the companion is measured alone")
	}
	return nil
}

func (b *bench) close() { _ = os.RemoveAll(b.dir) }

// server is a process that clients use.
type server struct {
	kind     string
	endpoint string // host:port
	cmd      *exec.Cmd
	log      string
	data     string
}

// start runs a server on empty data, and waits until it answers.
func (b *bench) start(ctx context.Context, kind string) (*server, error) {
	data, err := os.MkdirTemp(b.dir, "data-")
	if err != nil {
		return nil, err
	}
	return b.startOn(ctx, kind, data)
}

// startOn runs a server on data that may be there.
func (b *bench) startOn(ctx context.Context, kind, data string) (*server, error) {
	free, err := ports.Addresses(3)
	if err != nil {
		return nil, err
	}
	s := &server{kind: kind, endpoint: free[0], log: data + ".log", data: data}
	url := "http://" + free[0]
	switch kind {
	case companion:
		command := []string{
			b.program, "serve", "--data-dir=" + data, "--listen-client=" + free[0], "--advertise-client-urls=" + url,
			"--listen-c10d=" + free[1], "--listen-status=" + free[2],
		}
		if b.within != nil {
			command = b.within.inside(command)
		}
		s.cmd = exec.CommandContext(ctx, command[0], command[1:]...)
	case gateway:
		s.cmd = exec.CommandContext(ctx, b.program, "serve", "--store=etcd", "--endpoints=http://"+b.behind,
			"--listen-client="+free[0], "--advertise-client-urls="+url, "--listen-c10d="+free[1],
			"--listen-status="+free[2])
	case etcdV3:
		s.cmd = exec.CommandContext(ctx, os.Args[0], storeCommand, data, free[0])
	case etcdV2:
		s.cmd = exec.CommandContext(ctx, b.etcd, "--data-dir="+data, "--listen-client-urls="+url,
			"--advertise-client-urls="+url,
			"--listen-peer-urls=http://"+free[1], "--initial-advertise-peer-urls=http://"+free[1],
			"--initial-cluster=default=http://"+free[1], "--enable-v2")
	}
	out, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", kind, err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if answers(ctx, url+"/version") {
			return s, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			text, _ := os.ReadFile(s.log)
			s.stop()
			return nil, fmt.Errorf("%s does not answer: %s", kind, text[max(0, len(text)-2000):])
		}
	}
}

func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// processes are the ids of the server and of the processes it has started.
func (s *server) processes() []string {
	pid := fmt.Sprint(s.cmd.Process.Pid)
	var children []byte
	threads, _ := filepath.Glob("/proc/" + pid + "/task/*/children") // each lists those that it started
	for _, path := range threads {
		if text, err := os.ReadFile(path); err == nil { // else the thread has ended
			children = append(append(children, ' '), text...)
		}
	}
	return append([]string{pid}, strings.Fields(string(children))...)
}

// memory is the resident memory of the server's processes in MiB: now, and the most that each ever had.
func (s *server) memory() (now, most int, err error) {
	for _, pid := range s.processes() {
		text, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			return 0, 0, err
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 2 {
				continue
			}
			n, _ := strconv.Atoi(f[1])
			switch f[0] {
			case "VmRSS:":
				now += n / 1024
			case "VmHWM:":
				most += n / 1024
			}
		}
	}
	return now, most, nil
}

// tick is what /proc counts a process's time in (proc_pid_stat(5)), as Linux has it on every machine that Go runs on.
const tick = 10 * time.Millisecond

// cpu is what the server's processes have taken of the processor.
func (s *server) cpu() (all time.Duration, err error) {
	for _, pid := range s.processes() {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), ") ") // the program's name may have spaces
		f := strings.Fields(rest)
		if len(f) < 13 {
			return 0, fmt.Errorf("the times of process %s: %q", pid, text)
		}
		for _, ticks := range f[11:13] { // of the program, and of the kernel for it
			n, err := strconv.Atoi(ticks)
			if err != nil {
				return 0, fmt.Errorf("the times of process %s: %w", pid, err)
			}
			all += time.Duration(n) * tick
		}
	}
	return all, nil
}

// storeCommand makes this program an etcd.
const storeCommand = "etcd"

func serveStore(args []string) error {
	s, err := store.Embedded{Dir: args[0], Listen: args[1]}.Open(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	select {} // until it is killed
}
