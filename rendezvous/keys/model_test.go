package keys

import (
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// step is a write at the tree, in words, and what it comes to.
type step struct {
	key  string
	put  *Put
	del  *Delete
	want string // its event, or code and cause
}

// model is a tree that does what is decided upon at once: the keys API without a store.
type model struct {
	*tree
	rev int64
	now time.Time
}

func (m *model) do(s step) string {
	w, refused := s.decide(m.tree, m.now)
	if refused != nil {
		return fmt.Sprint(refused.Code, " ", refused.Cause)
	}
	return m.commit(w)
}

func (m *model) commit(w *plan) string {
	m.rev++
	index := indexOf(m.rev, 0)
	e, _ := m.apply(index, &w.head, w.changes(m.rev), m.now)
	if own := event(w.head, w.prev, w.put, index); cmp.Diff(own, e, cmp.AllowUnexported(Event{})) != "" {
		return "the writer sees " + show(own) + ", others see " + show(e)
	}
	return show(e)
}

// place is an index in short: its revision, and after a dot its place in that where it is not the first.
func place(index uint64) string {
	if at := index % stride; at > 0 {
		return fmt.Sprintf("%d.%d", index/stride, at)
	}
	return fmt.Sprint(index / stride)
}

// show is an event in short: action, key=value or key/, modified<created, and the value before.
func show(e *Event) string {
	s := e.Action + " " + e.Node.Key
	switch {
	case e.Node.Dir:
		s += "/"
	case e.Node.Value != nil:
		s += "=" + *e.Node.Value
	}
	s += " " + place(e.Node.ModifiedIndex) + "<" + place(e.Node.CreatedIndex)
	if e.Node.TTL != 0 {
		s += fmt.Sprintf(" ttl %d", e.Node.TTL)
	}
	if e.Prev != nil && e.Prev.Value != nil {
		s += " was " + *e.Prev.Value
	}
	return s
}

// TestTree: what writes come to, one after the other.
func TestTree(t *testing.T) {
	yes, no := true, false
	m := &model{tree: newTree(), now: time.Unix(1000, 0)}
	for _, s := range []step{
		{key: "/a/b", put: &Put{Value: "1"}, want: "set /a/b=1 1<1"},
		{key: "/a/b", put: &Put{Value: "2"}, want: "set /a/b=2 2<2 was 1"},
		{
			key: "/a/b", put: &Put{Value: "3", PrevValue: "2", TTL: seconds(10)},
			want: "compareAndSwap /a/b=3 3<2 ttl 10 was 2",
		},
		{key: "/a/b", put: &Put{Value: "4", PrevValue: "2"}, want: "101 [2 != 3]"},
		{
			key: "/a/b", put: &Put{Value: "4", PrevIndex: indexOf(3, 0), PrevExist: &yes},
			want: "compareAndSwap /a/b=4 4<2 was 3",
		},
		{
			key: "/a/b", put: &Put{PrevIndex: indexOf(3, 0), PrevValue: "x"},
			want: "101 [x != 4] [384 != 512]",
		},
		{
			key: "/a/b", put: &Put{TTL: seconds(5), Refresh: true, PrevExist: &yes},
			want: "update /a/b=4 5<2 ttl 5 was 4",
		},
		{key: "/a/b", put: &Put{PrevExist: &no}, want: "105 /a/b"},
		{key: "/a/b/c/d", put: &Put{}, want: "104 /a/b"},
		{key: "/a", put: &Put{}, want: "102 /a"},
		{key: "/a", put: &Put{Dir: true, PrevExist: &no}, want: "105 /a"},
		{key: "/a", put: &Put{Dir: true, PrevExist: &yes, TTL: seconds(9)}, want: "update /a/ 6<1 ttl 9"},
		{key: "/a", put: &Put{PrevValue: "x"}, want: "102 /a"},
		{key: "/x/y", put: &Put{PrevExist: &yes}, want: "100 /x"},
		{key: "/x/y", put: &Put{PrevValue: "1"}, want: "100 /x"},
		{key: "/x/y", put: &Put{Refresh: true, TTL: seconds(1)}, want: "100 /x"},
		{key: "/", put: &Put{}, want: "107 /"},
		{key: "/", del: &Delete{Recursive: true}, want: "107 /"},
		{key: "/a", del: &Delete{}, want: "102 /a"},
		{key: "/a", del: &Delete{Dir: true}, want: "108 /a"},
		{key: "/a", del: &Delete{PrevValue: "1"}, want: "102 /a"},
		{key: "/a/b", del: &Delete{PrevValue: "1"}, want: "101 [1 != 4]"},
		{key: "/a/b", del: &Delete{PrevValue: "4"}, want: "compareAndDelete /a/b 7<2 was 4"},
		{key: "/a/b", del: &Delete{}, want: "100 /a/b"},
		{key: "/a", del: &Delete{Dir: true}, want: "delete /a/ 8<1"},
		{key: "/d/e/f", put: &Put{}, want: "set /d/e/f= 9<9"},
		{key: "/d", del: &Delete{Recursive: true}, want: "delete /d/ 10<9"},
		{key: "/d/e/f", del: &Delete{}, want: "100 /d"},
	} {
		if diff := cmp.Diff(s.want, m.do(s)); diff != "" {
			t.Errorf("%s %+v %+v (-want +got):\n%s", s.key, s.put, s.del, diff)
		}
	}
	if m.keys != 0 || m.bytes != 0 {
		t.Errorf("an empty tree has %d keys, %d bytes", m.keys, m.bytes)
	}
}

// TestDeadlines: a node is over when its time is, unless it was written since; renewals leave nothing behind.
func TestDeadlines(t *testing.T) {
	m := &model{tree: newTree(), now: time.Unix(1000, 0)}
	yes := true
	m.do(step{key: "/once", put: &Put{TTL: seconds(10)}})
	for range 1000 {
		m.now = m.now.Add(5 * time.Millisecond)
		m.do(step{key: "/again", put: &Put{TTL: seconds(10)}})
		m.do(step{key: "/again", put: &Put{TTL: seconds(10), Refresh: true, PrevExist: &yes}})
		if over := m.expired(m.now, 10); len(over) > 0 {
			t.Fatalf("over at %v: %v", m.now, over)
		}
	}
	if len(m.due) > 100 {
		t.Errorf("%d deadlines for two keys", len(m.due))
	}
	m.now = time.Unix(1010, 0)
	over := m.expired(m.now, 10)
	if len(over) != 1 || over[0].path != "/once" {
		t.Fatalf("over are %v", over)
	}
	m.do(step{key: "/again", put: &Put{}})
	if over := m.expired(m.now.Add(time.Hour), 10); len(over) != 0 {
		t.Errorf("over are %v, which has no TTL any more", over)
	}
}

// TestLoadedDeadlines: what is found in the store has what is left of its time, but time to be renewed, and no more
// than its TTL whatever the writer's clock said.
func TestLoadedDeadlines(t *testing.T) {
	now, grace := time.Unix(1000, 0), 10*time.Second
	for _, c := range []struct {
		ttl  uint64
		ends time.Duration // from now, as the writer put it
		want time.Duration
	}{
		{7200, time.Hour, time.Hour},
		{7200, -time.Hour, time.Hour},
		{15, -time.Hour, grace},
		{7200, 3 * time.Hour, 2 * time.Hour},
		{5, -time.Hour, 5 * time.Second},
	} {
		tr := newTree()
		r := &record{TTL: c.ttl, Expiration: now.Add(c.ends).UnixNano()}
		tr.put(change{"/k", r, 1, 1}, now, &grace)
		if got := tr.at("/k").deadline.Sub(now); got != c.want {
			t.Errorf("a TTL of %d s that ends in %v lives for %v, not %v", c.ttl, c.ends, got, c.want)
		}
	}
}

// TestWatched: which events a wait is for.
func TestWatched(t *testing.T) {
	file := func(key string) *Event { return &Event{Action: actionSet, Node: &Node{Key: key}} }
	gone := &Event{Action: actionExpire, Node: &Node{Key: "/a", Dir: true}}
	for _, c := range []struct {
		what watched
		e    *Event
		want bool
	}{
		{watched{"/a", false}, file("/a"), true},
		{watched{"/a", false}, file("/a/b"), false},
		{watched{"/a", true}, file("/a/b/c"), true},
		{watched{"/a", true}, file("/ab"), false},
		{watched{"/a", true}, file("/a/_b/c"), false},
		{watched{"/a/_b", true}, file("/a/_b/c"), true},
		{watched{"/", true}, file("/a"), true},
		{watched{"/", true}, file("/_a"), false},
		{watched{"/", false}, file("/a"), false},
		{watched{"/a/b", false}, gone, true},
		{watched{"/ab", true}, gone, false},
		{watched{"/a/b", false}, file("/a"), false},
	} {
		if got := c.what.by(c.e); got != c.want {
			t.Errorf("%+v by %s: %v", c.what, show(c.e), got)
		}
	}
}

// TestCounter: of many that count by compare-and-swap at several processes each gets a number of its own, and what one
// has written all read at once.
func TestCounter(t *testing.T) {
	t.Parallel()
	const clients, each = 12, 10
	s := embedded(t)
	endpoints := []endpoint{open(t, s, Options{}), open(t, s, Options{}), open(t, s, Options{})}
	put(t, endpoints[0].Keys, "/n", Put{Value: "0"})
	var mu sync.Mutex
	taken := map[int]int{}
	highest := 0
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(c), 1))
			for got := 0; got < each; {
				k := endpoints[dice.IntN(len(endpoints))].Keys
				mu.Lock()
				before := highest
				mu.Unlock()
				e, err := k.Get(soon(t), "/n", false)
				if err != nil {
					t.Error(err)
					return
				}
				n := number(*e.Node.Value)
				if n < before {
					t.Errorf("read %d after %d was written", n, before)
				}
				_, err = k.Put(soon(t), "/n", Put{Value: fmt.Sprint(n + 1), PrevValue: *e.Node.Value})
				switch refused(err) {
				case 0:
					mu.Lock()
					taken[n+1]++
					highest = max(highest, n+1)
					mu.Unlock()
					got++
				case CodeCompare:
				default:
					t.Error(err)
					return
				}
				if err != nil && refused(err) == 0 {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for n := 1; n <= clients*each; n++ {
		if taken[n] != 1 {
			t.Errorf("%d was taken %d times", n, taken[n])
		}
	}
}

// TestModel: random calls at two processes in turn, one of which ends and begins anew at times, come to what the tree
// alone comes to.
func TestModel(t *testing.T) {
	t.Parallel()
	s := gapless(t)
	endpoints := []endpoint{open(t, s, Options{}), open(t, s, Options{})}
	m := &model{tree: newTree(), now: time.Now()}
	first := put(t, endpoints[0].Keys, "/x", Put{})
	m.rev = int64(first.Index / stride)
	m.index = first.Index
	m.put(change{"/x", &record{}, m.rev, m.rev}, m.now, nil)
	dice := rand.New(rand.NewPCG(3, 4))
	for i := range 600 {
		if i%97 == 96 {
			endpoints[i%2].close()
			endpoints[i%2] = open(t, s, Options{})
		}
		st := randomStep(dice, m.rev)
		m.now = time.Now()
		want := m.do(st)
		d := endpoints[dice.IntN(2)]
		var e *Event
		var err error
		if st.put != nil {
			e, err = d.Put(soon(t), st.key, *st.put)
		} else {
			e, err = d.Delete(soon(t), st.key, *st.del)
		}
		got := ""
		if refused := new(Error); err == nil {
			got = show(e)
		} else if as(err, &refused) {
			got = fmt.Sprint(refused.Code, " ", refused.Cause)
		} else {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%d: %s %+v %+v (-model +keys):\n%s", i, st.key, st.put, st.del, diff)
		}
		if i%50 == 0 {
			want, _ := m.get("/", true, m.now)
			for _, d := range endpoints {
				got, err := d.Get(soon(t), "/", true)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(plain(text(t, want)), plain(text(t, got))); diff != "" {
					t.Fatalf("%d (-model +keys):\n%s", i, diff)
				}
			}
		}
	}
}

func randomStep(dice *rand.Rand, rev int64) step {
	keys := []string{"/a", "/a/a", "/a/a/a", "/a/b", "/b", "/b/a/a", "/"}
	s := step{key: keys[dice.IntN(len(keys))]}
	value := []string{"", "", "", "1", "2"}[dice.IntN(5)]
	index := []uint64{0, 0, 0, indexOf(rev, 0), indexOf(rev-1, 0)}[dice.IntN(5)]
	if dice.IntN(4) == 0 {
		s.del = &Delete{Dir: dice.IntN(2) == 0, Recursive: dice.IntN(2) == 0, PrevValue: value, PrevIndex: index}
		return s
	}
	s.put = &Put{Value: []string{"", "1", "2"}[dice.IntN(3)], PrevValue: value, PrevIndex: index}
	if dice.IntN(3) == 0 {
		s.put.PrevExist = new(bool)
		*s.put.PrevExist = dice.IntN(2) == 0
	}
	if dice.IntN(3) == 0 {
		s.put.TTL = seconds(1000)
		if dice.IntN(2) == 0 {
			s.put.Refresh, s.put.Value = true, ""
		}
	}
	s.put.Dir = dice.IntN(4) == 0
	return s
}

// TestBatches: random writes that share a transaction come to what they would one after the other, in the process that
// wrote them and in those that see only what has changed in the store.
func TestBatches(t *testing.T) {
	dice := rand.New(rand.NewPCG(5, 6))
	now := time.Unix(1000, 0)
	writer, reader, alone := newTree(), newTree(), newTree()
	shared := 0
	for rev := int64(1); rev < 1000; rev++ {
		b := newBatch()
		var steps []step
		for range 1 + dice.IntN(40) {
			st := randomStep(dice, rev)
			st.key = path.Clean(fmt.Sprintf("/%d%s", dice.IntN(6), st.key))
			w, refused := st.decide(writer, now)
			if refused == nil && b.add(&proposal{plan: w}, batchLimits{batchPlans, batchBytes}) {
				steps = append(steps, st)
			}
		}
		if len(steps) == 0 {
			continue
		}
		h := b.all[0].plan.head
		var changed []change
		for i, p := range b.all {
			if i > 0 {
				h.Then = append(h.Then, p.plan.head)
				shared++
			}
			changed = append(changed, changesInStore(writer, p.plan, rev)...)
		}
		dice.Shuffle(len(changed), func(i, j int) { changed[i], changed[j] = changed[j], changed[i] })
		parts := split(h, changed)
		for i, p := range b.all {
			index := indexOf(rev, i)
			single, refused := steps[i].decide(alone, now)
			if refused != nil {
				t.Fatalf("%d: %+v goes with others, and alone it comes to %v", rev, steps[i], refused)
			}
			single.place(i)
			want, _ := alone.apply(index, &single.head, single.changes(rev), now)
			got, _ := writer.apply(index, &p.plan.head, p.plan.changes(rev), now)
			seen, _ := reader.apply(index, parts[i].head, parts[i].changes, now)
			if show(got) != show(want) || show(seen) != show(want) {
				t.Fatalf("%d: alone %s, with others %s, elsewhere %s", rev, show(want), show(got), show(seen))
			}
		}
		for _, tr := range []*tree{writer, reader} {
			want, _ := alone.get("/", true, now)
			got, _ := tr.get("/", true, now)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(Event{})); diff != "" || tr.usage != alone.usage {
				t.Fatalf("%d (-alone +with others):\n%s", rev, diff)
			}
		}
	}
	if shared < 1000 {
		t.Errorf("only %d writes shared a transaction", shared)
	}
}

func (s step) decide(t *tree, now time.Time) (*plan, *Error) {
	if s.put != nil {
		return s.put.plan(t, s.key, now)
	}
	return s.del.plan(t, s.key, now)
}

// changesInStore is what the store tells of a plan that it has done: of a directory that goes, all below it, too.
func changesInStore(t *tree, w *plan, rev int64) []change {
	if w.put != nil {
		return w.changes(rev)
	}
	var gone []change
	t.at(w.head.Key).each(func(n *node) { gone = append(gone, change{path: n.path}) })
	return gone
}
