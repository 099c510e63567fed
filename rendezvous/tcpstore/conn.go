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
	waiting int // bytes in out and under way
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

// send queues a reply. It never blocks: who calls it serves all.
func (c *conn) send(r Reply) {
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

// unread is how many bytes wait for its client.
func (c *conn) unread() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

// room waits until the client has read most of its replies; false where it never will. Meanwhile nobody waits for what it
// has sent.
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
	var sending [][]byte // as it was queued: what is written goes out of the buffers
	for {
		c.mu.Lock()
		c.server.unsent.remove(sending)
		for len(c.out) == 0 && !c.stopped {
			c.changed.Wait()
		}
		out, n := c.out, c.waiting
		c.out = nil
		clear(sending)
		sending = append(sending[:0], out...)
		stopped := c.stopped
		c.mu.Unlock()
		if stopped {
			c.server.unsent.remove(sending)
			c.mu.Lock()
			c.waiting = 0
			c.mu.Unlock()
			close(c.silent)
			return
		}
		err := c.transmit(out)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.server.refused(c, refuse("slow", "replies were not read for %s", c.server.limits.Unread))
		}
		if err != nil {
			c.stop() // the reader finds it closed
			continue
		}
		c.mu.Lock()
		c.waiting -= n
		c.changed.Broadcast()
		c.mu.Unlock()
	}
}

// stop closes the connection; reader and writer end by it.
func (c *conn) stop() {
	c.mu.Lock()
	c.stopped = true
	c.changed.Broadcast()
	c.mu.Unlock()
	_ = c.net.Close() // nobody is left to hear of an error
}
