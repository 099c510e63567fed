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

// The state of a rendezvous, which torch's agents keep in one key: a round that is complete or not, the nodes that take
// part, those that wait for the next round, and when each was last heard of. An agent whose round is complete trains,
// and looks at the nodes that wait: once there is one, it stops its workers, leaves, and joins the next round, which
// costs none of its restarts. A round ends when its last participant has left.

// stateKey is the key of the state of a run, as torch's clients name it.
func stateKey(run string) string { return "/torch.rendezvous." + run }

// lostHost begins the host of a node that no machine is. It stands in the list of those that wait for as long as agents
// are to notice that a participant was lost; its process id is the number of the round that has lost one.
const lostHost = "tegen-rendezvous: lost "

// membership is a state. Fields that this does not use are kept as they are.
type membership struct {
	root   *pyObject
	fields *pyDict

	participants, heartbeats *pyDict
	waiting, redundant       *pySet
}

var errState = errors.New("the state of the rendezvous is none of torch 1.13 to 2.14")

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
	if m.redundant, ok[0] = m.fields.get("redundancy_list").(*pySet); !ok[0] { // of torch 2.4 and newer
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

// nodeParts are the fields of a node. The name of the first one was "fqdn" in torch 1.13.
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

// nodeName is what identifies a node in a run, as torch writes it in its log.
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

func lost(v any) bool {
	host, _, _ := nodeParts(v)
	return strings.HasPrefix(host, lostHost)
}

// has says whether a node takes part, waits, or is one too many.
func (m *membership) has(name string) bool {
	return slices.Contains(names(m.participants.keys), name) || slices.Contains(names(m.waiting.items), name) ||
		slices.Contains(names(m.redundant.items), name)
}

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

func (m *membership) remove(gone func(any) bool) (participants []any) {
	m.waiting.items = slices.DeleteFunc(m.waiting.items, gone)
	m.redundant.items = slices.DeleteFunc(m.redundant.items, gone)
	m.heartbeats.remove(gone)
	return m.participants.remove(gone)
}

// left counts the nodes that can form a world without some: those that take part, and those that wait.
func (m *membership) left(without map[string]bool) int {
	n := 0
	for _, node := range slices.Concat(m.participants.keys, m.waiting.items) {
		if !without[nodeName(node)] && !lost(node) {
			n++
		}
	}
	return n
}

// evict removes nodes, as an agent removes those whose heartbeats have stopped. Where that leaves a round incomplete
// which was complete, the agents that are left are to join the next one: a node that is lost waits for it.
func (m *membership) evict(gone map[string]bool) {
	removed := m.remove(func(node any) bool { return gone[nodeName(node)] })
	switch {
	case len(removed) == 0 || !m.complete():
	case len(m.participants.keys) == 0:
		m.fields.set("complete", false)
		m.fields.set("round", m.round()+1)
	default:
		for _, node := range removed {
			m.wait(m.lostNode(node), time.Now().Add(lostFor))
		}
	}
}

// lostFor is how long agents leave a lost node in the list themselves. A proxy removes it with the round.
const lostFor = 10 * time.Minute

// lostNode is a node that no machine is, for one that has left a round.
func (m *membership) lostNode(of any) *pyObject {
	o := *of.(*pyObject)
	fields := &pyDict{}
	for i, key := range o.state.(*pyDict).keys {
		var value any = int64(0)
		switch o.state.(*pyDict).values[i].(type) {
		case string:
			value = lostHost + nodeName(of)
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

// wait adds a node to the wait list, with a heartbeat. It reports whether the state has a place for that (see beat).
func (m *membership) wait(node *pyObject, heartbeat time.Time) bool {
	if !m.beat(node, heartbeat) {
		return false
	}
	m.waiting.items = append(m.waiting.items, node)
	return true
}

// at is a time as the state has them: a datetime of 10 bytes, with or without a time zone, which is UTC.
func (m *membership) at(t time.Time) (*pyObject, error) {
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

// ending says whether the round has lost a node, so that its agents are to leave it.
func (m *membership) ending() bool {
	return slices.ContainsFunc(m.waiting.items, func(node any) bool {
		_, round, _ := nodeParts(node)
		return lost(node) && round == m.round()
	})
}

// expired removes the lost nodes of rounds that have ended, and says whether there was one.
func (m *membership) expired() bool {
	before := len(m.waiting.items)
	m.remove(func(node any) bool {
		_, round, _ := nodeParts(node)
		return lost(node) && round < m.round()
	})
	return len(m.waiting.items) < before
}

// restore puts participants of an older state back that an agent has removed because of their heartbeats, and says
// whether there was one. Who takes part changes no rank while a round is complete.
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
		if m.beat(node, time.Now()) {
			m.participants.set(node, older.participants.values[i])
			restored = true
		}
	}
	return restored
}

// beat sets a node's heartbeat. It is false in a state that has no heartbeat at all, whose form is not known.
func (m *membership) beat(node any, heartbeat time.Time) bool {
	at, err := m.at(heartbeat)
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

// stale says whether a participant's heartbeat is from before a time.
func (m *membership) stale(name string, before time.Time) (node any, is bool) {
	for i, node := range m.heartbeats.keys {
		if nodeName(node) == name && slices.Contains(names(m.participants.keys), name) {
			at, ok := instant(m.heartbeats.values[i])
			return node, ok && at.Before(before)
		}
	}
	return nil, false
}

// instant is the time that a datetime of 10 bytes has.
func instant(v any) (time.Time, bool) {
	b := []byte(stamp(v))
	if len(b) != 10 {
		return time.Time{}, false
	}
	micros := int(b[7])<<16 | int(b[8])<<8 | int(b[9])
	return time.Date(int(binary.BigEndian.Uint16(b)), time.Month(b[2]), int(b[3]), int(b[4]), int(b[5]), int(b[6]),
		micros*1000, time.UTC), true
}

// beaten are the nodes whose heartbeats differ from those of an older state: whoever wrote the newer one is among them,
// alone.
func (m *membership) beaten(older *membership) []*pyObject {
	before := map[string]string{}
	if older != nil {
		for i, node := range older.heartbeats.keys {
			before[nodeName(node)] = stamp(older.heartbeats.values[i])
		}
	}
	var all []*pyObject
	for i, node := range m.heartbeats.keys {
		if was, ok := before[nodeName(node)]; (!ok || was != stamp(m.heartbeats.values[i])) && !lost(node) {
			all = append(all, node.(*pyObject))
		}
	}
	return all
}

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
