package tcpstore

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/test/wiretest"
)

// FuzzStore lets three clients of any dialect send anything, and holds the store against its own sums: nothing is
// counted wrong, nobody gets more than one reply, and nothing is left when all have gone.
func FuzzStore(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.txt")
	for _, name := range names {
		var sent []byte
		for _, step := range wiretest.Transcript(f, name) {
			if step.Sent {
				sent = append(sent, step.Bytes...)
			}
		}
		f.Add(sent, sent, []byte("\x00\xce\xf7\x85\x3c"))
	}
	f.Add([]byte("\x01\xff\xff\xff\xff\xff\xff\xff\xff"), []byte{0}, []byte{0, 0xce, 0xf7})
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		s := NewStore(Bounds{Runs: 4, Keys: 8, RunBytes: 1 << 15, Bytes: 1 << 16, MemberWaits: 4, Waits: 6})
		held := 0
		var members []*Member
		var streams []*Decoder
		for _, in := range [][]byte{a, b, c} {
			d := NewDecoder(bytes.NewReader(in), Lengths{Key: 100, Value: 1000, List: 20, Message: 4000},
				func(n int) error { held += n; return nil }, func(n int) { held -= n })
			streams, members = append(streams, d), append(members, nil)
		}
		for open := len(streams); open > 0; {
			for i, d := range streams {
				if d == nil {
					continue
				}
				q, err := d.Next()
				if err == nil {
					if members[i] == nil {
						members[i] = s.Join(d.Dialect(), nil)
					}
					_, err = s.Do(members[i], q, time.Time{})
				}
				d.Release()
				if err != nil {
					streams[i] = nil
					open--
					if members[i] != nil {
						s.Leave(members[i])
					}
				}
				consistent(t, s)
			}
		}
		if held != 0 {
			t.Errorf("%d bytes of messages are held", held)
		}
		if got := s.Sums(); got != (Sums{}) {
			t.Errorf("left: %+v", got)
		}
	})
}

// consistent counts everything again.
func consistent(t *testing.T, s *Store) {
	t.Helper()
	keys, total, members := 0, 0, map[*Member]bool{}
	for r := range s.all {
		size := 0
		for key, slot := range r.slots {
			keys++
			if s.slots[key] != slot || slot.run != r || slot.key != key {
				t.Errorf("key %q is in two places", key)
			}
			if !slot.present() && len(slot.waits) == 0 {
				t.Errorf("nothing needs key %q", key)
			}
			size += len(key) + overhead + len(slot.value)
			for _, v := range slot.queue {
				size += len(v) + overhead
			}
			for _, w := range slot.waits {
				if w.missing == 0 {
					t.Errorf("who waits for %q could go on", key)
				}
			}
		}
		if total += size; r.bytes != size {
			t.Errorf("run %q counts %d bytes, has %d", r.id, r.bytes, size)
		}
		if len(r.members) == 0 || (r.id != "") != (s.runs[r.id] == r) {
			t.Errorf("run %q has no members, or is not known by its name", r.id)
		}
		for m := range r.members {
			members[m] = true
		}
	}
	waits := 0
	for m := range members {
		waits += len(m.waits)
		for _, w := range m.waits {
			total += w.bytes
		}
	}
	if got, want := s.Sums(), (Sums{len(s.all), keys, total, waits}); got != want {
		t.Errorf("counts %+v, has %+v", got, want)
	}
}

// FuzzDecoder: a stream is read alike however it is cut, and nothing is taken for what is only declared.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte("\x00\xce\xf7\x85\x3c\x0d1234\x01\x01\x00\x00\x00\x00\x00\x00\x00k\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x01\x00\x00\x00\x00\x00\x00\x00k\x00\x00\x00\x00\x00\x00\x00\x10\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		most, held := 0, 0
		read := func(r interface{ Read([]byte) (int, error) }) (all []Request, text string) {
			d := NewDecoder(r, Lengths{Key: 1 << 20, Value: 1 << 30, List: 1 << 20, Message: 1 << 30},
				func(n int) error { held += n; most = max(most, held); return nil }, func(n int) { held -= n })
			for {
				q, err := d.Next()
				d.Release()
				if err != nil {
					return all, err.Error()
				}
				all = append(all, q)
			}
		}
		all, end := read(bytes.NewReader(in))
		again, endAgain := read(slowReader{bytes.NewReader(in)})
		if len(all) != len(again) || end != endAgain {
			t.Errorf("%d messages and %s, a byte at a time %d and %s", len(all), end, len(again), endAgain)
		}
		if most > 8*len(in)+2*piece {
			t.Errorf("%d bytes taken for %d", most, len(in))
		}
	})
}

type slowReader struct{ r *bytes.Reader }

func (s slowReader) Read(p []byte) (int, error) { return s.r.Read(p[:min(1, len(p))]) }
