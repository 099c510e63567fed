package keys

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// watcher is what torch does with python-etcd: it waits, and takes only a time-out for an answer.
const watcher = `
import sys, etcd
c = etcd.Client(host="127.0.0.1", port=int(sys.argv[1]), allow_reconnect=True)
print("index", c.get("/k").etcd_index, flush=True)
r = c.watch("/k", index=int(c.get("/k").etcd_index) + 1, timeout=30)
print(r.action, r.value, flush=True)
`

// TestPythonClient: a wait of python-etcd outlives the end of the process it waits at, where another one serves the
// same address, as behind a Service.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	python := "/usr/bin/python3"
	if err := exec.CommandContext(t.Context(), python, "-c", "import etcd").Run(); err != nil {
		t.Skip("no python-etcd: nobody tries the client that torch has")
	}
	s := embedded(t)
	a := open(t, s, Options{})
	put(t, a.Keys, "/k", Put{Value: "1"})
	var behind atomic.Pointer[Keys]
	behind.Store(a.Keys)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		behind.Load().Handler().ServeHTTP(w, r)
	}))
	defer service.Close()
	_, number, err := net.SplitHostPort(service.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(soon(t), python, "-c", watcher, number)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for ctx := soon(t); a.Waits() == 0 && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
	b, err := Open(t.Context(), s.Client, Options{Prefix: prefix(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	behind.Store(b)
	a.Keys.Close()
	for ctx := soon(t); b.Waits() == 0 && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
	put(t, b, "/k", Put{Value: "2"})
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = lines.Text()
	}
	if err := cmd.Wait(); err != nil || said != "set 2" {
		t.Errorf("the client said %q, %v\n%s", said, err, log.String())
	}
}
