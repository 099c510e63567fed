package tcpstore

import (
	"io"
	"net"
	"runtime"
	"testing"
)

// BenchmarkPoll is what an agent does each second: WAIT and GET of a state of 600 bytes, over TCP.
func BenchmarkPoll(b *testing.B) {
	_, address := serveBench(b)
	c := dialBench(b, address)
	state := make([]byte, 600)
	if _, err := c.Write(message(Set, "/s", string(state))); err != nil {
		b.Fatal(err)
	}
	wait := append([]byte{byte(Wait), 1, 0, 0, 0, 0, 0, 0, 0}, message(Get, "/s")[1:]...)
	get := message(Get, "/s")
	reply := make([]byte, 8+len(state))
	for b.Loop() {
		for _, step := range []struct{ ask, answer []byte }{{wait, reply[:1]}, {get, reply}} {
			if _, err := c.Write(step.ask); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c, step.answer); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkWake lets 1,000 clients wait for a key and sets it. It reports what a waiting client costs in memory, both
// ends of its connection in this process.
func BenchmarkWake(b *testing.B) {
	const clients = 1000
	s, address := serveBench(b)
	setter := dialBench(b, address)
	before := inUse()
	conns := make([]net.Conn, clients)
	for i := range conns {
		conns[i] = dialBench(b, address)
	}
	wait := append([]byte{byte(Wait), 1, 0, 0, 0, 0, 0, 0, 0}, message(Get, "/go")[1:]...)
	var after uint64
	for b.Loop() {
		for _, c := range conns {
			if _, err := c.Write(wait); err != nil {
				b.Fatal(err)
			}
		}
		for s.Stats().Waits < clients {
			runtime.Gosched()
		}
		if after == 0 {
			after = inUse()
		}
		if _, err := setter.Write(message(Set, "/go", "")); err != nil {
			b.Fatal(err)
		}
		for _, c := range conns {
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := setter.Write(message(DeleteKey, "/go")); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(setter, make([]byte, 8)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(after-before)/clients, "B/client")
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

func serveBench(b *testing.B) (*Server, string) {
	b.Helper()
	s := New(DefaultLimits(), nil, Observer{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	return s, l.Addr().String()
}

func dialBench(b *testing.B, address string) net.Conn {
	b.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write([]byte("\x00\xce\xf7\x85\x3c")); err != nil {
		b.Fatal(err)
	}
	return c
}
