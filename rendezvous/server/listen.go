package server

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guarded refuses requests that reach a loopback address under a foreign name. A page that somebody on this machine
// looks at may have its own name lead to 127.0.0.1 (DNS rebinding), and could then read and write what has no password.
// Where a listener is open to other machines, the network decides who may connect.
func guarded(at net.Addr, names []string, next http.Handler) http.Handler {
	if tcp, ok := at.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ours(r.Host, names) {
			reply(w, http.StatusForbidden, "the Host of this request is not this machine: a listener on a loopback "+
				"address answers to localhost, to loopback addresses and to the hosts of --advertise-client-urls")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// local reports whether a request comes from this machine, and not by a page whose name resolves to it.
func local(r *http.Request, names []string) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback() && ours(r.Host, names)
}

func ours(host string, names []string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return true
	}
	// HTTP/1.0 has no Host, and browsers do not speak it
	return host == "" || host == "localhost" || slices.Contains(names, host)
}

// sendBuffer bounds what the kernel holds for a client that does not read. By itself it lets that grow to 4 MB, which
// counts against the memory of a container, too.
const sendBuffer = 256 << 10

// buffered is a listener of connections with such a buffer.
type buffered struct{ net.Listener }

func (b buffered) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if tcp, ok := c.(interface{ SetWriteBuffer(int) error }); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // without it the kernel's own holds
	}
	return c, err
}
