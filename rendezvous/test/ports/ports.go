// Package ports chooses TCP ports for the servers of tests and benches that cannot choose one for themselves.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports are chosen from first until beyond. That is below the ports that Linux (32768 and more) and the others (49152)
// give to outgoing connections and to whoever listens on port 0, and below Kubernetes' node ports (30000): one that the
// system had chosen was taken again by a connection of another test before the server listened there.
const (
	first  = 12000
	beyond = 30000
)

var (
	mu     sync.Mutex
	chosen = map[int]bool{} // no port comes twice in a process
)

// Free returns n different ports of 127.0.0.1 on which nobody listens now. Another process may still take one: of
// 18,000 ports, it would have to choose the same.
func Free(n int) ([]int, error) {
	mu.Lock()
	defer mu.Unlock()
	var ports []int
	for range beyond - first {
		if len(ports) == n {
			return ports, nil
		}
		port := first + rand.IntN(beyond-first)
		if chosen[port] {
			continue
		}
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue // it is taken
		}
		if err := l.Close(); err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		chosen[port] = true
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("looking for %d free ports from %d to %d: found %d", n, first, beyond-1, len(ports))
}

// Addresses returns 127.0.0.1 with each of n free ports.
func Addresses(n int) ([]string, error) {
	ports, err := Free(n)
	var all []string
	for _, p := range ports {
		all = append(all, address(p))
	}
	return all, err
}

// Address is one of them for a test.
func Address(t testing.TB) string {
	t.Helper()
	all, err := Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
