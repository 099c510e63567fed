package keys

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func as(err error, e **Error) bool { return errors.As(err, e) }

// TestHistory: a wait may begin at an event that is over, but not at one that is forgotten, nor at one that the process
// could not know of.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := embedded(t)
	d := open(t, s, Options{History: 10})
	first := put(t, d.Keys, "/k", Put{Value: "0"})
	yes := true
	put(t, d.Keys, "/k", Put{TTL: seconds(100), Refresh: true, PrevExist: &yes})
	second := put(t, d.Keys, "/k", Put{Value: "1"})
	if e, err := d.Wait(soon(t), "/k", false, first.Index+1); err != nil || e.Index != second.Index {
		t.Errorf("the event after the renewal: %v, %v", e, err)
	}
	for i := range 10 {
		put(t, d.Keys, "/other", Put{Value: fmt.Sprint(i)})
	}
	if _, err := d.Wait(soon(t), "/k", false, first.Index); refused(err) != CodeCleared {
		t.Errorf("a wait from an event that is forgotten: %v", err)
	}
	if r := d.do(t, "GET", fmt.Sprintf("/v2/keys/k?wait=true&waitIndex=%d", first.Index), ""); r.Status != 400 ||
		!strings.Contains(r.Body, `"errorCode":401`) {
		t.Errorf("the same by HTTP: %+v", r)
	}
	late := open(t, s, Options{History: 2})
	if _, err := late.Wait(soon(t), "/k", false, first.Index); refused(err) != CodeCleared {
		t.Errorf("a wait from before the process began: %v", err)
	}
}

// TestEndOfProcess: a process that ends cuts off its waits, and the same wait at another one misses nothing. A client
// that goes takes its wait with it.
func TestEndOfProcess(t *testing.T) {
	t.Parallel()
	s := embedded(t)
	a, b := open(t, s, Options{}), open(t, s, Options{})
	from := put(t, a.Keys, "/k", Put{}).Index + 1
	target := fmt.Sprintf("/v2/keys/k?wait=true&waitIndex=%d", from)
	ctx, gone := context.WithCancel(t.Context())
	r := get(ctx, t, a.URL+target)
	defer r.Body.Close()
	if n := a.Waits(); n != 1 {
		t.Errorf("%d requests wait, of one", n)
	}
	gone()
	for ctx := soon(t); a.Waits() != 0; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("the wait outlives its client")
		}
	}
	r = get(soon(t), t, a.URL+target)
	defer r.Body.Close()
	a.Keys.Close()
	if _, err := bufio.NewReader(r.Body).ReadString('\n'); err == nil || err.Error() != "unexpected EOF" {
		t.Errorf("the end of the process ends a wait with %v, which a client does not take for a lost connection", err)
	}
	put(t, b.Keys, "/k", Put{Value: "1"})
	if r := b.do(t, "GET", target, ""); !strings.Contains(r.Body, `"value":"1"`) {
		t.Errorf("the wait goes on elsewhere with %+v", r)
	}
	if _, err := a.Get(soon(t), "/k", false); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed one returns %v", err)
	}
}

// TestRestart: a store that ends and begins anew has lost nothing: keys, their indexes, and what is left of their time.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := embeddedIn(t, dir)
	d := open(t, s, Options{})
	put(t, d.Keys, "/run", Put{Dir: true, TTL: seconds(7200)})
	put(t, d.Keys, "/run/dies", Put{Dir: true, TTL: seconds(1)})
	put(t, d.Keys, "/run/dies/with", Put{})
	k := put(t, d.Keys, "/run/k", Put{Value: "1"})
	d.close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond) // nobody is there when it is over
	s = embeddedIn(t, dir)
	defer s.Close() //nolint:errcheck // the test is over
	d = open(t, s, Options{})
	defer d.close()
	e, err := d.Get(soon(t), "/run/k", false)
	if err != nil || *e.Node.Value != "1" || e.Node.ModifiedIndex != k.Index {
		t.Errorf("after a restart there is %+v, %v", e, err)
	}
	if e, err := d.Wait(soon(t), "/run/dies/with", false, k.Index+1); err != nil || e.Action != "expire" {
		t.Errorf("what was over while nobody was there: %+v, %v", e, err)
	}
	put(t, d.Keys, "/run/dies", Put{Dir: true})
	if e, err := d.Get(soon(t), "/run/dies", true); err != nil || e.Node.Nodes != nil {
		t.Errorf("a new directory has the children of the old one: %+v, %v", e, err)
	}
	if e, err := d.Get(soon(t), "/run", false); err != nil || e.Node.TTL < 7000 || e.Node.TTL > 7200 {
		t.Errorf("of a TTL of 7200 there is left %+v, %v", e, err)
	}
}

// TestRenewal: renewing keeps a key, wakes nobody, and the last one not to come ends it.
func TestRenewal(t *testing.T) {
	t.Parallel()
	d := open(t, embedded(t), Options{})
	first := put(t, d.Keys, "/k", Put{Value: "v", TTL: seconds(1)})
	yes := true
	var last *Event
	for range 8 {
		last = put(t, d.Keys, "/k", Put{TTL: seconds(1), Refresh: true, PrevExist: &yes})
		time.Sleep(300 * time.Millisecond)
	}
	e, err := d.Wait(soon(t), "/k", false, first.Index+1)
	if err != nil || e.Action != "expire" || e.Index <= last.Index || *e.Prev.Value != "v" {
		t.Errorf("after renewals a wait returns %+v, %v", e, err)
	}
}

// TestLimits: each has an error of its own, below 500.
func TestLimits(t *testing.T) {
	t.Parallel()
	d := open(t, embedded(t), Options{MaxKey: 20, MaxValue: 10, MaxKeys: 3, MaxWaits: 1})
	for _, c := range []struct {
		call
		status int
	}{
		{call{"PUT", "/a/b/c", "value=0123456789"}, 201},
		{call{"PUT", "/a/b/c", "value=01234567890"}, 413},
		{call{"PUT", "/a/b/d", ""}, 403},
		{call{"PUT", "/a/b/c", ""}, 200},
		{call{"GET", "/" + strings.Repeat("x", 20), ""}, 414},
		{call{"PUT", "/a/b/c", "value=" + strings.Repeat("x", 10000)}, 413},
		{call{"POST", "/a", ""}, 501},
		{call{"GET", "/a?wait=true&stream=true", ""}, 501},
	} {
		if r := d.do(t, c.method, "/v2/keys"+c.target, c.form); r.Status != c.status {
			t.Errorf("%s %s: %+v, not %d", c.method, c.target, r, c.status)
		}
	}
	if r := d.do(t, "GET", "/v2/keys"+strings.Repeat("/x", 9), ""); r.Status != 404 {
		t.Errorf("a deep key: %+v", r)
	}
	w, err := d.Watch(soon(t), "/a", false, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if r := d.do(t, "GET", "/v2/keys/a?wait=true", ""); r.Status != 429 {
		t.Errorf("a second wait: %+v", r)
	}
}

// TestRunLimits: a run leaves half of the keys and bytes to the others, whether it adds keys or makes values longer.
func TestRunLimits(t *testing.T) {
	t.Parallel()
	d := open(t, embedded(t), Options{MaxKeys: 12, MaxBytes: 400})
	long := "value=" + strings.Repeat("x", 100)
	for _, c := range []struct {
		call
		status int
	}{
		{call{"PUT", "/t/run_a/1", ""}, 201}, // with /t and run_a three keys, two of the run's
		{call{"PUT", "/t/run_a/2", ""}, 201},
		{call{"PUT", "/t/run_a/deep/3", ""}, 201},
		{call{"PUT", "/t/run_a/4", ""}, 201}, // its sixth
		{call{"PUT", "/t/run_a/5", ""}, 403},
		{call{"PUT", "/t/run_a/4", long}, 200},
		{call{"PUT", "/t/run_a/3", long}, 403},
		{call{"PUT", "/t/run_a/2", long}, 403},
		{call{"PUT", "/t/run_a/4", long}, 200},
		{call{"PUT", "/t/run_b/1", long}, 201},
		{call{"DELETE", "/t/run_a/deep?recursive=true", ""}, 200},
		{call{"PUT", "/t/run_a/5", ""}, 201},
		{call{"DELETE", "/t/run_a?recursive=true", ""}, 200},
		{call{"PUT", "/t/run_a/1", long}, 201},
		{call{"PUT", "/t/run_c/1", long}, 201},
		{call{"PUT", "/plain", long}, 403}, // beyond what all may take
		{call{"PUT", "/plain", ""}, 201},
		{call{"PUT", "/plain", long}, 403},
	} {
		if r := d.do(t, c.method, "/v2/keys"+c.target, c.form); r.Status != c.status {
			t.Errorf("%s %s: %+v, not %d", c.method, c.target, r, c.status)
		}
	}
}

// TestRunLimitsOfV2: so does a run of backend etcd-v2, whose keys have their run in their names.
func TestRunLimitsOfV2(t *testing.T) {
	t.Parallel()
	d := open(t, embedded(t), Options{MaxBytes: 8000})
	long := strings.Repeat("x", 1000)
	last := ""
	for i := range 8 {
		_, err := d.Put(t.Context(), publishedAt("b", fmt.Sprintf("0/%d", i)), Put{Value: long})
		if err != nil {
			last = err.Error()
			break
		}
	}
	if !strings.Contains(last, `run "b"`) {
		t.Errorf("run b could take the others' room: %q", last)
	}
	put(t, d.Keys, publishedAt("other.1", "0/a"), Put{Value: long})
	put(t, d.Keys, torchStates+"other.1", Put{Value: long})
	put(t, d.Keys, "/p/run_c/k", Put{Value: long})
	if _, err := d.Put(t.Context(), torchStates+"b", Put{Value: long}); err == nil {
		t.Error("its state is not counted")
	}
	if _, err := d.Delete(t.Context(), publishedAt("b", "0/0"), Delete{}); err != nil {
		t.Fatal(err)
	}
	put(t, d.Keys, torchStates+"b", Put{Value: long})
}

// TestFullRunIsNamed: where a run's directory holds one that looks like another's, it is the run that is full.
func TestFullRunIsNamed(t *testing.T) {
	t.Parallel()
	d := open(t, embedded(t), Options{MaxBytes: 400})
	put(t, d.Keys, "/run_a/run_b/k", Put{Value: strings.Repeat("x", 100)})
	_, err := d.Put(t.Context(), "/run_a/run_b/l", Put{Value: strings.Repeat("x", 100)})
	if err == nil || !strings.Contains(err.Error(), `run "a"`) {
		t.Errorf("got %v", err)
	}
}

// TestOtherPaths: what is beside the keys.
func TestOtherPaths(t *testing.T) {
	t.Parallel()
	s := embedded(t)
	d, named := open(t, s, Options{}), open(t, s, Options{Advertise: []string{"http://a:1", "http://b:1"}})
	if r := d.do(t, "GET", "/v2/machines", ""); r.Body != d.URL+", "+d.URL+"/." {
		t.Errorf("machines: %q", r.Body)
	}
	if r := named.do(t, "GET", "/v2/machines", ""); r.Body != "http://a:1, http://b:1" {
		t.Errorf("machines: %q", r.Body)
	}
	if r := d.do(t, "GET", "/version", ""); !strings.Contains(r.Body, `"etcdserver"`) {
		t.Errorf("version: %q", r.Body)
	}
	for target, want := range map[string]int{
		"/v2/keysx": 404, "/": 404, "/v2/keys": 200, "//v2//keys/.": 200,
		"/./v2/machines": 200,
	} {
		if r := d.do(t, "GET", target, ""); r.Status != want {
			t.Errorf("%s: %+v", target, r)
		}
	}
}

// TestRuns: runs are found under any prefix, with their state.
func TestRuns(t *testing.T) {
	t.Parallel()
	d := open(t, embedded(t), Options{})
	put(t, d.Keys, "/torchelastic/p2p/run_b", Put{Dir: true})
	put(t, d.Keys, "/x/run_a/rdzv/active_version",
		Put{Value: `{"status": "final", "version": "3", "participants": [0, 1], ` +
			`"keep_alives": [], "num_workers_waiting": 1}`})
	put(t, d.Keys, "/x/run_c/rdzv/active_version", Put{Value: `{`})
	runs, err := d.Runs(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, r := range runs {
		if time.Since(r.Changed) > time.Hour {
			t.Errorf("%s changed at %v", r.ID, r.Changed)
		}
		got += fmt.Sprintf("%s %s %q %q %d %d\n", r.ID, r.Path, r.Version, r.Status, r.Participants, r.Waiting)
	}
	want := `b /torchelastic/p2p/run_b "" "" 0 0
a /x/run_a "3" "final" 2 1
c /x/run_c "" "unreadable" 0 0
`
	if got != want {
		t.Errorf("runs are\n%swant\n%s", got, want)
	}
}

// TestThousandWaits: a thousand long polls end with one event, and take less than 200 MB of heap, their clients
// among it.
func TestThousandWaits(t *testing.T) {
	const n = 1000
	d := open(t, embedded(t), Options{})
	before := inUse()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			q, err := http.NewRequestWithContext(soon(t), http.MethodGet, d.URL+"/v2/keys/run?wait=true&recursive=true",
				nil)
			if err != nil {
				t.Error(err)
				return
			}
			r, err := client.Do(q)
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Body.Close()
			if line, err := bufio.NewReader(r.Body).ReadString('\n'); !strings.Contains(line, `"/run/k"`) {
				t.Errorf("got %q, %v", line, err)
			}
		})
	}
	for ctx := soon(t); d.Waits() < n; time.Sleep(10 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("%d of %d wait", d.Waits(), n)
		}
	}
	held := inUse() - before
	start := time.Now()
	put(t, d.Keys, "/run/k", Put{})
	all.Wait()
	t.Logf("%d waits hold %.1f MB, clients among it; all ended after %v", n, float64(held)/1e6, time.Since(start))
	if held > 200e6 {
		t.Errorf("%d waits hold %d bytes", n, held)
	}
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// FuzzHandler: whatever comes, nothing panics, and nothing is answered by 5xx but 501.
func FuzzHandler(f *testing.F) {
	for _, c := range asked(f) {
		path, query, _ := strings.Cut(c.target, "?")
		f.Add(c.method, "/v2/keys"+path, query, c.form, "application/x-www-form-urlencoded")
	}
	f.Add("GET", "/v2/machines", "", "", "")
	f.Add("PUT", "/v2/keys/\x00", "wait=1&stream=1", "\xff", "multipart/form-data; boundary=x")
	k, err := Open(f.Context(), embedded(f).Client, Options{MaxKeys: 100, MaxValue: 1000})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(k.Close)
	handler := k.Handler()
	f.Fuzz(func(t *testing.T, method, path, query, body, kind string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if strings.Contains(query, "wait") { // nobody answers
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), 5*time.Millisecond)
		}
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", strings.NewReader(body))
		r.Method, r.URL.Path, r.URL.RawQuery = method, path, query
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // a panic is no error
					panic(p)
				}
			}()
			handler.ServeHTTP(w, r)
		}()
		if w.Code >= 500 && w.Code != 501 && ctx.Err() == nil {
			t.Errorf("%s %s?%s: %d %s", method, path, query, w.Code, w.Body)
		}
	})
}
