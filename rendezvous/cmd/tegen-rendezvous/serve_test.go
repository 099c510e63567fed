package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
	"github.com/tegen-dev/tegen/rendezvous/server"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// process is a command that serves.
type process struct {
	t                    *testing.T
	cmd                  *exec.Cmd
	client, c10d, status string
	mu                   sync.Mutex
	log                  bytes.Buffer
	ended                chan struct{} // closed once it has
}

// serve starts the command with free ports and waits until it says that it serves.
func serve(t *testing.T, args ...string) *process {
	t.Helper()
	return serveIn(t, "", nil, args...)
}

// serveIn is serve in a directory, with more variables.
func serveIn(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	args = append([]string{
		"serve", "--listen-client=127.0.0.1:0", "--listen-c10d=127.0.0.1:0", "--listen-status=127.0.0.1:0",
	}, args...)
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0], args...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), env...)
	out, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	serving := make(chan map[string]any, 1)
	go func() {
		defer close(p.ended)
		for in := bufio.NewScanner(out); in.Scan(); {
			p.mu.Lock()
			fmt.Fprintln(&p.log, in.Text())
			p.mu.Unlock()
			line := map[string]any{}
			if json.Unmarshal(in.Bytes(), &line) == nil && line["msg"] == "serving" {
				serving <- line
			}
		}
		_ = p.cmd.Wait() // the state says how it ended
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // perhaps it has ended
		<-p.ended
		if t.Failed() {
			t.Logf("%v\n%s", args, p.logged())
		}
	})
	select {
	case line := <-serving:
		p.client, p.c10d, p.status = line["client"].(string), line["c10d"].(string), line["status"].(string)
	case <-p.ended:
		t.Fatal("it ended")
	case <-time.After(30 * time.Second):
		t.Fatal("it does not serve")
	}
	return p
}

func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the end and returns the code, -1 for a signal.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		p.t.Fatal("it does not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// ask sends a request with a form, and returns code and body.
func ask(t *testing.T, method, address, path string, form ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	values := url.Values{}
	for i := 0; i+1 < len(form); i += 2 {
		values.Set(form[i], form[i+1])
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, strings.NewReader(values.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

func expect(t *testing.T, want int, code int, body string) string {
	t.Helper()
	if code != want {
		t.Fatalf("got %d, want %d: %s", code, want, body)
	}
	return body
}

// torchAgent is an open connection to the TCPStore that has begun a run.
func torchAgent(t *testing.T, address, run string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	const empty = "Y2FuaW1hZGFt"
	message := []byte("\x00\xce\xf7\x85\x3c\x0d1234\x02")
	for _, field := range []string{"/torch.rendezvous." + run, "", empty} {
		message = append(binary.LittleEndian.AppendUint64(message, uint64(len(field))), field...)
	}
	if _, err := c.Write(message); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4+8+len(empty))
	if _, err := io.ReadFull(c, got); err != nil || string(got[12:]) != empty {
		t.Fatalf("got %q, %v", got, err)
	}
	return c
}

const base = "/v2/keys/torchelastic/p2p/run_imagenet"

// TestServe uses all APIs, kills the process, goes on with another, and ends that in order.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, "--data-dir", dir)
	expectReady(t, p)
	mkdirs(t, p.client)
	final := `{"status": "final", "version": "3", "participants": [0, 1], "keep_alives": [], "num_workers_waiting": 1}`
	code, body := ask(t, http.MethodPut, p.client, base+"/rdzv/active_version", "value", final, "prevExist", "false")
	expect(t, http.StatusCreated, code, body)
	c := torchAgent(t, p.c10d, "resnet")
	want := []server.Run{
		{
			ID: "imagenet", API: "etcd-v2", Path: "/torchelastic/p2p/run_imagenet", Version: "3", State: "final",
			Participants: 2, Waiting: 1,
		},
		{ID: "resnet", API: "c10d", State: "joining", Connections: 1, Keys: 1},
	}
	if diff := cmp.Diff(want, runs(t, p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	code, body = ask(t, http.MethodGet, p.status, "/metrics")
	for _, line := range []string{
		`tegen_rendezvous_requests_total{action="create",api="etcd-v2",code="201"} 2`,
		`tegen_rendezvous_requests_total{action="COMPARE_SET",api="c10d",code=""} 1`,
		`tegen_rendezvous_runs{api="etcd-v2"} 1`, `tegen_rendezvous_runs{api="c10d"} 1`,
		`tegen_rendezvous_connections{api="c10d"} 1`,
		`tegen_rendezvous_keys{api="c10d"} 1`, `tegen_rendezvous_unsent_bytes{api="c10d"} 0`,
		`tegen_rendezvous_ready 1`, "tegen_rendezvous_store_full 0", `tegen_rendezvous_waits{api="etcd-v2"} 0`,
		"tegen_rendezvous_build_info{",
		`tegen_rendezvous_request_seconds_count{action="create",api="etcd-v2"} 2`,
	} {
		if !strings.Contains(expect(t, http.StatusOK, code, body), line) {
			t.Errorf("no %s in\n%s", line, body)
		}
	}
	p.signal(syscall.SIGKILL)
	p.exit()
	_ = c.Close()

	p = serve(t, "--data-dir", dir)
	code, body = ask(t, http.MethodGet, p.client, base+"/rdzv/active_version")
	if !strings.Contains(expect(t, http.StatusOK, code, body), `\"version\": \"3\"`) {
		t.Errorf("got %s", body)
	}
	drains(t, p)
}

func expectReady(t *testing.T, p *process) {
	t.Helper()
	for _, path := range []string{"/healthz", "/readyz"} {
		code, body := ask(t, http.MethodGet, p.status, path)
		expect(t, http.StatusOK, code, body)
	}
}

func mkdirs(t *testing.T, address string) {
	t.Helper()
	code, body := ask(t, http.MethodPut, address, base, "dir", "true", "prevExist", "false", "ttl", "7200")
	expect(t, http.StatusCreated, code, body)
}

// runs are those of /runs, without when they changed.
func runs(t *testing.T, p *process) []server.Run {
	t.Helper()
	code, body := ask(t, http.MethodGet, p.status, "/runs")
	var got struct{ Runs []server.Run }
	if err := json.Unmarshal([]byte(expect(t, http.StatusOK, code, body)), &got); err != nil {
		t.Fatal(err)
	}
	for i := range got.Runs {
		if at := got.Runs[i].LastChange; at == nil || time.Since(*at) > time.Hour {
			t.Errorf("run %q changed %v", got.Runs[i].ID, at)
		}
		got.Runs[i].LastChange = nil
	}
	return got.Runs
}

// drains ends a process while an agent is connected and another client waits.
func drains(t *testing.T, p *process) {
	t.Helper()
	c := torchAgent(t, p.c10d, "resnet")
	polled := make(chan error, 1)
	go func() {
		r, err := http.Get("http://" + p.client + base + "?wait=true&recursive=true")
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
		polled <- err
	}()
	until(t, func() bool {
		_, body := ask(t, http.MethodGet, p.status, "/metrics")
		return strings.Contains(body, `tegen_rendezvous_waits{api="etcd-v2"} 1`)
	})
	p.signal(syscall.SIGTERM)
	until(t, func() bool {
		code, _ := ask(t, http.MethodGet, p.status, "/readyz")
		return code == http.StatusServiceUnavailable
	})
	code, body := ask(t, http.MethodGet, p.client, base) // which goes on meanwhile
	expect(t, http.StatusOK, code, body)
	select {
	case <-p.ended:
		t.Fatal("it did not wait for the run")
	default:
	}
	_ = c.Close()
	if code := p.exit(); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
	if err := <-polled; err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // either makes clients ask again
		t.Errorf("the long poll: %v", err)
	}
}

// until waits for what must come true.
func until(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came true")
		}
	}
}

// TestSignals: a drain has an end, by time or by a second signal, and neither is an error.
func TestSignals(t *testing.T) {
	t.Parallel()
	t.Run("time", func(t *testing.T) {
		t.Parallel()
		p := serve(t, "--data-dir", t.TempDir(), "--drain-timeout=100ms")
		torchAgent(t, p.c10d, "resnet")
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != cli.ExitOK || !strings.Contains(p.logged(), "runs were cut off") {
			t.Errorf("exit code %d", code)
		}
	})
	t.Run("again", func(t *testing.T) {
		t.Parallel()
		p := serve(t, "--data-dir", t.TempDir(), "--drain-timeout=1h")
		torchAgent(t, p.c10d, "resnet")
		p.signal(syscall.SIGTERM)
		until(t, func() bool { return strings.Contains(p.logged(), "waiting for runs to end") })
		p.signal(os.Interrupt)
		if code := p.exit(); code != cli.ExitOK || !strings.Contains(p.logged(), "second signal received") {
			t.Errorf("exit code %d", code)
		}
	})
}

// TestReplicas: two processes before one etcd serve the same keys, and one of them may die.
func TestReplicas(t *testing.T) {
	t.Parallel()
	address := ports.Address(t)
	etcd, err := store.Embedded{Dir: t.TempDir(), Listen: address}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceValue(etcd.Close)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	a := serve(t, "--store=etcd", "--endpoints=http://"+address, "--advertise-client-urls=http://a:1,http://b:2")
	b := serveIn(t, "", []string{
		"TEGEN_RENDEZVOUS_STORE=etcd", "TEGEN_RENDEZVOUS_ENDPOINTS=http://" + address,
		"TEGEN_RENDEZVOUS_PORT=tcp://10.0.0.1:2379", // as Kubernetes does
	})
	mkdirs(t, a.client)
	a.signal(syscall.SIGKILL)
	a.exit()
	code, body := ask(t, http.MethodPut, b.client, base, "dir", "true", "prevExist", "false")
	expect(t, http.StatusPreconditionFailed, code, body)
	go func() { _ = stop() }() // it waits for its clients to go; Cleanup looks at the error
	until(t, func() bool {
		code, _ := ask(t, http.MethodGet, b.status, "/readyz")
		return code == http.StatusServiceUnavailable
	})
	code, body = ask(t, http.MethodGet, b.status, "/healthz")
	expect(t, http.StatusOK, code, body)
}

// TestUsage: what is wrong with a command line is said in a line, with the code for it.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"server"}, cli.ExitUsage, `unknown command "server"; did you mean "serve"?`},
		{[]string{"run", "--nnodes=2", "--", "a"}, cli.ExitUsage, "use 'tegen-rendezvous proxy -- torchrun …' instead"},
		{[]string{"serve", "now"}, cli.ExitUsage, `serve takes no arguments, not "now"`},
		{[]string{"serve", "--sotre=etcd"}, cli.ExitUsage, "unknown flag: --sotre"},
		{[]string{"serve", "--store=redis"}, cli.ExitUsage, `--store: "redis" is neither embedded nor etcd`},
		{[]string{"serve", "--store=etcd"}, cli.ExitUsage, "--store=etcd needs --endpoints"},
		{[]string{"serve", "--endpoints=a"}, cli.ExitUsage, "are for --store=etcd"},
		{[]string{"serve", "--store=etcd", "--endpoints=a", "--user=root"}, cli.ExitUsage, "--user needs a password"},
		{
			[]string{"serve", "--store=etcd", "--endpoints=a", "--user=root", "--password-file=none"},
			cli.ExitError,
			"reading the password for etcd: open none",
		},
		{[]string{"serve", "--listen-client=", "--listen-c10d="}, cli.ExitUsage, "there is nothing to serve"},
		{[]string{"serve", "--tls-cert=a"}, cli.ExitUsage, "a certificate needs its key"},
		{[]string{"serve", "--tls-client-ca=a"}, cli.ExitUsage, "a server that has its own"},
		{[]string{"serve", "--log-format=xml"}, cli.ExitUsage, `--log-format: "xml" is neither json nor text`},
		{[]string{"serve", "--log-level=loud"}, cli.ExitUsage, "--log-level: "},
		{[]string{"serve", "--listen-proxies=127.0.0.1:99999999"}, cli.ExitError, "opening the proxies listener: "},
		{[]string{"serve", "--max-keys=-1"}, cli.ExitUsage, "--max-keys: -1 is less than 0"},
		{[]string{"serve", "--run-ttl=500ms"}, cli.ExitUsage, "--run-ttl: 500ms is less than a second"},
		{[]string{"serve", "--run-ttl=-1h"}, cli.ExitUsage, "--run-ttl: -1h0m0s is less than a second"},
		{[]string{"serve", "--listen-client=127.0.0.1:99999999"}, cli.ExitError, "opening the etcd-v2 listener: "},
	} {
		var out, msg bytes.Buffer
		code := run(c.args, strings.NewReader(""), &out, &msg)
		if code != c.code || !strings.Contains(msg.String(), c.want) || out.Len() > 0 {
			t.Errorf("%v: code %d, %q, want %d, %q", c.args, code, msg.String(), c.code, c.want)
		}
	}
	t.Setenv("TEGEN_RENDEZVOUS_RUN_TTL", "long")
	var msg bytes.Buffer
	if code := run([]string{"serve"}, nil, io.Discard, &msg); code != cli.ExitUsage ||
		!strings.Contains(msg.String(), "TEGEN_RENDEZVOUS_RUN_TTL: ") {
		t.Errorf("code %d, %q", code, msg.String())
	}
}

// TestHelp: help, version and completion go to standard output.
func TestHelp(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "  serve        Serve rendezvous"},
		{"serve --help", "torchrun --rdzv_backend=c10d"},
		{"version", "tegen-rendezvous "},
		{"completion bash", "__start_tegen-rendezvous"},
		{"__complete serve --store e", "embedded\netcd\n"},
	} {
		var out, msg bytes.Buffer
		if code := run(strings.Fields(c.args), strings.NewReader(""), &out, &msg); code != cli.ExitOK ||
			!strings.Contains(out.String(), c.want) {
			t.Errorf("%s: code %d, %s%s", c.args, code, out.String(), msg.String())
		}
	}
}

// TestLinks: the binary has nothing of Kubernetes in it.
func TestLinks(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("%v: %s", err, failed.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 100 {
		t.Fatalf("%d packages: this test looks at the wrong program", len(deps))
	}
	for _, path := range deps {
		if strings.HasPrefix(path, "k8s.io/") || strings.HasPrefix(path, "github.com/tegen-dev/tegen/schema") ||
			strings.HasPrefix(path, "github.com/tegen-dev/tegen/generators") || path == "testing" {
			t.Errorf("it links %s", path)
		}
	}
}
