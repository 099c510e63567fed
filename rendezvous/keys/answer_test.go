package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStream: a long listing has the text that a short one would have.
func TestStream(t *testing.T) {
	value, at := `a "quoted" <text>`+strings.Repeat("x", 40_000), time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	leaf := func(i int) *Node {
		return &Node{Key: fmt.Sprintf("/d/%d", i), Value: &value, ModifiedIndex: uint64(i), CreatedIndex: 3}
	}
	for name, n := range map[string]*Node{
		"root": {Dir: true, Nodes: []*Node{leaf(1), leaf(2)}},
		"deep": {
			Key: "/d", Dir: true, TTL: 3, Expiration: &at, ModifiedIndex: 9,
			Nodes: []*Node{{Key: "/d/e", Dir: true, Nodes: []*Node{leaf(1)}, CreatedIndex: 4}, leaf(2)},
		},
		"empty": {Key: "/d", Dir: true, ModifiedIndex: 1, CreatedIndex: 1},
		"bare":  {Nodes: []*Node{leaf(1)}},
	} {
		e := &Event{Action: actionGet, Node: n}
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		pace(w, time.Minute).stream(e)
		if diff := cmp.Diff(string(want)+"\n", w.Body.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%.2000s", name, diff)
		}
	}
}

// TestBudget: what is under way has a limit, small requests need none of it, and what is larger than all of it has it
// alone.
func TestBudget(t *testing.T) { synctest.Test(t, testBudget) }

func testBudget(t *testing.T) {
	const patience = 10 * time.Second
	b := newBudget(100_000, patience)
	alone, err := b.take(t.Context(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	small, err := b.take(t.Context(), free)
	if err != nil {
		t.Fatal(err)
	}
	small()
	begin := time.Now()
	_, err = b.take(t.Context(), 2*free)
	if e := new(Error); !errors.As(err, &e) || e.Status() != http.StatusServiceUnavailable ||
		time.Since(begin) != patience {
		t.Errorf("got %v after %s", err, time.Since(begin))
	}
	alone()
	alone() // which gives back nothing more
	if release, err := b.take(t.Context(), 60_000); err != nil {
		t.Error(err)
	} else {
		defer release()
	}
	if b.left.TryAcquire(50_000) {
		t.Error("there is more room than there was")
	}
}

// TestNoRoom: a store without room refuses writes, with etcd's code for trouble of its own, and nothing else.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	var room error
	k := open(t, embedded(t), Options{Room: func() error { return room }})
	if _, err := k.Put(t.Context(), "/k", Put{Value: "1"}); err != nil {
		t.Fatal(err)
	}
	room = full
	_, err := k.Put(t.Context(), "/k", Put{Value: "2"})
	if e := new(Error); !errors.As(err, &e) || e.Code != CodeStore || e.Status() != http.StatusInsufficientStorage ||
		e.Cause != full.Error() {
		t.Errorf("got %v", err)
	}
	if e, err := k.Get(t.Context(), "/k", false); err != nil || *e.Node.Value != "1" {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := k.Delete(t.Context(), "/k", Delete{}); err != nil { // which makes room
		t.Error(err)
	}
}

// TestLastEvent: all who wait for one event are sent the same bytes.
func TestLastEvent(t *testing.T) {
	var last lastEvent
	value := "v"
	e := &Event{Action: actionSet, Node: &Node{Key: "/k", Value: &value}}
	first, again := last.encode(e), last.encode(e)
	if &first[0] != &again[0] || !bytes.HasSuffix(first, []byte("}\n")) {
		t.Errorf("got %q and %q", first, again)
	}
	other := last.encode(&Event{Action: actionDelete, Node: &Node{Key: "/k"}})
	if bytes.Equal(first, other) {
		t.Errorf("got %q for another event", other)
	}
}
