package keys

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exchange is a request of the recording, and its answer.
type exchange struct {
	call
	status, index int
	body          string
}

// change of the recording's watch, which saw both agents.
type seen struct {
	Action, Key string
	Value       string
	Dir         bool
	TTL         *uint64
	Index       int `json:"mi"`
}

func recorded(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "traces", name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no recordings beside the checkout: nobody compares the answers with those that torch was given")
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

var block = regexp.MustCompile(`(?m)^--- +[\d.]+ (conn\d) ([<>])\n`)

// exchanges are the recording's, in the order of the answers.
func exchanges(t *testing.T, text string) []*exchange {
	t.Helper()
	var all []*exchange
	open := map[string]string{} // request by connection
	last := map[string]*exchange{}
	marks := block.FindAllStringSubmatchIndex(text, -1)
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		conn, body := text[m[2]:m[3]], strings.TrimSuffix(text[m[1]:end], "\n")
		switch {
		case text[m[4]:m[5]] == ">":
			if last[conn] != nil || open[conn] == "" {
				open[conn], last[conn] = "", nil
			}
			open[conn] += body
		case last[conn] != nil: // what a wait came to
			last[conn].body = event1(body)
		default:
			last[conn] = answered(t, open[conn], body)
			all = append(all, last[conn])
		}
	}
	return all
}

func answered(t *testing.T, request, reply string) *exchange {
	t.Helper()
	head, form, _ := strings.Cut(request, "\n\n")
	first := strings.Fields(head)
	status, err := strconv.Atoi(strings.Fields(reply)[1])
	if err != nil {
		t.Fatalf("the recording has an answer without a status: %s", reply)
	}
	e := &exchange{call: call{first[0], first[1], strings.TrimSpace(form)}, status: status}
	head, e.body, _ = strings.Cut(reply, "\n\n")
	if _, index, ok := strings.Cut(head, "X-Etcd-Index: "); ok {
		e.index = number(strings.Fields(index)[0])
	}
	if strings.Contains(head, "chunked") {
		e.body = event1(e.body)
	}
	return e
}

// event1 is the line of JSON in a body of chunks.
func event1(chunks string) string {
	for line := range strings.Lines(chunks) {
		if strings.HasPrefix(line, "{") {
			return line
		}
	}
	return ""
}

// TestRecording: an agent of torch 1.13 that talked to etcd 3.4 would have been answered the same by us. What the other
// agent did meanwhile is done when it was seen.
func TestRecording(t *testing.T) {
	t.Parallel()
	var others []seen
	for line := range strings.Lines(recorded(t, "01_two_agents_http.watch.jsonl")) {
		var s seen
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		others = append(others, s)
	}
	all := exchanges(t, recorded(t, "01_two_agents_http.http.txt"))
	d := open(t, embedded(t), Options{})
	until := func(index int) {
		for len(others) > 0 && others[0].Index <= index {
			redo(t, d.Keys, others[0])
			others = others[1:]
		}
	}
	ourIndex := map[int]uint64{}
	for i, e := range all {
		own := e.method == http.MethodPut && e.status < 300
		if own {
			until(e.index - 1)
			others = slices.DeleteFunc(others, func(s seen) bool { return s.Index == e.index })
		} else {
			until(e.index)
		}
		var r reply
		if waits := strings.Contains(e.target, "wait=true"); waits {
			r = d.waitAgain(t, e, ourIndex, until)
		} else {
			r = d.do(t, e.method, e.target, e.form)
		}
		ourIndex[e.index] = uint64(number(r.Index))
		want, got := reply{e.status, "", plain(e.body)}, reply{r.Status, "", plain(r.Body)}
		if e.target == "/v2/machines" {
			want.Body, got.Body = "", ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d: %s %s %q (-recorded +ours):\n%s", i, e.method, e.target, e.form, diff)
		}
	}
	if len(all) < 30 {
		t.Errorf("the recording has only %d exchanges", len(all))
	}
}

// waitAgain waits from the same event on, which then happens, if it has not.
func (d endpoint) waitAgain(t *testing.T, e *exchange, ours map[int]uint64, until func(int)) reply {
	t.Helper()
	target, since, _ := strings.Cut(e.target, "waitIndex=")
	since, rest, _ := strings.Cut(since, "&")
	from, ok := ours[number(since)-1]
	if !ok {
		t.Fatalf("nothing was asked at index %s", since)
	}
	r := get(soon(t), t, d.URL+target+"waitIndex="+strconv.FormatUint(from+1, 10)+"&"+rest)
	defer r.Body.Close()
	var happened Event
	if err := json.Unmarshal([]byte(e.body), &happened); err != nil {
		t.Fatalf("the recorded wait has no event: %q", e.body)
	}
	until(int(happened.Node.ModifiedIndex))
	var b strings.Builder
	if _, err := io.Copy(&b, r.Body); err != nil {
		t.Fatal(err)
	}
	return reply{r.StatusCode, r.Header.Get("X-Etcd-Index"), b.String()}
}

func redo(t *testing.T, k *Keys, s seen) {
	t.Helper()
	p := Put{Value: s.Value, Dir: s.Dir, TTL: s.TTL}
	switch s.Action {
	case actionCreate:
		no := false
		p.PrevExist = &no
	case actionSwap:
		e, err := k.Get(soon(t), s.Key, false)
		if err != nil {
			t.Fatal(err)
		}
		p.PrevIndex = e.Node.ModifiedIndex
	}
	put(t, k, s.Key, p)
}

var numbers = regexp.MustCompile(`("ttl":|Index":|"index":)\d+`)

// plain is an answer without times and indexes, its nodes in order.
func plain(body string) string {
	if strings.Contains(body, `"nodes"`) {
		var e Event
		if json.Unmarshal([]byte(body), &e) == nil {
			slices.SortFunc(e.Node.Nodes, func(a, b *Node) int { return strings.Compare(a.Key, b.Key) })
			if b, err := json.Marshal(e); err == nil {
				body = string(b) + "\n"
			}
		}
	}
	return numbers.ReplaceAllString(times.ReplaceAllString(body, `"expiration":"T"`), "${1}0")
}
