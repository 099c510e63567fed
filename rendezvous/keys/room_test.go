package keys

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// ask sends a request by a connection of its own whose answer nobody reads.
func (d endpoint) ask(t *testing.T, request string) {
	t.Helper()
	u, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(request, "\n")
	if _, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: %s\r\n%s\r\n", head, u.Host, rest); err != nil {
		t.Fatal(err)
	}
}

// TestUnreadBodies: a request whose body is not read takes no room for it, whatever it says of its length.
func TestUnreadBodies(t *testing.T) {
	t.Parallel()
	d := open(t, embedded(t), Options{})
	for _, request := range []string{
		"GET /v2/keys/none?wait=true", "GET /v2/keys/none", "DELETE /v2/keys/none", "POST /v2/keys/none",
		"PUT /v2/keys/none?wait=true",
	} {
		t.Run(request, func(t *testing.T) {
			method, _, _ := strings.Cut(request, " ")
			for range 8 {
				if length := 5592405; method != http.MethodPut {
					d.ask(t, fmt.Sprintf("%s\nContent-Length: %d\r\n", request, length))
				} else {
					d.ask(t, request+"\nContent-Length: 0\r\n")
				}
			}
			time.Sleep(100 * time.Millisecond)
			begin := time.Now()
			r := d.do(t, http.MethodPut, "/v2/keys/x", "value="+strings.Repeat("y", 5000))
			if took := time.Since(begin); r.Status >= 300 || took > d.o.ClientTimeout/2 {
				t.Errorf("another's write: %d after %s: %s", r.Status, took, r.Body)
			}
		})
	}
}

// TestBodiesThatDoNotCome: nobody has room while a body is awaited that is not asked for.
func TestBodiesThatDoNotCome(t *testing.T) {
	t.Parallel()
	d := open(t, embedded(t), Options{MaxAnswer: 64 << 10})
	put(t, d.Keys, "/k", Put{Value: strings.Repeat("x", 20_000)})
	for _, request := range []string{"GET /v2/keys/k", "DELETE /v2/keys/k?prevValue=q"} {
		t.Run(request, func(t *testing.T) {
			d.ask(t, request+"\nContent-Length: 1000\r\n")
			time.Sleep(100 * time.Millisecond)
			begin := time.Now()
			r := d.do(t, http.MethodGet, "/v2/keys/k", "")
			if took := time.Since(begin); r.Status != http.StatusOK || took > d.o.ClientTimeout/2 {
				t.Errorf("another's reading: %d after %s", r.Status, took)
			}
		})
	}
}

// TestRoomLate: a write without a body that waits for room for longer than the deadline that its connection came with
// is done once there is room. The deadline would end the reading that net/http does behind its back, which takes the
// client for gone and cancels all later requests of the connection.
func TestRoomLate(t *testing.T) {
	t.Parallel()
	d := open(t, embedded(t), Options{MaxAnswer: 64 << 10})
	put(t, d.Keys, "/k", Put{Value: strings.Repeat("x", 6000)})
	const limit = time.Second
	came := make(chan time.Time, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		until := time.Now().Add(limit)
		if err := http.NewResponseController(w).SetReadDeadline(until); err != nil {
			t.Error(err)
		}
		came <- until
		d.Handler().ServeHTTP(w, r)
	}))
	defer s.Close()
	if err := d.small.left.Acquire(soon(t), d.small.all); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer d.small.left.Release(d.small.all)
		time.Sleep(time.Until(<-came) + limit/4)
	}()
	if r := do(t, s.URL, http.MethodPut, "/v2/keys/k?value=y", ""); r.Status != http.StatusOK {
		t.Errorf("the write is answered %d: %s", r.Status, r.Body)
	}
}

// TestUnreadAnswers: answers that nobody reads take no more memory than there is for them, whatever the request was,
// and counted as the text that they are: of a control character JSON makes six bytes. The answers of any one of these
// kinds would take more than all may.
func TestUnreadAnswers(t *testing.T) {
	const clients, most = 40, 32 << 20
	d := open(t, embedded(t), Options{MaxAnswer: most})
	put(t, d.Keys, "/k", Put{Value: strings.Repeat("\x01", 1<<20)})
	before := inUse()
	for _, request := range []string{
		"GET /v2/keys/k",
		"GET /v2/keys/?recursive=true",
		"PUT /v2/keys/k?prevValue=q&value=w\nContent-Length: 0\r\n",
		"PUT /v2/keys/k?prevExist=true&refresh=true&ttl=100\nContent-Length: 0\r\n",
		"DELETE /v2/keys/k?prevValue=q",
	} {
		for range clients {
			d.ask(t, request)
		}
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if more := inUse() - before; more > 3*most { // the standard library writes a text, and copies it
			t.Fatalf("clients that do not read take %d MiB, and all of them may take %d", more>>20, most>>20)
		}
	}
}

// TestTextSize: what is counted is never less than the text, and for the values of torch it is the text.
func TestTextSize(t *testing.T) {
	for _, c := range []struct {
		value string
		slack int
	}{
		{"gASVBgAAAAA+/=", 0},
		{`{"status": "final"}`, 0},
		{"\x00\x01\x1f<>&\x7f", 0},
		{"\u2028\u2029é\U0001f600\ufffd", 3},
		{"\xff\xc3", 0},
		{"\n\t\r", 12},
	} {
		b, err := json.Marshal(c.value)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := textSize(c.value), len(b)-2; got < want || got > want+c.slack {
			t.Errorf("%q: got %d, want %d to %d", c.value, got, want, want+c.slack)
		}
	}
	value := strings.Repeat("\x01", 1000)
	n := &Node{
		Key: "/k", Value: &value, TTL: 1 << 40, ModifiedIndex: 1 << 60, CreatedIndex: 1 << 60,
		Expiration: new(time.Now()),
	}
	for _, v := range []interface{ textSize() int }{
		&Event{Action: actionCAD, Node: n, Prev: n},
		&Event{Action: actionGet, Node: &Node{Dir: true, Nodes: []*Node{n, n}}},
		fail(CodeTTL, value, 1<<60),
	} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.textSize(); got < len(b) || got > len(b)+3*nodeText {
			t.Errorf("%.100s: got %d, want %d", b, got, len(b))
		}
	}
}
