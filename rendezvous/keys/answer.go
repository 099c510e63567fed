package keys

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// What is under way to clients that read slowly, or not at all, is in memory for as long as they take. So all of it
// together has a limit, and each of them a time.
const (
	// free is what goes without asking for room: as much as the server's own buffers of a connection.
	free = 4 << 10
	// listing is where an answer is written piece by piece, and counts among the listings.
	listing = 64 << 10
	// piece is what is written under one deadline.
	piece = 64 << 10
	// slowest is how many bytes a second a client must take after that.
	slowest = 128 << 10
)

// budget is bytes that requests take while they are under way. Who comes first is served first.
type budget struct {
	all     int64
	left    *semaphore.Weighted
	timeout time.Duration // of a request that waits for room
}

func newBudget(bytes int, timeout time.Duration) *budget {
	all := int64(max(1, bytes))
	return &budget{all, semaphore.NewWeighted(all), timeout}
}

// take waits for room, for a while. What is larger than all there is has it alone.
func (b *budget) take(ctx context.Context, bytes int) (release func(), err error) {
	if bytes <= free {
		return func() {}, nil
	}
	n := min(int64(bytes), b.all)
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	if err := b.left.Acquire(ctx, n); err != nil {
		return nil, exceeded(http.StatusServiceUnavailable, "answers and requests under way take %d bytes", b.all)
	}
	return sync.OnceFunc(func() { b.left.Release(n) }), nil
}

// room is what a request holds of a budget; its zero value is nothing.
type room struct {
	of      *budget
	bytes   int
	release func()
}

// enough says whether it holds so many bytes of a budget, or needs none.
func (r *room) enough(of *budget, bytes int) bool {
	return bytes <= free || r.of == of && bytes <= r.bytes
}

// need sees to it that the request holds so many bytes. It gives back what it holds before it waits for more: requests
// that wait for each other would all wait in vain.
func (r *room) need(ctx context.Context, of *budget, bytes int) error {
	if r.enough(of, bytes) {
		return nil
	}
	r.free()
	release, err := of.take(ctx, bytes)
	if err == nil {
		*r = room{of, bytes, release}
	}
	return err
}

func (r *room) free() {
	if r.release != nil {
		r.release()
	}
	*r = room{}
}

// weigh is about how many bytes an answer keeps in memory, and whether it is a listing. Of a listing the values are
// those of the tree, and the text of one at a time is made.
func (k *Keys) weigh(key string, recursive bool) (bytes int, list bool) {
	key, err := k.clean(key)
	if err != nil {
		return 0, false
	}
	k.mu.RLock()
	n := k.tree.at(key)
	if n == nil || !n.record.Dir {
		value := n.value()
		k.mu.RUnlock()
		return nodeText + len(key) + textSize(value), false
	}
	defer k.mu.RUnlock()
	longest := 0
	add := func(n *node) {
		bytes += n.weight()
		longest = max(longest, len(n.record.value))
	}
	add(n)
	for _, c := range n.children {
		if recursive {
			c.each(add)
		} else {
			add(c)
		}
	}
	return bytes + longestText*longest, bytes > listing
}

// answerWeight is what a write may be answered: what is there now, and where it is not what was expected, the error
// that says so.
func (x *httpCall) answerWeight() int {
	key, err := x.clean(x.key)
	if err != nil {
		return 0
	}
	x.mu.RLock()
	value := x.tree.at(key).value()
	x.mu.RUnlock()
	return 2*nodeText + 2*len(key) + len(value) + textSize(value)
}

// value is that of a file, none where there is no node.
func (n *node) value() string {
	if n == nil {
		return ""
	}
	return n.record.value
}

// weight is of a node as it is shown: the struct, and the strings that it may be the last to hold.
func (n *node) weight() int { return 256 + len(n.path) + len(n.record.value) }

// lastEvent is the event that clients were sent last, as text: a thousand that wait for one event need not have a copy
// each.
type lastEvent struct {
	mu    sync.Mutex
	event *Event
	text  []byte
}

func (t *lastEvent) encode(e *Event) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.event != e {
		t.event, t.text = e, append(e.append(nil), '\n')
	}
	return t.text
}

// paced writes to a client that has to keep up.
type paced struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   time.Time
	timeout time.Duration // of a client that takes nothing
	written int
	err     error
}

func pace(w http.ResponseWriter, timeout time.Duration) *paced {
	return &paced{w: w, control: http.NewResponseController(w), begun: time.Now(), timeout: timeout}
}

// allow moves the deadline on. A writer without deadlines has no slow client either.
func (p *paced) allow() {
	_ = p.control.SetWriteDeadline(p.begun.Add(p.timeout + time.Duration(p.written/slowest)*time.Second))
}

func (p *paced) Write(b []byte) (n int, err error) {
	for len(b) > 0 && p.err == nil {
		part := b[:min(len(b), piece)]
		p.allow()
		var took int
		if took, p.err = p.w.Write(part); p.err != nil {
			break
		}
		p.written, n, b = p.written+took, n+took, b[took:]
	}
	return n, p.err
}

// end sees to what the server still holds, which else were written without a deadline.
func (p *paced) end() {
	if p.written == 0 {
		p.allow()
	}
	if p.err == nil {
		p.err = p.control.Flush()
	}
	_ = p.control.SetWriteDeadline(time.Time{}) // as in allow
}

// stream writes an event with a long list, without ever holding its text.
func (p *paced) stream(e *Event) {
	out, head := &pieces{paced: p}, begin(nil)
	head.text("action", e.Action)
	head.name("node")
	out.put(head.b)
	out.node(e.Node)
	out.put([]byte("}\n"))
	out.flush()
}

// pieces are gathered, so that a node of some bytes costs no write.
type pieces struct {
	*paced
	gathered []byte
}

func (t *pieces) put(b []byte) {
	if len(b) >= piece/2 { // a long one is not copied
		t.flush()
		_, _ = t.Write(b) // as in flush
		return
	}
	if t.gathered = append(t.gathered, b...); len(t.gathered) >= piece/2 {
		t.flush()
	}
}

func (t *pieces) flush() {
	_, _ = t.Write(t.gathered) // paced remembers the error
	t.gathered = t.gathered[:0]
}

// node writes what append would, the nodes in it one by one.
func (t *pieces) node(n *Node) {
	if len(n.Nodes) == 0 {
		t.put(n.append(make([]byte, 0, n.textSize())))
		return
	}
	o := begin(nil)
	n.fields(&o)
	o.name("nodes")
	t.put(o.b)
	for i, c := range n.Nodes {
		t.gathered = append(t.gathered, separator(i, '['))
		t.node(c)
		if t.err != nil { // nobody reads the rest
			return
		}
	}
	o = object{b: []byte("]"), hasField: true}
	n.indexes(&o)
	t.put(o.end())
}
