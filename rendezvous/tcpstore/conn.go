package tcpstore

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// backlog is how many bytes of replies may wait for a client before no more requests of it are read.
const backlog = 1 << 20

// keptParts is how long a list of parts under way may have grown and be used again: a longer one would outlive by far
// the one burst of replies that needed it.
const keptParts = 1 << 10

// conn is a client: one goroutine reads and carries out, another writes, because replies also come from what others do.
type conn struct {
	server  *Server
	net     net.Conn
	host    string
	decoder *Decoder
	raw     syscall.RawConn // nil where the connection is none of the system's
	member  *Member         // nil before the first message; the server's lock guards it
	turn    turn            // so it does this

	mu      sync.Mutex
	changed sync.Cond
	out     net.Buffers
	sending [][]byte // what is under way, as it was queued: what is written goes out of the buffers
	waiting int      // bytes in out and under way
	stopped bool
	silent  chan struct{} // closed once nothing more is written, and nothing is kept for it
}

func newConn(s *Server, nc net.Conn) *conn {
	host, _, err := net.SplitHostPort(nc.RemoteAddr().String())
	if err != nil {
		host = nc.RemoteAddr().String()
	}
	c := &conn{server: s, net: nc, host: host, silent: make(chan struct{})}
	if sc, ok := nc.(syscall.Conn); ok {
		if c.raw, err = sc.SyscallConn(); err != nil {
			c.raw = nil
		}
	}
	c.changed.L = &c.mu
	c.decoder = NewDecoder(c, s.limits.Lengths, s.grow, s.release)
	return c
}

func (c *conn) serve() {
	keepAlive(c.net, c.server.limits.DeadPeer)
	var writer sync.WaitGroup
	writer.Go(c.write)
	err := c.read()
	c.server.refused(c, err)
	if err := ending(err); err != nil {
		c.server.log.Debug("TCPStore client is gone", "client", c.host, "error", err)
	}
	c.decoder.Release()
	c.server.left(c)
	writer.Wait()
}

// read carries out messages until there are no more.
func (c *conn) read() error {
	q, err := c.first()
	for ; err == nil; q, err = c.decoder.Next() {
		err := c.server.do(c, q)
		c.decoder.Release()
		if err != nil {
			return err
		}
		if !c.room() {
			return net.ErrClosed
		}
	}
	return err
}

// first is the first message, for which there is a limit of time: afterwards there is none, because a client whose
// connection is cut does not come back. A connection on which nothing was ever sent may stay where it is the second one
// of a client of the old dialect.
func (c *conn) first() (Request, error) {
	for {
		if err := c.net.SetReadDeadline(time.Now().Add(c.server.limits.First)); err != nil {
			return Request{}, err
		}
		q, err := c.decoder.Next()
		switch {
		case err == nil:
			return q, c.net.SetReadDeadline(time.Time{})
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return q, err
		case !c.decoder.Silent():
			return q, refuse("slow", "no whole message in %s", c.server.limits.First)
		case !c.server.accompanied(c):
			return q, refuse("silent", "no message in %s", c.server.limits.First)
		}
	}
}

// Dialect is what the client speaks.
func (c *conn) Dialect() Dialect { return c.decoder.Dialect() }

// Refuse cuts the client off.
func (c *conn) Refuse(r *Refusal) {
	c.server.refused(c, r)
	c.stop()
}

// Send queues a reply. It never blocks: who calls it serves all.
func (c *conn) Send(r Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	c.server.unsent.add(r)
	c.out = append(c.out, r...)
	c.waiting += r.Len()
	c.changed.Broadcast()
}

// unread is how many bytes are kept because its client has not read them: its share of those that others are sent, too.
func (c *conn) unread() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.unsent.share(c.out) + c.server.unsent.share(c.sending)
}

// room waits until the client has read most of its replies; false where it never will. Meanwhile nobody waits for what
// it has sent.
func (c *conn) room() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	stalled := false
	for c.waiting > backlog && !c.stopped {
		if stalled {
			c.changed.Wait()
			continue
		}
		stalled = true
		c.stall(true)
	}
	if stalled {
		c.stall(false)
	}
	return !c.stopped
}

// stall tells the server, whose lock comes before this one's.
func (c *conn) stall(stalled bool) {
	c.mu.Unlock()
	defer c.mu.Lock()
	c.server.stall(c, stalled)
}

// write sends what is queued until the connection is stopped.
func (c *conn) write() {
	defer close(c.silent)
	sent := 0
	for {
		out, bytes := c.take(sent)
		if out == nil {
			return
		}
		err := c.transmit(out)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.server.refused(c, refuse("slow", "replies were not read for %s", c.server.limits.Unread))
		}
		if err != nil {
			c.stop() // the reader finds it closed
		}
		sent = bytes
	}
}

// take gives back what was sent before it waits for more: a client may ask for nothing more for hours, and what it was
// sent may long have been replaced by others. It returns nil once the connection is stopped.
func (c *conn) take(sent int) (out net.Buffers, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.let()
	c.waiting -= sent
	c.changed.Broadcast()
	for len(c.out) == 0 && !c.stopped {
		c.changed.Wait()
	}
	out, bytes, c.out = c.out, c.waiting, nil
	c.sending = append(c.sending, out...)
	if c.stopped {
		c.let()
		c.waiting = 0
		return nil, 0
	}
	return out, bytes
}

// let lets go of the replies that were under way; the lock is held.
func (c *conn) let() {
	c.server.unsent.remove(c.sending)
	if cap(c.sending) > keptParts {
		c.sending = nil
		return
	}
	clear(c.sending)
	c.sending = c.sending[:0]
}

// stop closes the connection; reader and writer end by it.
func (c *conn) stop() {
	c.mu.Lock()
	c.stopped = true
	c.changed.Broadcast()
	c.mu.Unlock()
	_ = c.net.Close() // nobody is left to hear of an error
}
