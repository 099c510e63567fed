package launcher

import (
	"net"
	"os"
	"strings"
)

// address is where others reach this machine: the address that its packets to the store come from, as it needs no name
// to be resolved. Beside a store on this machine that would be a loopback address: then it is the host's name.
func (o *Options) address() string {
	if o.localAddr != "" {
		return o.localAddr
	}
	if o.standalone {
		return "127.0.0.1"
	}
	first := o.endpoints()[0]
	if _, rest, ok := strings.Cut(first, "://"); ok {
		first = rest
	}
	if conn, err := net.Dial("udp", first); err == nil { // sends nothing
		ip := conn.LocalAddr().(*net.UDPAddr).IP
		_ = conn.Close()
		if !ip.IsLoopback() {
			return ip.String()
		}
	}
	name, err := os.Hostname()
	if err == nil {
		_, err = net.LookupHost(name)
	}
	if err != nil {
		return "127.0.0.1"
	}
	return name
}
