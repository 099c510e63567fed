package keys

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// record is a node, as the store holds it: a line of JSON, then the value as it came, which need not be UTF-8.
type record struct {
	Dir        bool   `json:"dir,omitempty"`
	TTL        uint64 `json:"ttl,omitempty"`        // seconds
	Expiration int64  `json:"expiration,omitempty"` // ns since 1970 by the writer's clock; 0 for a node without a TTL
	At         int    `json:"at,omitempty"`         // the write's place among the events of its revision
	Created    uint64 `json:"created,omitempty"`    // index; 0 for that of the write
	Modified   uint64 `json:"modified,omitempty"`   // the same: a directory keeps its index when its TTL is renewed
	Time       int64  `json:"time,omitempty"`       // of the write, ns since 1970
	value      string
}

func (r *record) encode() string {
	b := append(r.append(make([]byte, 0, 128+len(r.value))), '\n')
	return string(append(b, r.value...))
}

func decode(b []byte) (record, error) {
	line, value, _ := bytes.Cut(b, []byte("\n"))
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("reading a record: %w", err)
	}
	r.value = string(value)
	return r, nil
}

// expiring is a record's life of so many seconds from now on.
func (r *record) expiring(seconds *uint64, now time.Time) {
	if seconds == nil {
		return
	}
	r.TTL = min(*seconds, maxTTL)
	r.Expiration = now.Add(time.Duration(r.TTL) * time.Second).UnixNano()
}

// maxTTL is a hundred years: more overflows a time.
const maxTTL = 100 * 365 * 24 * 60 * 60

// format is that of the state in the store, and of how indexes are counted. It is raised when either changes, and heads
// of a format above 1 name theirs: two programs that count differently would contradict each other before one store.
const format = 1

// errNewer ends a program before a store that a newer one writes.
func errNewer(have int) error {
	return fmt.Errorf("the store has the format %d of a newer tegen-rendezvous, and this one knows %d: "+
		"run the newer one in its place, or delete the keys of the runs first", have, format)
}

// head is what the last change was, in a key that every transaction writes.
type head struct {
	Format  int    `json:"format,omitempty"` // 0 is 1
	Action  string `json:"action"`
	Key     string `json:"key"`
	Refresh bool   `json:"refresh,omitempty"`
	Then    []head `json:"then,omitempty"` // of the first event of a revision: those after it
}

func (h *head) deletes() bool {
	return h.Action == actionDelete || h.Action == actionCAD || h.Action == actionExpire
}

// readHead is nothing where somebody else wrote it.
func readHead(value []byte) head {
	var h head
	if err := json.Unmarshal(value, &h); err != nil {
		return head{}
	}
	return h
}

// stride is how many indexes a revision of the store has: each event of a transaction has one of its own, and no
// process has to know what the others count.
const stride = 128

func indexOf(rev int64, at int) uint64 { return uint64(rev)*stride + uint64(at) }

// split divides what a revision changed among its events.
func split(h head, changes []change) []part {
	switch {
	case h.Key == "":
		return []part{{nil, changes}}
	case h.Then == nil:
		return []part{{&h, changes}}
	}
	parts := make([]part, 1+len(h.Then))
	for i := range parts {
		if parts[i].head = &h; i > 0 {
			parts[i].head = &h.Then[i-1]
		}
	}
	for _, c := range changes {
		at := slices.IndexFunc(parts, func(p part) bool {
			return p.head.Key == c.path || c.record == nil && p.head.deletes() && under(c.path, p.head.Key)
		})
		if at < 0 && c.record != nil && c.record.At < len(parts) { // a directory on the way
			at = c.record.At
		}
		p := &parts[max(0, at)]
		p.changes = append(p.changes, c)
	}
	return parts
}
