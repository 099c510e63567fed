//go:build linux

package torch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// network is a switch with hosts of their own: namespaces, each of which can be cut off from the rest. This machine is
// on it, too.
type network struct {
	t      *testing.T
	name   string // begins that of each namespace
	prefix string // of the addresses
	hosts  int
}

// mostHosts is how many hosts know each other's names.
const mostHosts = 250

// host is where an agent runs. The zero value of its namespace is this machine.
type host struct {
	namespace, address string
	hosts              string // the file that names it
}

// here is this machine.
var here = host{address: "127.0.0.1"}

// newNetwork makes a switch, which goes with the test.
func newNetwork(t *testing.T) *network {
	t.Helper()
	id := started.Add(1)
	n := &network{
		t: t, name: fmt.Sprintf("tt%d-%d", os.Getpid(), id),
		prefix: fmt.Sprintf("10.%d.%d.", 180+os.Getpid()%60, (os.Getpid()/60+int(id))%256),
	}
	t.Cleanup(func() { // what is in them goes, too
		for _, ns := range n.namespaces() {
			if out, err := exec.Command("ip", "netns", "del", ns).CombinedOutput(); err != nil {
				t.Errorf("removing %s: %v\n%s", ns, err, out)
			}
		}
	})
	n.ip("netns add", n.name)
	n.ip("-n", n.name, "link add bridge type bridge forward_delay 0")
	n.ip("-n", n.name, "link set bridge up")
	n.attach("1", n.name+"h", "")
	return n
}

// namespaces are those of the network, the switch last: its hosts' interfaces end with it.
func (n *network) namespaces() []string {
	all := []string{}
	for i := 1; i <= n.hosts; i++ {
		all = append(all, n.hostName(i))
	}
	return append(all, n.name)
}

func (n *network) hostName(i int) string { return fmt.Sprintf("%s-%d", n.name, i) }

// attach connects an interface of a namespace, or of this machine, to the switch. The switch's end has its address for
// a name.
func (n *network) attach(number, name, namespace string) {
	n.t.Helper()
	n.ip("-n", n.name, "link add", n.port(number), "type veth peer name", "x"+number)
	at := []string{"-n", namespace}
	if namespace == "" {
		at, namespace = nil, "1" // the namespace of process 1
	}
	n.ip("-n", n.name, "link set", "x"+number, "netns", namespace, "name", name)
	n.ip("-n", n.name, "link set", n.port(number), "master bridge up")
	n.ip(append(at, "addr add", n.prefix+number+"/24", "dev", name)...)
	n.ip(append(at, "link set", name, "up")...)
}

func (n *network) port(number string) string { return "port" + number }

// ip runs a command of iproute2, whose words may stand together.
func (n *network) ip(words ...string) {
	n.t.Helper()
	args := strings.Fields(strings.Join(words, " "))
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// nextHost is where the next agent is to run.
func (r *run) nextHost() host {
	r.t.Helper()
	if r.network == nil {
		return here
	}
	n := r.network
	n.hosts++
	number := fmt.Sprint(n.hosts + 1)
	h := host{namespace: n.hostName(n.hosts), address: n.prefix + number}
	n.ip("netns add", h.namespace)
	n.ip("-n", h.namespace, "link set lo up")
	n.attach(number, "eth0", h.namespace)
	h.hosts = filepath.Join(shared, h.namespace+".hosts")
	text := "127.0.0.1 localhost\n"
	for i := range mostHosts {
		text += fmt.Sprintf("%s%d %s\n", n.prefix, i+2, n.hostName(i+1))
	}
	if err := os.WriteFile(h.hosts, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return h
}

// inside is a command as it runs on a host.
func (h host) inside(command []string) []string {
	if h.namespace == "" {
		return command
	}
	const enter = `hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"`
	return append([]string{
		"ip", "netns", "exec", h.namespace, "unshare", "--uts", "sh", "-c", enter, "enter", h.namespace, h.hosts,
	}, command...)
}

func (h host) environment() []string {
	if h.namespace == "" {
		return nil
	}
	return []string{"GLOO_SOCKET_IFNAME=eth0"}
}

// cut takes a host's cable out, or this machine's where the host is none of the network's.
func (n *network) cut(h host) { n.cable(h, "down") }

func (n *network) mend(h host) { n.cable(h, "up") }

func (n *network) cable(h host, state string) {
	n.t.Helper()
	number := strings.TrimPrefix(h.address, n.prefix)
	if h.namespace == "" {
		number = "1"
	}
	n.ip("-n", n.name, "link set", n.port(number), state)
}
