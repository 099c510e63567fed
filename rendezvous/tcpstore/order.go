package tcpstore

import (
	"container/list"
	"time"
)

// patience is how long a request waits for those of the same host that came before it. It is a bound for what was not
// foreseen: who came before is being carried out, or reads, or is taken out of the queue.
const patience = 100 * time.Millisecond

// host is what is known of the connections of one address.
//
// A client process may have several, and SET and its like have no reply: who sets by one and counts by another relies
// on the order of sending, which torch's own server keeps, since it serves all by one thread. Here each connection has
// a goroutine, so the kernel is asked in which order the bytes came, and a request waits for what came before it from
// its own host. Other hosts' clients do not know what was sent first.
type host struct {
	conns  int
	spoken int       // of the old dialect that have spoken
	queue  list.List // of those whose bytes have come and are not all carried out, in the order in which they came
}

// turn is a connection's place in its host's queue; the server's lock guards it.
type turn struct {
	id      int32
	place   *list.Element // nil where nothing is known to have come
	passed  time.Time     // until then nobody waits for it
	stalled bool          // it reads no more before its client does
	wake    chan struct{} // it may be the first now
}

// noteArrivals puts connections whose bytes have come since into their hosts' queues; the lock is held.
func (s *Server) noteArrivals() {
	s.arrivals.drain(func(id int32) {
		if c := s.byID[id]; c != nil {
			s.enqueue(c)
		}
	})
}

// read is one that does not block. What came before is noted first, and nobody is served meanwhile: so whatever is not
// carried out is either in the queue, or the kernel tells of it.
func (s *Server) read(c *conn, once func() (n int, again bool)) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteArrivals()
	n, again := once()
	switch {
	case again:
		s.dequeue(c)
	case n > 0:
		s.enqueue(c)
	}
	return again
}

func (s *Server) enqueue(c *conn) {
	if c.turn.place == nil && !c.turn.stalled && (c.turn.passed.IsZero() || time.Now().After(c.turn.passed)) {
		c.turn.place = s.hosts[c.host].queue.PushBack(c)
	}
}

// dequeue lets the next one have its turn; the lock is held.
func (s *Server) dequeue(c *conn) {
	if c.turn.place == nil {
		return
	}
	queue := &s.hosts[c.host].queue
	queue.Remove(c.turn.place)
	c.turn.place = nil
	if first := queue.Front(); first != nil {
		select {
		case first.Value.(*conn).turn.wake <- struct{}{}:
		default: // it knows already
		}
	}
}

// awaitTurn lets what came before from the same host be carried out first. The lock is held before and after, and no
// moment between the last look and the return is without it.
//
// Whose client waits for the reply goes behind all that has come by now: the order in which the kernel names two
// connections is now and then not that of the bytes (in some of a thousand cases on a busy machine), and nobody can
// have sent anything that relies on this request.
func (s *Server) awaitTurn(c *conn, replied bool) {
	queue := &s.hosts[c.host].queue
	if replied {
		s.noteArrivals()
		if first := queue.Front(); first != nil && first == c.turn.place {
			s.dequeue(c)
		}
		if queue.Len() == 0 {
			return
		}
		if c.turn.place != nil {
			queue.MoveToBack(c.turn.place)
		}
	} else if queue.Len() == 0 || queue.Front() == c.turn.place {
		return
	}
	s.enqueue(c) // so that it is woken
	over := time.NewTimer(patience / 2)
	defer over.Stop()
	again := false // the first half may have passed while this process was given no processor
	for first := queue.Front(); first != nil && first != c.turn.place && c.turn.place != nil; first = queue.Front() {
		s.mu.Unlock()
		select {
		case <-c.turn.wake:
			s.mu.Lock()
		case <-over.C:
			s.mu.Lock()
			if queue.Front() != c.turn.place && !again {
				again = true
				over.Reset(patience / 2)
				continue
			}
			if queue.Front() != c.turn.place {
				s.pass(queue)
			}
			return
		}
	}
}

// busy is how long nobody waits for a connection that has kept another one waiting for too long: one that sends without
// a pause is first in its host's queue for ever, and each request of the others would wait.
const busy = time.Second

// pass lets others go before the one that is first; the lock is held.
func (s *Server) pass(queue *list.List) {
	if first := queue.Front(); first != nil {
		c := first.Value.(*conn)
		c.turn.passed = time.Now().Add(busy)
		s.dequeue(c)
	}
}

// finish takes a connection out of the queue where all that has come was carried out: before it has its reply, after
// which its client may send more. The lock is held.
func (s *Server) finish(c *conn) {
	if c.decoder.Empty() && c.drained() {
		s.dequeue(c)
	}
}

// stall takes a connection whose client does not read its replies out of the queue for so long.
func (s *Server) stall(c *conn, stalled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.turn.stalled = stalled; stalled {
		s.dequeue(c)
	} else if c.raw != nil && s.arrivals.ordered() {
		s.enqueue(c) // until a read finds that there is nothing
	}
}

// arrive makes a connection known, leave unknown; the lock is held.
func (s *Server) arrive(c *conn) {
	h := s.hosts[c.host]
	if h == nil {
		h = &host{}
		s.hosts[c.host] = h
	}
	h.conns++
	s.ids++
	c.turn = turn{id: s.ids, wake: make(chan struct{}, 1)}
	s.byID[c.turn.id] = c
	s.arrivals.watch(c.raw, c.turn.id)
}

func (s *Server) leave(c *conn) {
	s.dequeue(c)
	delete(s.byID, c.turn.id)
	h := s.hosts[c.host]
	if h.conns--; h.conns == 0 {
		delete(s.hosts, c.host)
	}
}
