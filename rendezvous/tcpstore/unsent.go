package tcpstore

import (
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// part is how much is written to a client under one deadline.
	part = 256 << 10
	// small is what is counted for each reply that holds it: to look for it would cost more.
	small = 4 << 10
)

// unsent counts the bytes that replies keep in memory until clients have taken them. A value goes out from where it is
// stored, so one that a thousand clients are sent is in memory once, and counts once.
type unsent struct {
	mu     sync.Mutex
	bytes  int
	values map[*byte]*holders // by where it begins
}

// holders are the replies that hold a value.
type holders struct{ replies, bytes int }

func (u *unsent) add(r Reply) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, b := range r {
		if len(b) <= small {
			u.bytes += len(b)
			continue
		}
		h := u.values[&b[0]]
		if h == nil {
			h = &holders{}
			u.values[&b[0]] = h
		}
		h.replies++
		if more := len(b) - h.bytes; more > 0 { // APPEND makes a value longer where it is
			h.bytes += more
			u.bytes += more
		}
	}
}

func (u *unsent) remove(parts [][]byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, b := range parts {
		if len(b) <= small {
			u.bytes -= len(b)
			continue
		}
		h := u.values[&b[0]]
		if h.replies--; h.replies == 0 {
			u.bytes -= h.bytes
			delete(u.values, &b[0])
		}
	}
}

// share is what parts that were added take, each divided among all replies that hold it.
func (u *unsent) share(parts [][]byte) (bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, b := range parts {
		if len(b) <= small {
			bytes += len(b)
			continue
		}
		h := u.values[&b[0]]
		bytes += h.bytes / h.replies
	}
	return bytes
}

func (u *unsent) sum() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.bytes
}

// transmit writes replies to a client that has to take them. A client that is cut off does not come back, and its run
// ends; so one that takes a piece now and then is left alone, as small as it may be.
func (c *conn) transmit(out net.Buffers) error {
	for len(out) > 0 {
		var next net.Buffers
		next, out = cutAt(out, part)
		if err := c.transmitPart(next); err != nil {
			return err
		}
	}
	return nil
}

// transmitPart goes on with what is left for as long as the client has taken anything within the time.
func (c *conn) transmitPart(out net.Buffers) error {
	for {
		if err := c.net.SetWriteDeadline(time.Now().Add(c.server.limits.Unread)); err != nil {
			return err
		}
		n, err := out.WriteTo(c.net) // which takes out of the buffers what it has written
		if err == nil || n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
}

// cutAt splits buffers after so many bytes.
func cutAt(b net.Buffers, bytes int) (first, rest net.Buffers) {
	for i := range b {
		if len(b[i]) > bytes {
			first = append(b[:i:i], b[i][:bytes])
			b[i] = b[i][bytes:]
			return first, b[i:]
		}
		bytes -= len(b[i])
	}
	return b, nil
}

// relieve cuts off clients that do not read, the one for which most is kept first, until what is kept is within the
// limit. One at a time: what it held is only gone once its connection is.
func (s *Server) relieve() {
	if s.unsent.sum() <= s.limits.Unsent || !s.relieving.CompareAndSwap(false, true) {
		return
	}
	s.done.Go(func() {
		defer s.relieving.Store(false)
		for s.unsent.sum() > s.limits.Unsent {
			c := s.mostUnsent()
			if c == nil {
				return
			}
			s.refused(c, refuse("memory", "replies that clients have not read take more than %d bytes",
				s.limits.Unsent))
			c.stop()
			<-c.silent
		}
	})
}

func (s *Server) mostUnsent() (worst *conn) {
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock() // to look at all that waits may take a while
	most := 0
	for _, c := range conns {
		if n := c.unread(); n > most {
			worst, most = c, n
		}
	}
	return worst
}
