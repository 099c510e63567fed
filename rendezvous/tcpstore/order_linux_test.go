package tcpstore

import (
	"fmt"
	"sync"
	"testing"
)

// TestSetBeforeAdd: SET has no reply, so a process that sets by one client and counts by another relies on the order in
// which it sent them. torch's own server keeps it, since it serves all by one thread.
func TestSetBeforeAdd(t *testing.T) {
	const processes, rounds = 4, 500
	_, address := start(t, nil)
	var all sync.WaitGroup
	for p := range processes {
		setter, counter := connect(t, address), connect(t, address)
		setter.send(greeting)
		counter.send(greeting + fmt.Sprintf("04 %q #0", fmt.Sprintf("/warm%d", p)))
		counter.want("#0")
		all.Go(func() {
			for r := range rounds {
				key := fmt.Sprintf("/k%d.%d", p, r)
				setter.send(fmt.Sprintf("01 %q %q", key, "41"))
				counter.send(fmt.Sprintf("04 %q #1", key))
				counter.want("#42")
			}
		})
	}
	all.Wait()
}

// TestOrderOfBusyHost: who is behind others is served all the same where those never end a message, do not read their
// replies, or go away.
func TestOrderOfBusyHost(t *testing.T) {
	s, address := start(t, nil)
	partial, deaf := connect(t, address), connect(t, address)
	partial.send(greeting + "01 #5")
	deaf.send(greeting)
	deaf.say(Set, "/big", string(make([]byte, 4<<20)))
	for range 4 {
		deaf.send(`03 "/big"`)
	}
	until(t, func() bool { return s.Stats().Keys == 1 })
	c := connect(t, address)
	c.send(greeting)
	for r := range 100 {
		if r == 50 {
			_ = deaf.Close()
		}
		c.send(`04 "/n" #1`)
		c.want(fmt.Sprintf("#%d", r+1))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hosts) != 1 {
		t.Errorf("%d hosts, want one", len(s.hosts))
	}
}
