package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous/internal/cli"
	"github.com/tegen-dev/tegen/rendezvous/server"
	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// proxied is a client of the TCPStore that a proxy has for its command.
type proxied struct {
	t *testing.T
	net.Conn
	end func() // of the command, which waits for its input
	cmd *exec.Cmd
}

// startProxy starts a proxy whose command waits, and connects as torch would.
func startProxy(t *testing.T, at, run string) proxied {
	t.Helper()
	return startProxyBy(t, []string{"PET_RDZV_ID=" + run}, "proxy", "--endpoints", at, "--")
}

// startProxyBy is startProxy by words of its own, before the command.
func startProxyBy(t *testing.T, env []string, words ...string) proxied {
	t.Helper()
	words = append(words, "sh", "-c", `echo "$PET_RDZV_ENDPOINT"; exec cat`)
	cmd := exec.CommandContext(t.Context(), os.Args[0], words...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", strings.TrimSpace(address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	p := proxied{t, c, func() { _ = in.Close() }, cmd}
	p.send([]byte("\x00\xce\xf7\x85\x3c"))
	return p
}

func (p proxied) send(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// keyed is an operation's key.
func keyed(op tcpstore.Op, key string) []byte {
	return append(binary.LittleEndian.AppendUint64([]byte{byte(op)}, uint64(len(key))), key...)
}

func (p proxied) askAdd(key string) {
	p.send(binary.LittleEndian.AppendUint64(keyed(tcpstore.Add, key), 1))
}

func (p proxied) expect(want int64) {
	p.t.Helper()
	got := make([]byte, 8)
	if _, err := io.ReadFull(p, got); err != nil {
		p.t.Fatal(err)
	}
	if n := int64(binary.LittleEndian.Uint64(got)); n != want {
		p.t.Errorf("got %d, want %d", n, want)
	}
}

// TestProxies: proxies outlive a companion that is killed and comes back with its data, without a listener of any other
// protocol and without credentials.
func TestProxies(t *testing.T) {
	t.Parallel()
	dir, at := t.TempDir(), ports.Address(t)
	flags := []string{"--data-dir", dir, "--listen-client=", "--listen-c10d=", "--listen-proxies", at}
	p := serve(t, flags...)
	expectReady(t, p)
	a, b := startProxy(t, at, "imagenet"), startProxy(t, at, "imagenet")
	a.askAdd("/n")
	a.expect(1)
	b.askAdd("/n")
	b.expect(2)
	until(t, func() bool {
		want := []server.Run{{ID: "imagenet", API: "proxies", Connections: 2, Keys: 4}}
		return cmp.Equal(want, runs(t, p))
	})
	_, body := ask(t, http.MethodGet, p.status, "/metrics")
	for _, line := range []string{
		`tegen_rendezvous_requests_total{action="txn",api="proxies",code="OK"}`,
		`tegen_rendezvous_request_seconds_count{action="txn",api="proxies"}`,
		`tegen_rendezvous_connections{api="proxies"} 2`, `tegen_rendezvous_runs{api="proxies"} 1`,
		`tegen_rendezvous_keys{api="proxies"} 4`, "tegen_rendezvous_ready 1",
	} {
		if !strings.Contains(body, line) {
			t.Errorf("no %s in\n%s", line, body)
		}
	}
	b.send(keyed(tcpstore.Get, "/late"))
	p.signal(syscall.SIGKILL)
	p.exit()
	a.askAdd("/n")
	p = serve(t, flags...)
	a.expect(3)
	a.send(fmt.Append(keyed(tcpstore.Set, "/late"), "\x01\x00\x00\x00\x00\x00\x00\x00v"))
	b.expect(1) // the length of its value
	for _, one := range []proxied{a, b} {
		one.end()
		if err := one.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	until(t, func() bool { return len(runs(t, p)) == 0 })
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}
