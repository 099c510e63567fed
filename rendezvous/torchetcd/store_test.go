package torchetcd

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// v2 is a store of etcd's v2 API, as far as machines use it: keys with TTLs, and watches that begin at an index.
type v2 struct {
	now     time.Duration
	index   uint64
	nodes   map[string]v2node
	events  []v2event
	expires time.Duration // the first time at which a key may expire, 0 for never
	wrote   func(key, value string)
}

type v2node struct {
	value    string
	modified uint64
	expires  time.Duration // 0 for never
	dir      bool
}

type v2event struct {
	index      uint64
	key, value string
	gone       bool
}

func newV2() *v2 { return &v2{nodes: map[string]v2node{}, wrote: func(string, string) {}} }

// pass lets time go on, and keys expire.
func (s *v2) pass(now time.Duration) {
	s.now = now
	if s.expires == 0 || s.expires > now {
		return
	}
	s.expires = 0
	for _, key := range slices.Sorted(maps.Keys(s.nodes)) {
		switch n := s.nodes[key]; {
		case n.expires == 0:
		case n.expires <= now:
			s.remove(key)
		default:
			s.sooner(n.expires)
		}
	}
}

func (s *v2) sooner(at time.Duration) {
	if at != 0 && (s.expires == 0 || at < s.expires) {
		s.expires = at
	}
}

func (s *v2) remove(key string) {
	delete(s.nodes, key)
	s.index++
	s.events = append(s.events, v2event{index: s.index, key: key, gone: true})
}

// do answers a request that is no watch.
func (s *v2) do(a Action) Reply {
	n, ok := s.nodes[a.Key]
	switch a.Kind {
	case Get:
		if !ok {
			return Reply{Code: CodeNotFound, Index: s.index}
		}
		return Reply{Value: n.value, Modified: n.modified, Index: s.index}
	case List:
		r := Reply{Index: s.index}
		for key := range s.nodes {
			if rest, below := strings.CutPrefix(key, a.Key+"/"); below && !strings.Contains(rest, "/") {
				r.Names = append(r.Names, key)
			}
		}
		slices.Sort(r.Names)
		for _, key := range r.Names {
			r.Values = append(r.Values, s.nodes[key].value)
		}
		return r
	case Create, Mkdir:
		if ok {
			return Reply{Code: CodeExists, Index: s.index}
		}
	case Swap, SwapAt, Refresh, Delete:
		if !ok {
			return Reply{Code: CodeNotFound, Index: s.index}
		}
		if a.Kind != Refresh && (a.Kind == SwapAt && n.modified != a.Index || a.Kind != SwapAt &&
			n.value != a.Previous) {
			return Reply{Code: CodeCompare, Index: s.index}
		}
	}
	s.write(a, n)
	return Reply{Value: a.Value, Index: s.index, Modified: s.index}
}

func (s *v2) write(a Action, n v2node) {
	switch a.Kind {
	case Delete:
		s.remove(a.Key)
		return
	case Refresh:
		n.expires = s.now + a.TTL
		s.sooner(n.expires)
		s.nodes[a.Key] = n
		return
	}
	s.index++
	n = v2node{value: a.Value, modified: s.index, dir: a.Kind == Mkdir}
	if a.TTL > 0 {
		n.expires = s.now + a.TTL
		s.sooner(n.expires)
	}
	s.nodes[a.Key] = n
	s.events = append(s.events, v2event{index: s.index, key: a.Key, value: a.Value})
	s.wrote(a.Key, a.Value)
}

// watched is the answer to a watch, once there is one.
func (s *v2) watched(a Action) (Reply, bool) {
	from, _ := slices.BinarySearchFunc(s.events, a.Index,
		func(e v2event, i uint64) int { return int(e.index) - int(i) })
	for _, e := range s.events[from:] {
		if e.key == a.Key || strings.HasPrefix(e.key, a.Key+"/") {
			return Reply{Key: e.key, Value: e.value, Gone: e.gone, Index: s.index, Modified: e.index}, true
		}
	}
	return Reply{}, false
}

func (s *v2) String() string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[key]
		text := key
		if !n.dir {
			text += " = " + n.value
		}
		if n.expires > 0 {
			text += " until " + n.expires.String()
		}
		out = append(out, text+" @"+strconv.FormatUint(n.modified, 10))
	}
	return strings.Join(out, "\n")
}
