package tcpstore

import (
	"net"
	"syscall"
	"time"
)

// userTimeout is TCP_USER_TIMEOUT, which syscall does not name: how long sent data may stay unacknowledged. Without it
// a machine that vanishes while a reply is on its way to it is given up only after a quarter of an hour.
const userTimeout = 18

// keepAlive lets the kernel find out that a client's machine is gone. Clients ask for nothing of the kind themselves.
func keepAlive(c net.Conn, dead time.Duration) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	// An error leaves the system's own settings, with which it only takes longer.
	_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: dead / 3, Interval: dead / 9, Count: 6})
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(dead.Milliseconds()))
	})
}
