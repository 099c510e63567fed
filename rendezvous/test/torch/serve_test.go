//go:build linux

package torch

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/test/ports"
)

// serve starts tegen-rendezvous with the store in it.
func serve(t *testing.T) *server {
	t.Helper()
	s := newServer(t, "--store=embedded", "--data-dir="+t.TempDir())
	s.start()
	return s
}

// newServer is tegen-rendezvous on addresses of its own, to be started.
func newServer(t *testing.T, args ...string) *server {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, address: ports.Address(t), tcpstore: ports.Address(t)}
	status := ports.Address(t)
	s.ready = "http://" + status + "/readyz"
	s.command = append([]string{
		program, "serve", "--listen-client=" + s.address, "--listen-c10d=" + s.tcpstore, "--listen-status=" + status,
		"--log-format=text",
	}, args...)
	return s
}

// gateways starts two servers without a store of their own on one etcd. Each tells its clients of both where a flag
// says, or to stay where they came, as they do with a Service.
func gateways(t *testing.T, advertise bool) (both [2]*server) {
	t.Helper()
	endpoint := etcdV3(t)
	for i := range both {
		both[i] = newServer(t, "--store=etcd", "--endpoints="+endpoint)
	}
	for _, s := range both {
		if advertise {
			s.command = append(s.command, fmt.Sprintf("--advertise-client-urls=http://%s,http://%s", both[0].address,
				both[1].address))
		}
		s.start()
	}
	return both
}

// etcdV3 starts an etcd whose v2 API is gone, as it is from clusters of today, and returns its address.
func etcdV3(t *testing.T) string {
	t.Helper()
	address := ports.Address(t)
	s, err := store.Embedded{Dir: t.TempDir(), Listen: address}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return address
}

// forwarder stands for a Service in front of servers: it hands each connection to one of those that accept it.
// kube-proxy does so once the lost pod is out of the EndpointSlice; until then it would send some to the dead one, and
// a client dials again.
func forwarder(t *testing.T, servers ...*server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var next atomic.Int64
	conns := map[net.Conn]bool{}
	var mu sync.Mutex
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			all.Go(func() {
				mu.Lock()
				conns[client] = true
				mu.Unlock()
				forward(client, servers, int(next.Add(1)))
			})
		}
	})
	t.Cleanup(func() {
		l.Close() //nolint:errcheck // it has served its purpose
		mu.Lock()
		for c := range conns {
			c.Close() //nolint:errcheck // most are closed already
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

// forward carries a connection to the first of the servers, in turn, that accepts it.
func forward(client net.Conn, servers []*server, turn int) {
	defer client.Close() //nolint:errcheck // either side may have closed it
	for i := range servers {
		server, err := net.Dial("tcp", servers[(turn+i)%len(servers)].address)
		if err != nil {
			continue // it was killed
		}
		defer server.Close() //nolint:errcheck // either side may have closed it
		done := make(chan struct{}, 2)
		go func() { _, _ = io.Copy(server, client); done <- struct{}{} }() // how it ended is seen by the other side
		go func() { _, _ = io.Copy(client, server); done <- struct{}{} }()
		<-done
		return
	}
}
