package main

import (
	"io"
	"net"
	"sync"
)

// forwarder passes connections on, and may keep back all that they carry, as a network that loses a node does.
type forwarder struct {
	listener net.Listener
	mu       sync.Mutex
	passes   *sync.Cond
	paused   bool
	closed   bool
	target   string
	open     []net.Conn
}

func forward(target string) (*forwarder, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed with the forwarder
	if err != nil {
		return nil, err
	}
	f := &forwarder{listener: l, target: target}
	f.passes = sync.NewCond(&f.mu)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.carry(c)
		}
	}()
	return f, nil
}

func (f *forwarder) address() string { return f.listener.Addr().String() }

// turn sends new connections elsewhere.
func (f *forwarder) turn(target string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.target = target
}

func (f *forwarder) pause(paused bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused = paused
	f.passes.Broadcast()
}

func (f *forwarder) close() {
	_ = f.listener.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.passes.Broadcast()
	for _, c := range f.open {
		_ = c.Close()
	}
}

func (f *forwarder) carry(in net.Conn) {
	f.await()
	f.mu.Lock()
	target := f.target
	f.mu.Unlock()
	out, err := net.Dial("tcp", target) //nolint:noctx // to this machine
	if err != nil {
		_ = in.Close()
		return
	}
	f.mu.Lock()
	f.open = append(f.open, in, out)
	f.mu.Unlock()
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(held{way[1], f}, way[0]) // the other end has gone
			_ = in.Close()
			_ = out.Close()
		}()
	}
}

// await waits while all is kept back.
func (f *forwarder) await() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.paused && !f.closed {
		f.passes.Wait()
	}
}

// held writes once nothing is kept back.
type held struct {
	net.Conn
	f *forwarder
}

func (h held) Write(b []byte) (int, error) {
	h.f.await()
	return h.Conn.Write(b)
}
