package proxystore

import (
	"strconv"
	"sync/atomic"

	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// How a value was written: its first byte in the etcd.
const (
	// loud is what ends the waits of others.
	loud = 'v'
	// quiet is the count of a BARRIER that is not complete. The key is there, but who waits for it hears nothing, as in
	// torch's server.
	quiet = 'b'
)

// value is a key's at a revision; absent where that is 0.
type value struct {
	data  []byte
	quiet bool
	rev   int64
}

func (v value) there() bool { return v.rev > 0 }

func encode(data []byte, isQuiet bool) string {
	if isQuiet {
		return string(quiet) + string(data)
	}
	return string(loud) + string(data)
}

func decode(stored []byte, rev int64) value {
	if len(stored) == 0 { // nobody of ours has written it
		return value{rev: rev}
	}
	return value{data: stored[1:], quiet: stored[0] == quiet, rev: rev}
}

// change is what an operation makes of a key.
type change struct {
	write  bool // otherwise reply is all
	remove bool
	data   []byte
	quiet  bool
	number int64 // of the reply, which is noted with the write
	reply  tcpstore.Reply
}

// plan says what a request makes of a key's value. The error is a *tcpstore.Refusal.
func plan(q tcpstore.Request, now value) (change, error) {
	switch q.Op {
	case tcpstore.Set:
		return change{write: true, data: q.Values[0]}, nil
	case tcpstore.Append:
		return change{write: true, data: append(now.data[:len(now.data):len(now.data)], q.Values[0]...)}, nil
	case tcpstore.CompareSet:
		expected, v := q.Values[0], q.Values[1]
		switch {
		case now.there() && string(now.data) != string(expected):
			return change{reply: tcpstore.Reply{}.Value(now.data)}, nil
		case !now.there() && len(expected) > 0:
			return change{reply: tcpstore.Reply{}.Value(expected)}, nil
		}
		return change{write: true, data: v}, nil
	case tcpstore.DeleteKey:
		if !now.there() {
			return change{reply: tcpstore.Number(0)}, nil
		}
		return change{write: true, remove: true}, nil
	}
	n, by := int64(0), q.Number
	if q.Op == tcpstore.Barrier {
		by = 1
	}
	if now.there() {
		var err error
		if n, err = tcpstore.CountFrom(q.Keys[0], now.data); err != nil {
			return change{}, err
		}
	}
	n += by
	return change{
		write: true, data: strconv.AppendInt(nil, n, 10), quiet: q.Op == tcpstore.Barrier && n < q.Number, number: n,
	}, nil
}

// written is the reply to a request that was carried out with a number; nil where there is none, or it is owed.
func written(q tcpstore.Request, number int64) tcpstore.Reply {
	switch q.Op {
	case tcpstore.CompareSet:
		return tcpstore.Reply{}.Value(q.Values[1])
	case tcpstore.Add:
		return tcpstore.Number(number)
	case tcpstore.DeleteKey:
		return tcpstore.Number(1)
	case tcpstore.Barrier:
		if number >= q.Number {
			return tcpstore.Status(0)
		}
	}
	return nil
}

// writtenBy returns the value that a request has written at a revision, as far as the request alone tells it.
func writtenBy(q tcpstore.Request, rev int64) value {
	if q.Op != tcpstore.Set && q.Op != tcpstore.CompareSet {
		return value{}
	}
	return value{data: q.Values[len(q.Values)-1], rev: rev}
}

// seen is what this engine knows of keys: a guess, which transactions hold against what is there.
type seen struct {
	values   map[string]value
	bytes    int
	stateKey string
	state    atomic.Pointer[[]byte] // of torch's rendezvous, for other goroutines; nil if it is unknown
}

// mostSeen bounds the guesses. An agent's are of a few keys.
const mostSeen = 16 << 20

func (s *seen) clear() {
	s.values, s.bytes = map[string]value{}, 0
	s.state.Store(nil)
}

func (s *seen) put(key string, v value) {
	s.bytes -= len(s.values[key].data)
	if !v.there() {
		delete(s.values, key)
		if key == s.stateKey {
			s.state.Store(nil)
		}
		return
	}
	if s.bytes += len(v.data); s.bytes > mostSeen || len(s.values) > 1<<16 {
		s.clear()
		s.bytes = len(v.data)
	}
	s.values[key] = v
	if key == s.stateKey {
		s.state.Store(&v.data)
	}
}

// all says whether every key was there when it was last looked at.
func (s *seen) all(keys []string) bool {
	for _, k := range keys {
		if !s.values[k].there() {
			return false
		}
	}
	return true
}
