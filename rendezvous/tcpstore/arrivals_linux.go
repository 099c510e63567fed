package tcpstore

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// arrivals tells in which order bytes came to connections: the kernel keeps the list of an epoll instance in that
// order. Go's own is read by the runtime, so this is a second one.
type arrivals struct {
	epoll  int // -1 where there is none, and order is not kept
	events [64]syscall.EpollEvent
}

func newArrivals() *arrivals {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		epoll = -1
	}
	return &arrivals{epoll: epoll}
}

// ordered says whether it tells of connections.
func (a *arrivals) ordered() bool { return a.epoll >= 0 }

// watch lasts until the connection is closed.
func (a *arrivals) watch(raw syscall.RawConn, id int32) {
	if a.epoll < 0 || raw == nil {
		return
	}
	const edge = 1 << 31 // EPOLLET, which syscall has as a negative number
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.EpollCtl(a.epoll, syscall.EPOLL_CTL_ADD, int(fd),
			&syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | edge, Fd: id})
	})
}

// drain names all to which bytes have come since, the first one first.
func (a *arrivals) drain(note func(id int32)) {
	for a.epoll >= 0 {
		n, err := syscall.EpollWait(a.epoll, a.events[:], 0)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		for _, e := range a.events[:max(n, 0)] {
			note(e.Fd)
		}
		if n < len(a.events) {
			return
		}
	}
}

func (a *arrivals) close() {
	if a.epoll >= 0 {
		_ = syscall.Close(a.epoll)
		a.epoll = -1
	}
}

// Read is the connection's, in the order in which bytes came.
func (c *conn) Read(p []byte) (n int, err error) {
	if c.raw == nil || len(p) == 0 {
		return c.net.Read(p)
	}
	var failed error
	err = c.raw.Read(func(fd uintptr) bool {
		return !c.server.read(c, func() (int, bool) {
			n, failed = read(int(fd), p)
			return n, errors.Is(failed, syscall.EAGAIN)
		})
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, os.NewSyscallError("read", failed)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// drained says that nothing has come that is not read.
func (c *conn) drained() (none bool) {
	if c.raw == nil {
		return true
	}
	err := c.raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		none = errors.Is(err, syscall.EAGAIN)
	})
	return none || err != nil
}

// read is the system call, which signals may interrupt.
func read(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, p)
		if !errors.Is(err, syscall.EINTR) {
			return max(n, 0), err
		}
	}
}
