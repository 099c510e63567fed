package proxystore

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Torch's agents keep the state of their rendezvous in one key. It contains the current round, whether that is
// complete, its participants, the wait list of nodes for the next round, and the latest heartbeat of each node. The
// agents of a complete round train, and poll the wait list. When a node is added to it, they stop their workers, leave
// the round and join the next one, which uses no restart. A round ends when its last participant has left.

// stateKey is the key that torch's clients use for the state of a run.
func stateKey(run string) string { return "/torch.rendezvous." + run }

// placeholderHost begins the host of a placeholder node in the wait list. The placeholder is there until the agents of
// a round that has lost a node have left it. Its process ID is the number of that round.
const placeholderHost = "tegen-rendezvous: lost "

// membership is a state. Fields that are not used here are preserved.
type membership struct {
	root   *pyObject
	fields *pyDict

	participants, heartbeats *pyDict
	waiting, redundant       *pySet
}

var errState = errors.New("the rendezvous state does not have the form of torch 1.13 to 2.14")

func parseMembership(text []byte) (*membership, error) {
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return nil, errState
	}
	v, err := unpickle(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errState, err)
	}
	m := &membership{}
	var ok [5]bool
	if m.root, ok[0] = v.(*pyObject); !ok[0] {
		return nil, errState
	}
	if m.fields, ok[0] = m.root.state.(*pyDict); !ok[0] {
		return nil, errState
	}
	m.participants, ok[1] = m.fields.get("participants").(*pyDict)
	m.heartbeats, ok[2] = m.fields.get("last_heartbeats").(*pyDict)
	m.waiting, ok[3] = m.fields.get("wait_list").(*pySet)
	_, ok[4] = m.fields.get("round").(int64)
	if slices.Contains(ok[:], false) {
		return nil, errState
	}
	if m.redundant, ok[0] = m.fields.get("redundancy_list").(*pySet); !ok[0] { // new in torch 2.4
		m.redundant = &pySet{}
	}
	nodes := slices.Concat(m.participants.keys, m.heartbeats.keys, m.waiting.items, m.redundant.items)
	if slices.ContainsFunc(nodes, func(v any) bool { return !isNode(v) }) {
		return nil, errState
	}
	return m, nil
}

func isNode(v any) bool {
	o, ok := v.(*pyObject)
	if ok {
		_, ok = o.state.(*pyDict)
	}
	return ok
}

func (m *membership) text() ([]byte, error) {
	raw, err := pickle(m.root)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, raw), nil
}

func (d *pyDict) index(key any) int { return slices.Index(d.keys, key) }

func (d *pyDict) get(key any) any {
	if i := d.index(key); i >= 0 {
		return d.values[i]
	}
	return nil
}

func (d *pyDict) set(key, value any) {
	if i := d.index(key); i >= 0 {
		d.values[i] = value
		return
	}
	d.keys, d.values = append(d.keys, key), append(d.values, value)
}

func (m *membership) round() int64   { n, _ := m.fields.get("round").(int64); return n }
func (m *membership) complete() bool { b, _ := m.fields.get("complete").(bool); return b }
func (m *membership) closed() bool   { b, _ := m.fields.get("closed").(bool); return b }

// nodeParts returns the fields of a node. The host is "addr", or "fqdn" in torch 1.13.
func nodeParts(v any) (host string, pid, id int64) {
	fields := v.(*pyObject).state.(*pyDict)
	for i, key := range fields.keys {
		switch value := fields.values[i].(type) {
		case string:
			host = value
		case int64:
			if key == "pid" {
				pid = value
			} else {
				id = value
			}
		}
	}
	return host, pid, id
}

// nodeName identifies a node in a run. Torch's log has the same names.
func nodeName(v any) string {
	host, pid, id := nodeParts(v)
	return fmt.Sprintf("%s_%d_%d", host, pid, id)
}

func names(nodes []any) []string {
	all := make([]string, 0, len(nodes))
	for _, n := range nodes {
		all = append(all, nodeName(n))
	}
	return all
}

// isPlaceholder reports whether a node in the wait list stands for one that was lost.
func isPlaceholder(v any) bool {
	host, _, _ := nodeParts(v)
	return strings.HasPrefix(host, placeholderHost)
}

// has reports whether a node is a participant, or in the wait list or the redundancy list.
func (m *membership) has(name string) bool {
	return slices.Contains(names(m.participants.keys), name) || slices.Contains(names(m.waiting.items), name) ||
		slices.Contains(names(m.redundant.items), name)
}

// remove deletes keys and returns them.
func (d *pyDict) remove(gone func(any) bool) (removed []any) {
	for i := 0; i < len(d.keys); {
		if !gone(d.keys[i]) {
			i++
			continue
		}
		removed = append(removed, d.keys[i])
		d.keys, d.values = slices.Delete(d.keys, i, i+1), slices.Delete(d.values, i, i+1)
	}
	return removed
}

// remove deletes nodes from all lists, and returns those that were participants.
func (m *membership) remove(gone func(any) bool) (participants []any) {
	m.waiting.items = slices.DeleteFunc(m.waiting.items, gone)
	m.redundant.items = slices.DeleteFunc(m.redundant.items, gone)
	m.heartbeats.remove(gone)
	return m.participants.remove(gone)
}

// remaining counts the nodes that can form a world without some: participants, and those that wait, with those for whom
// a complete world has no place.
func (m *membership) remaining(without map[string]bool) int {
	n := 0
	for _, node := range slices.Concat(m.participants.keys, m.waiting.items, m.redundant.items) {
		if !without[nodeName(node)] && !isPlaceholder(node) {
			n++
		}
	}
	return n
}

// evict removes nodes, as an agent removes those without recent heartbeats. The other participants of a complete round
// then have to join the next one: a placeholder in the wait list starts that.
func (m *membership) evict(gone map[string]bool) {
	removed := m.remove(func(node any) bool { return gone[nodeName(node)] })
	switch {
	case len(removed) == 0 || !m.complete():
	case len(m.participants.keys) == 0:
		m.fields.set("complete", false)
		m.fields.set("round", m.round()+1)
	default:
		for _, node := range removed {
			m.addToWaitList(m.placeholder(node), time.Now().Add(placeholderLifetime))
		}
	}
}

// placeholderLifetime is how far in the future the heartbeat of a placeholder is. Agents remove it later than that, if
// no proxy has removed it at the end of the round.
const placeholderLifetime = 10 * time.Minute

// placeholder returns a placeholder node for a participant that was lost.
func (m *membership) placeholder(lost any) *pyObject {
	o := *lost.(*pyObject)
	fields := &pyDict{}
	for i, key := range o.state.(*pyDict).keys {
		var value any = int64(0)
		switch o.state.(*pyDict).values[i].(type) {
		case string:
			value = placeholderHost + nodeName(lost)
		case int64:
			if key == "pid" {
				value = m.round()
			}
		}
		fields.set(key, value)
	}
	o.state = fields
	return &o
}

// addToWaitList adds a node with a heartbeat, and reports whether it could (see setHeartbeat).
func (m *membership) addToWaitList(node *pyObject, heartbeat time.Time) bool {
	if !m.setHeartbeat(node, heartbeat) {
		return false
	}
	m.waiting.items = append(m.waiting.items, node)
	return true
}

// datetime returns a time in the form of the heartbeats in the state: a datetime of 10 bytes, with or without the time
// zone UTC.
func (m *membership) datetime(t time.Time) (*pyObject, error) {
	for _, v := range m.heartbeats.values {
		old, ok := v.(*pyObject)
		if !ok {
			continue
		}
		args, ok := old.args.(*pyTuple)
		if !ok || len(args.items) == 0 {
			continue
		}
		o, t := *old, t.UTC()
		stamp := binary.BigEndian.AppendUint16(nil, uint16(t.Year()))
		stamp = append(stamp, byte(t.Month()), byte(t.Day()), byte(t.Hour()), byte(t.Minute()), byte(t.Second()))
		micros := t.Nanosecond() / 1000
		stamp = append(stamp, byte(micros>>16), byte(micros>>8), byte(micros))
		o.args = &pyTuple{append([]any{stamp}, args.items[1:]...)}
		return &o, nil
	}
	return nil, errState
}

// hasPlaceholder reports whether the round has lost a node, so that its agents have to leave it.
func (m *membership) hasPlaceholder() bool {
	return slices.ContainsFunc(m.waiting.items, func(node any) bool {
		_, round, _ := nodeParts(node)
		return isPlaceholder(node) && round == m.round()
	})
}

// removeExpired removes the placeholders of rounds that have ended, and reports whether there was one.
func (m *membership) removeExpired() bool {
	before := len(m.waiting.items)
	m.remove(func(node any) bool {
		_, round, _ := nodeParts(node)
		return isPlaceholder(node) && round < m.round()
	})
	return len(m.waiting.items) < before
}

// restore puts back participants of an older state that an agent has removed because of their heartbeats. It reports
// whether there was one. In a complete round participants have fixed ranks, so that this changes none.
func (m *membership) restore(older *membership, which func(name string) bool) bool {
	if older == nil || !m.complete() || !older.complete() || m.round() != older.round() {
		return false
	}
	there := names(m.participants.keys)
	restored := false
	for i, node := range older.participants.keys {
		if name := nodeName(node); slices.Contains(there, name) || !which(name) {
			continue
		}
		if m.setHeartbeat(node, time.Now()) {
			m.participants.set(node, older.participants.values[i])
			restored = true
		}
	}
	return restored
}

// replaceLeaver adds a placeholder for a participant of a complete round that has moved itself to the wait list because
// its own heartbeat was old. The others would wait for its rank, and would not notice. An agent that leaves a round to
// join the next one removes itself first, and waits only with a later write.
func (m *membership) replaceLeaver(older *membership, name string) bool {
	if older == nil || !m.complete() || !older.complete() || m.round() != older.round() ||
		!slices.Contains(names(older.participants.keys), name) || slices.Contains(names(m.participants.keys), name) {
		return false
	}
	i := slices.IndexFunc(m.waiting.items, func(v any) bool { return nodeName(v) == name })
	return i >= 0 && len(m.participants.keys) > 0 &&
		m.addToWaitList(m.placeholder(m.waiting.items[i]), time.Now().Add(placeholderLifetime))
}

// setHeartbeat sets the heartbeat of a node. It reports false if the state has no heartbeat whose form it could use.
func (m *membership) setHeartbeat(node any, heartbeat time.Time) bool {
	at, err := m.datetime(heartbeat)
	if err != nil {
		return false
	}
	for i, other := range m.heartbeats.keys {
		if nodeName(other) == nodeName(node) {
			m.heartbeats.values[i] = at
			return true
		}
	}
	m.heartbeats.set(node, at)
	return true
}

// stale reports whether the heartbeat of a participant is older than a time.
func (m *membership) stale(name string, before time.Time) (node any, is bool) {
	for i, node := range m.heartbeats.keys {
		if nodeName(node) == name && slices.Contains(names(m.participants.keys), name) {
			at, ok := parseDatetime(m.heartbeats.values[i])
			return node, ok && at.Before(before)
		}
	}
	return nil, false
}

// parseDatetime returns the time of a datetime of 10 bytes.
func parseDatetime(v any) (time.Time, bool) {
	b := []byte(stamp(v))
	if len(b) != 10 {
		return time.Time{}, false
	}
	micros := int(b[7])<<16 | int(b[8])<<8 | int(b[9])
	return time.Date(int(binary.BigEndian.Uint16(b)), time.Month(b[2]), int(b[3]), int(b[4]), int(b[5]), int(b[6]),
		micros*1000, time.UTC), true
}

// withNewHeartbeats returns the nodes whose heartbeats differ from an older state. An agent that writes a state changes
// the heartbeat of its own node only.
func (m *membership) withNewHeartbeats(older *membership) []*pyObject {
	before := map[string]string{}
	if older != nil {
		for i, node := range older.heartbeats.keys {
			before[nodeName(node)] = stamp(older.heartbeats.values[i])
		}
	}
	var all []*pyObject
	for i, node := range m.heartbeats.keys {
		if was, ok := before[nodeName(node)]; (!ok || was != stamp(m.heartbeats.values[i])) && !isPlaceholder(node) {
			all = append(all, node.(*pyObject))
		}
	}
	return all
}

// stamp returns the 10 bytes of a datetime.
func stamp(v any) string {
	if o, ok := v.(*pyObject); ok {
		if args, ok := o.args.(*pyTuple); ok && len(args.items) > 0 {
			if b, ok := args.items[0].([]byte); ok {
				return string(b)
			}
		}
	}
	return ""
}
