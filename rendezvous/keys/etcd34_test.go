package keys

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
)

var clientPrefix = clientv3.WithPrefix()

// etcd34 starts the etcd of the PATH with its v2 API, and skips the test where it has none.
func etcd34(t *testing.T) string {
	t.Helper()
	bin, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("no etcd in PATH: nobody compares the answers with those of the original")
	}
	if help, err := exec.CommandContext(t.Context(), bin, "--help").CombinedOutput(); err != nil || !bytes.Contains(help, []byte("--enable-v2 ")) {
		t.Skip("the etcd in PATH has no v2 API: nobody compares the answers with those of the original")
	}
	client, peer := port(t), port(t)
	var log bytes.Buffer
	cmd := exec.Command(bin, "--enable-v2", "--data-dir", t.TempDir(), "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended by itself
		cmd.Wait()         //nolint:errcheck // killed
		if t.Failed() {
			t.Logf("etcd's log:\n%s", log.Bytes())
		}
	})
	for ctx := soon(t); ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		r, err := http.Get(client + "/v2/keys/")
		if err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return client
			}
		}
	}
	t.Fatal("etcd does not serve")
	return ""
}

func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// call is a request, as both are asked.
type call struct{ method, target, form string }

// asked are requests by hand: all that torch sends, each error, and what etcd does where one would not expect it.
var asked = []call{
	{"PUT", "/a/b/c", "value=x"}, {"PUT", "/a/b/c/d", "value=x"}, {"PUT", "/a/b", "value=x"}, {"PUT", "/a/b", "dir=true"},
	{"PUT", "/a/b/c", "dir=true"}, {"PUT", "/a/b/c", "dir=true"}, {"PUT", "/a/b/c", "dir=true&prevExist=true&ttl=100"},
	{"PUT", "/a/b/c", "dir=true&prevExist=true"}, {"PUT", "/a/b/c", "value=q&prevExist=true"}, {"PUT", "/a/b/c", "value=q"},
	{"PUT", "/f", "value=q"}, {"PUT", "/f", "value=q2&prevExist=true"}, {"PUT", "/f", "dir=true&prevExist=true"},
	{"PUT", "/f", "value=q3&prevValue=zz"}, {"PUT", "/f", "value=q3&prevValue=zz&prevIndex=3"}, {"PUT", "/f", "value=q3&prevIndex=3"},
	{"PUT", "/f", "value=q3&prevValue="}, {"PUT", "/f", "value=q3&prevIndex=0"}, {"PUT", "/f", "value=q3&prevExist=maybe"},
	{"PUT", "/f", "value=q3&prevIndex=x"}, {"PUT", "/f", "value=q3&ttl=x"}, {"PUT", "/f", "value=q3&ttl=-1"},
	{"PUT", "/f", "value=q3&ttl=50"}, {"PUT", "/f", "value=q4&prevValue=q3&ttl=60"}, {"PUT", "/f", "value=q3&prevValue=q4"},
	{"PUT", "/f", "value=q3&ttl="}, {"PUT", "/f", "value=q3&refresh=true"}, {"PUT", "/f", "refresh=true"},
	{"PUT", "/f", "refresh=true&ttl=50"}, {"PUT", "/f", "refresh=true&ttl=50&prevExist=true"}, {"PUT", "/no", "refresh=true&ttl=50&prevExist=true"},
	{"PUT", "/no", "refresh=true&ttl=50"}, {"PUT", "/no/no", "refresh=true&ttl=50"}, {"PUT", "/f", "refresh=true&ttl=50&prevExist=true&value=k"},
	{"PUT", "/f", "refresh=maybe"}, {"PUT", "/f", "dir=maybe"}, {"PUT", "/f", "prevExist=false&value=q"}, {"PUT", "/", "value=q"},
	{"PUT", "/", "dir=true"}, {"PUT", "/", "dir=true&prevExist=true"}, {"PUT", "/", "dir=true&prevExist=false"}, {"PUT", "/?prevValue=x", ""},
	{"PUT", "/no", "prevExist=true&value=9"}, {"PUT", "/no", "prevValue=v&value=9"}, {"PUT", "/a", "prevValue=v&value=9"},
	{"PUT", "/f?value=fromquery", ""}, {"PUT", "/f?value=fromquery", "value=frombody"}, {"PUT", "/f?prevExist=false", "value=x"},
	{"PUT", "/_h/x", "value=1"}, {"PUT", "/a/_h", "value=1"}, {"GET", "/?recursive=true&sorted=true", ""}, {"GET", "/a?sorted=true", ""},
	{"GET", "/a?recursive=maybe", ""}, {"GET", "/f?quorum=true", ""}, {"GET", "/a/_h", ""}, {"GET", "/_h", ""}, {"GET", "/no", ""},
	{"GET", "/no/no/no", ""}, {"GET", "/f/under", ""}, {"GET", "/f/", ""}, {"GET", "", ""}, {"GET", "/a?wait=true&waitIndex=x", ""},
	{"GET", "/a?wait=maybe", ""}, {"GET", "/a?stream=true", ""}, {"GET", "/f?wait=true&waitIndex=1", ""}, {"PUT", "/w?wait=true", ""},
	{"GET", "/a?wait=true&waitIndex=1&recursive=true", ""}, {"DELETE", "/a", ""}, {"DELETE", "/a?dir=true", ""},
	{"DELETE", "/a?recursive=true&dir=false", ""}, {"GET", "/a/b/c?wait=true&waitIndex=1", ""}, {"DELETE", "/f?dir=true", ""}, {"PUT", "/f", "value=ff"},
	{"DELETE", "/f?prevValue=zz", ""}, {"DELETE", "/f?prevIndex=1", ""}, {"DELETE", "/f?prevValue=", ""}, {"DELETE", "/f?prevExist=true", ""},
	{"DELETE", "/f?prevExist=false", ""}, {"DELETE", "/f?prevValue=ff", ""}, {"DELETE", "/f", ""}, {"PUT", "/f", "value=ff"},
	{"DELETE", "/f?prevValue=ff", ""}, {"DELETE", "/", ""}, {"DELETE", "/?recursive=true", ""}, {"DELETE", "/?prevValue=x", ""},
	{"PUT", "/a/b", "dir=true"}, {"DELETE", "/a?prevValue=ff", ""}, {"DELETE", "/a/b?dir=true", ""}, {"DELETE", "/no?dir=true", ""},
	{"PUT", "/g%2Fh", "value=1"}, {"PUT", "/g%20h%C3%A9", "value=%3Ca%26b%3E%E2%80%A8%FF"}, {"GET", "/g%20h%C3%A9", ""},
	{"PUT", "/x", "value=a;b&ttl=5"}, {"PUT", "/x", "value=%zz"}, {"GET", "/x?%zz", ""}, {"PUT", "/y", "ttl=10&dir=true&prevExist=false"},
	{"PUT", "/y", "ttl=10&dir=true&prevExist=false"}, {"PUT", "/y/a", "value=10"}, {"PUT", "/y", "dir=true&prevExist=true"},
	{"PUT", "/y", "dir=true&prevExist=true&refresh=true&ttl=5"}, {"PUT", "/y", "prevExist=true&refresh=true&ttl=5"}, {"GET", "/y", ""},
	{"PUT", "/y", "refresh=true&ttl=5"}, {"PUT", "/x", "value=a"}, {"PUT", "/x", "value=a&prevExist=true&prevIndex=1"},
	{"PUT", "/x", "value=a&prevExist=false&prevIndex=1"}, {"PUT", "/x", "value=a&noValueOnSuccess=true"}, {"PUT", "/new", "noValueOnSuccess=true"},
	{"PUT", "/x", "value=a&prevValue=a&noValueOnSuccess=true"}, {"DELETE", "/new?noValueOnSuccess=true", ""}, {"PUT", "/p/x/", "value=a&prevExist=false"},
	{"PUT", "/p/y/", "dir=true&prevExist=false"}, {"PUT", "/w?dir=true&value=x", ""}, {"PUT", "/w?dir=true&value=x&prevExist=true", ""},
	{"PUT", "/w?dir=true&prevValue=x&prevExist=true", ""}, {"DELETE", "/w?recursive=1&dir=t", ""}, {"PUT", "/w", "prevExist=&prevIndex="},
	{"PUT", "/w?noValueOnSuccess=maybe", ""}, {"GET", "/?recursive=true&sorted=true", ""}, {"GET", "/?sorted=true", ""}, {"PATCH", "/x", ""},
}

// TestAsTheOriginal: etcd 3.4 gives the same answers, but for times and the numbers of indexes.
func TestAsTheOriginal(t *testing.T) {
	real, ours := etcd34(t), open(t, embedded(t), Options{})
	same := newSame(real, ours.URL)
	for i, c := range asked {
		same.ask(t, i, c)
	}
}

// TestRandomlyAsTheOriginal: the same for calls by dice.
func TestRandomlyAsTheOriginal(t *testing.T) {
	real, ours := etcd34(t), open(t, embedded(t), Options{})
	same := newSame(real, ours.URL)
	dice := rand.New(rand.NewPCG(1, 2))
	for i := range 1500 {
		same.ask(t, i, random(dice, same.last))
		if t.Failed() {
			return
		}
	}
}

// random is a call that makes some sense; its indexes are written as a number of calls ago.
func random(dice *rand.Rand, last func(ago int) int) call {
	keys := []string{"/a", "/b", "/a/a", "/a/b", "/b/a", "/b/_h", "/a/a/a", "/a/a/b", "/c", "/c/a", "/"}
	key := keys[dice.IntN(len(keys))]
	if dice.IntN(8) > 0 {
		key = keys[dice.IntN(len(keys)-1)]
	}
	if dice.IntN(4) == 0 {
		return call{"GET", key + []string{"", "?recursive=true&sorted=true", "?sorted=true", fmt.Sprintf("?wait=true&waitIndex=%d", last(1+dice.IntN(9)))}[dice.IntN(4)], ""}
	}
	v := url.Values{}
	some := func(p float64, name string, values ...string) {
		if dice.Float64() < p {
			v.Set(name, values[dice.IntN(len(values))])
		}
	}
	some(.2, "prevValue", "1", "2", "3")
	some(.1, "prevIndex", strconv.Itoa(last(1+dice.IntN(5))), "0")
	if dice.IntN(4) == 0 {
		some(.3, "recursive", "true")
		some(.3, "dir", "true")
		return call{"DELETE", key + "?" + v.Encode(), ""}
	}
	some(.6, "value", "1", "2", "3")
	some(.3, "dir", "true", "false")
	some(.3, "ttl", "100", "1000", "")
	some(.3, "prevExist", "true", "false")
	some(.1, "refresh", "true")
	return call{"PUT", key, v.Encode()}
}

// same asks two servers. Indexes are counted by each from its own start, and in ours have no gaps while nobody else
// writes: so the distance between both is constant.
type same struct {
	real, ours string
	indexes    [2]map[int]int // what a server calls its n-th state
	state      int
	answered   []int
}

func newSame(real, ours string) *same { return &same{real: real, ours: ours} }

// last is a placeholder for the index so many writes ago.
func (s *same) last(ago int) int { return -ago }

var (
	indexed = regexp.MustCompile(`(Index":|"index":|!= |\[)(\d+)`)
	times   = regexp.MustCompile(`"expiration":"[^"]*Z"`)
	asking  = regexp.MustCompile(`(prevIndex|waitIndex)=(?:-|%2D)(\d+)`)
)

func (s *same) ask(t *testing.T, i int, c call) {
	t.Helper()
	var replies [2]reply
	for j, base := range []string{s.real, s.ours} {
		start := s.start(t, j, base)
		place := func(text string) string {
			return asking.ReplaceAllStringFunc(text, func(m string) string {
				f := asking.FindStringSubmatch(m)
				ago, _ := strconv.Atoi(f[2])
				return fmt.Sprintf("%s=%d", f[1], max(start+1, start+s.state-ago))
			})
		}
		r := s.do(t, base, c.method, place(c.target), place(c.form))
		if n, err := strconv.Atoi(r.Index); err == nil && n > 0 {
			r.Index = strconv.Itoa(n - start)
			s.state = max(s.state, n-start)
		}
		r.Body = times.ReplaceAllString(r.Body, `"expiration":"T"`)
		r.Body = indexed.ReplaceAllStringFunc(r.Body, func(m string) string {
			f := indexed.FindStringSubmatch(m)
			if n, _ := strconv.Atoi(f[2]); n > start {
				return f[1] + "+" + strconv.Itoa(n-start)
			}
			return m
		})
		replies[j] = r
	}
	if diff := cmp.Diff(replies[0], replies[1]); diff != "" {
		t.Errorf("%d: %s %s %q (-etcd 3.4 +ours):\n%s", i, c.method, c.target, c.form, diff)
	}
}

// start is the index of a server before the first call.
func (s *same) start(t *testing.T, j int, base string) int {
	t.Helper()
	if s.indexes[j] == nil {
		do(t, base, "PUT", "/v2/keys/first", "")
		r := do(t, base, "DELETE", "/v2/keys/first", "")
		n, err := strconv.Atoi(r.Index)
		if err != nil {
			t.Fatalf("no index from %s: %+v", base, r)
		}
		s.indexes[j] = map[int]int{0: n}
	}
	return s.indexes[j][0]
}

// do asks; a wait that nothing answers is cut off.
func (s *same) do(t *testing.T, base, method, target, form string) reply {
	t.Helper()
	if !strings.Contains(target, "wait=true&") {
		return do(t, base, method, "/v2/keys"+target, form)
	}
	return poll(t, base, target)
}

// poll is a wait that may stay without an answer.
func poll(t *testing.T, base, target string) reply {
	t.Helper()
	c := &http.Client{Timeout: 150 * time.Millisecond}
	r, err := c.Get(base + "/v2/keys" + target)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var b bytes.Buffer
	b.ReadFrom(r.Body) //nolint:errcheck // cut off
	return reply{r.StatusCode, r.Header.Get("X-Etcd-Index"), b.String()}
}
