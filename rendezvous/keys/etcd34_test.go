package keys

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

var clientPrefix = clientv3.WithPrefix()

// etcd34 starts the etcd of the PATH with its v2 API, and skips the test where it has none.
func etcd34(t testing.TB) string {
	t.Helper()
	bin, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("no etcd in PATH: nobody compares the answers with those of the original")
	}
	if help, err := exec.CommandContext(t.Context(), bin, "--help").CombinedOutput(); err != nil ||
		!bytes.Contains(help, []byte("--enable-v2 ")) {
		t.Skip("the etcd in PATH has no v2 API: nobody compares the answers with those of the original")
	}
	client, peer := "http://"+ports.Address(t), "http://"+ports.Address(t)
	var log bytes.Buffer
	cmd := exec.Command(bin, "--enable-v2", "--data-dir", t.TempDir(), "--listen-client-urls", client,
		"--advertise-client-urls", client,
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

// call is a request, as both are asked.
type call struct{ method, target, form string }

// asked are the requests of testdata/asked.txt.
func asked(t testing.TB) []call {
	t.Helper()
	b, err := os.ReadFile("testdata/asked.txt")
	if err != nil {
		t.Fatal(err)
	}
	var calls []call
	for line := range strings.Lines(string(b)) {
		f := append(strings.Fields(line), "", "")
		if f[0] != "#" {
			calls = append(calls, call{f[0], strings.TrimPrefix(f[1], "."), f[2]})
		}
	}
	return calls
}

// TestAsTheOriginal: etcd 3.4 gives the same answers, but for times and the numbers of indexes.
func TestAsTheOriginal(t *testing.T) {
	t.Parallel()
	real, ours := etcd34(t), open(t, gapless(t), Options{})
	same := newSame(t, real, ours.URL)
	for i, c := range asked(t) {
		same.ask(t, i, c)
	}
}

// TestRandomlyAsTheOriginal: the same for calls by dice.
func TestRandomlyAsTheOriginal(t *testing.T) {
	t.Parallel()
	real, ours := etcd34(t), open(t, gapless(t), Options{Alone: true})
	same := newSame(t, real, ours.URL)
	dice := rand.New(rand.NewPCG(1, 2))
	for i := range 1500 {
		same.ask(t, i, random(dice))
		if t.Failed() {
			return
		}
	}
}

// random is a call that makes some sense; its indexes are written as a number of calls ago.
func random(dice *rand.Rand) call {
	keys := []string{"/a", "/b", "/a/a", "/a/b", "/b/a", "/b/_h", "/a/a/a", "/a/a/b", "/c", "/c/a", "/"}
	key := keys[dice.IntN(len(keys))]
	if dice.IntN(8) > 0 {
		key = keys[dice.IntN(len(keys)-1)]
	}
	if dice.IntN(4) == 0 {
		if key == "/" {
			return call{"GET", "/?sorted=true", ""}
		}
		return call{"GET", key + []string{
			"?recursive=true&sorted=true", "?sorted=true", fmt.Sprintf("?wait=true&waitIndex=-%d", dice.IntN(25)),
			fmt.Sprintf("?wait=true&recursive=true&waitIndex=-%d", dice.IntN(25)),
		}[dice.IntN(4)], ""}
	}
	v := url.Values{}
	some := func(p float64, name string, values ...string) {
		if dice.Float64() < p {
			v.Set(name, values[dice.IntN(len(values))])
		}
	}
	some(.2, "prevValue", "1", "2", "3")
	some(.1, "prevIndex", fmt.Sprint(-dice.IntN(5)-1), "0")
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

// same asks two servers. Indexes are counted by each from its own start, and in ours, by their revisions, have no gaps
// while nobody else writes: so the distance between both is constant.
type same struct {
	servers [2]string
	strides [2]int // from an index to the next
	starts  [2]int // index before the first call
	state   int    // changes since then
}

func newSame(t *testing.T, servers ...string) *same {
	t.Helper()
	s := &same{servers: [2]string(servers), strides: [2]int{1, stride}}
	for i, base := range servers {
		do(t, base, "PUT", "/v2/keys/first", "")
		n, err := strconv.Atoi(do(t, base, "DELETE", "/v2/keys/first", "").Index)
		if err != nil {
			t.Fatalf("no index from %s: %v", base, err)
		}
		s.starts[i] = n / s.strides[i]
	}
	return s
}

var (
	indexed = regexp.MustCompile(`(Index":|"index":|!= |\[)(\d+)`)
	times   = regexp.MustCompile(`"expiration":"[^"]*Z"`)
	left    = regexp.MustCompile(`"ttl":(\d+)`)
	asking  = regexp.MustCompile(`(prevIndex|waitIndex)=-(\d+)`)
)

func (s *same) ask(t *testing.T, i int, c call) {
	t.Helper()
	var replies [2]reply
	state := s.state
	for j, base := range s.servers {
		start := s.starts[j]
		place := func(text string) string {
			return asking.ReplaceAllStringFunc(text, func(m string) string {
				f := asking.FindStringSubmatch(m)
				return fmt.Sprintf("%s=%d", f[1], (start+max(1, state-number(f[2])))*s.strides[j])
			})
		}
		c := call{c.method, "/v2/keys" + place(c.target), place(c.form)}
		r := reply{}
		if strings.Contains(c.target, "wait=true&") {
			r = wait(t, base, c)
		} else {
			r = do(t, base, c.method, c.target, c.form)
		}
		if n := number(r.Index) / s.strides[j]; n > 0 {
			r.Index = strconv.Itoa(n - start)
			s.state = max(s.state, n-start)
		}
		r.Body = times.ReplaceAllString(r.Body, `"expiration":"T"`)
		r.Body = left.ReplaceAllStringFunc(r.Body, func(m string) string { // one may be asked seconds after the other
			return fmt.Sprintf(`"ttl":%d0`, (number(left.FindStringSubmatch(m)[1])+9)/10)
		})
		r.Body = indexed.ReplaceAllStringFunc(r.Body, func(m string) string {
			f := indexed.FindStringSubmatch(m)
			if n := number(f[2]) / s.strides[j]; n > start {
				s.state = max(s.state, n-start)
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

func number(s string) int {
	n, _ := strconv.Atoi(s) // none is 0
	return n
}

// wait asks for an event, and sees to it that there is one: what was there goes, and the key comes.
func wait(t *testing.T, base string, c call) reply {
	t.Helper()
	r := get(soon(t), t, base+c.target)
	defer r.Body.Close()
	key, _, _ := strings.Cut(c.target, "?")
	if parts := strings.Split(key, "/"); r.StatusCode == http.StatusOK && len(parts) > 3 && parts[3] != "" {
		do(t, base, "DELETE", strings.Join(parts[:4], "/")+"?recursive=true", "")
		do(t, base, "PUT", key, "value=wait")
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{r.StatusCode, r.Header.Get("X-Etcd-Index"), string(b)}
}
