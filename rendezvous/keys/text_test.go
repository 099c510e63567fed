package keys

import (
	"encoding/json"
	"testing"
	"time"
)

// FuzzText: what is written by hand is what encoding/json writes.
func FuzzText(f *testing.F) {
	f.Add("/a/b", "value", uint64(7), int64(1), uint8(0))
	f.Add("/ä", "a \"quoted\" <text> & \x00\xff\u2028", uint64(1<<63), int64(-1), uint8(0xff))
	f.Add("", "", uint64(0), int64(1785555555123456789), uint8(0x2a))
	f.Fuzz(func(t *testing.T, key, value string, index uint64, ns int64, has uint8) {
		is := func(bit int) bool { return has>>bit&1 == 1 }
		n := &Node{Key: key, Dir: is(0), TTL: ns % 1000, ModifiedIndex: index, CreatedIndex: index / 2}
		if is(1) {
			n.Value = &value
		}
		if is(2) {
			at := time.Unix(0, ns).UTC()
			n.Expiration = &at
		}
		if is(3) {
			child := *n
			n.Nodes = []*Node{&child, {Key: value}}
		}
		e := &Event{Action: value, Node: n}
		if is(4) {
			e.Prev = n
		}
		h := &head{Action: value, Key: key, Refresh: is(5)}
		if is(6) {
			h.Then = []head{{Action: key}, *h}
		}
		r := &record{
			Dir: is(0), TTL: index, Expiration: ns, At: int(has), Created: index / 3, Modified: index, Time: ns / 7,
		}
		wrong := &Error{Code: int(has), Message: key, Index: index}
		if is(7) {
			wrong.Cause = value
		}
		for _, v := range []interface{ append([]byte) []byte }{e, &Event{}, h, r, wrong} {
			want, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if got := v.append([]byte("before ")); string(got) != "before "+string(want) {
				t.Errorf("%T is written as %s, and not as %s", v, got[len("before "):], want)
			}
		}
	})
}
