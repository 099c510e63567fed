package etcdv3

import (
	"syscall"
	"time"
)

// userTimeout is TCP_USER_TIMEOUT (tcp(7)), which syscall does not name.
const userTimeout = 18

// limitSilence is how long the kernel lets a dial go unanswered, in which it sends two SYN; 0 is its own time. A clock
// of this process would count on while the process is stopped or starved.
func limitSilence(c syscall.RawConn, d time.Duration) {
	// An error leaves the kernel's own time, with which the neighbour's lease ends first.
	_ = c.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(d.Milliseconds()))
	})
}
