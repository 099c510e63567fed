package keys

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// record is a node, as the store holds it: a line of JSON, then the value as it came, which need not be UTF-8.
type record struct {
	Dir        bool   `json:"dir,omitempty"`
	TTL        uint64 `json:"ttl,omitempty"`        // seconds
	Expiration int64  `json:"expiration,omitempty"` // ns since 1970 by the writer's clock; 0 for a node without a TTL
	Created    uint64 `json:"created,omitempty"`    // index; 0 for the record's own revision
	Modified   uint64 `json:"modified,omitempty"`   // the same: a directory keeps its index when its TTL is renewed
	Time       int64  `json:"time,omitempty"`       // of the write, ns since 1970
	value      string
}

func (r record) encode() (string, error) {
	b, err := json.Marshal(r)
	return string(b) + "\n" + r.value, err
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

// head is what the last change was, in a key that every transaction writes. Its modification revision is the index.
type head struct {
	Action  string `json:"action"`
	Key     string `json:"key"`
	Refresh bool   `json:"refresh,omitempty"`
}
