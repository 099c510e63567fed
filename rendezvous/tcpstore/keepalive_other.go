//go:build !linux

package tcpstore

import (
	"net"
	"time"
)

// keepAlive lets the system find out that a client's machine is gone. Clients ask for nothing of the kind themselves.
func keepAlive(c net.Conn, dead time.Duration) {
	if t, ok := c.(*net.TCPConn); ok {
		// An error leaves the system's own settings, with which it only takes longer.
		_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: dead / 3, Interval: dead / 9, Count: 6})
	}
}
