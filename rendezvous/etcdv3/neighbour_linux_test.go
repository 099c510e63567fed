package etcdv3

import (
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestSilent: a port whose kernel answers nothing, here one whose queue is full, is given up by the kernel in seconds
// and not in minutes, and is a loss.
func TestSilent(t *testing.T) {
	t.Parallel()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(at.(*syscall.SockaddrInet4).Port))
	first, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	l := &link{addr: addr, greeting: greeting("a"), broken: time.Now()}
	l.reached.Store(true)
	if err := l.hold(within(t)); !l.gone(err) || !silent(err) {
		t.Errorf("%v", err)
	}
}
