package torchetcd

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/internal/golden"
)

// worldScript plays a transcript of the members of one world, which exchange information.
//
//	members A b           the world; a capital letter is an agent of ours, a small one of torch
//	join|finish A…        has members of ours do that; join with role=x, of as many workers as the rank counts from 1
//	answer A…             answers all requests of members, from the store, and ends pauses
//	lose|cut|expire A…    loses the replies; loses the requests; ends the time of a watch
//	drain A…             answers until the members only watch, or have returned
//	put KEY VALUE         writes a key, by its name where it is one of the exchange; rm KEY removes it
//	show                  shows all keys
type worldScript struct {
	t       *testing.T
	store   *v2
	agents  []string // tokens by rank
	members map[string]*worldMember
	answers []string
}

// worldMember is a member whose call asks, and waits for the replies.
type worldMember struct {
	name    string
	rank    int
	asked   []Action
	replies []Reply
	next    func() ([]Action, bool)
	result  string
}

func playWorld(t *testing.T, transcript string) string {
	s := &worldScript{t: t, store: newV2(), members: map[string]*worldMember{}}
	return golden.Play(transcript, func(command string) []string {
		s.answers = nil
		s.do(strings.Fields(command), command)
		return s.answers
	})
}

func (s *worldScript) do(words []string, line string) {
	names, role := []string{}, "default"
	for _, w := range words[1:] {
		if r, ok := strings.CutPrefix(w, "role="); ok {
			role = r
		} else {
			names = append(names, w)
		}
	}
	switch words[0] {
	case "members":
		for rank, name := range names {
			s.members[name] = &worldMember{name: name, rank: rank}
			if name == strings.ToLower(name) {
				name = ""
			}
			s.agents = append(s.agents, name)
		}
		return
	case "put":
		_, value, _ := strings.Cut(line, names[0]+" ")
		a := Action{Kind: Set, Key: names[0], Value: value}
		if !strings.HasPrefix(a.Key, "/") {
			a = Exchange{Dir: "/r/v_1"}.write(a.Key, value)
		}
		s.store.do(a)
		return
	case "rm":
		s.store.remove(names[0])
		return
	case "show":
		for _, line := range strings.Split(s.store.String(), "\n") {
			key, rest, _ := strings.Cut(line, " = ")
			value, at, _ := strings.Cut(rest, " @")
			if a, ok := named(Action{Key: key, Value: value}); ok {
				line = fmt.Sprintf("%s = %s @%s", a.Key, a.Value, at)
			}
			s.answers = append(s.answers, line)
		}
		return
	}
	for _, name := range names {
		m := s.members[name]
		if m == nil {
			s.t.Fatalf("%s: there is no member %s", line, name)
		}
		s.tell(m, words[0], role)
	}
}

func (s *worldScript) tell(m *worldMember, verb, role string) {
	switch verb {
	case "join":
		self := rendezvous.Agent{Host: "host-" + m.name, Role: role, Workers: m.rank + 1}
		s.call(m, func(x Exchange) string {
			w, err := x.Join(self, 1234)
			if err != nil {
				return "error: " + err.Error()
			}
			return fmt.Sprintf("workers %d of %d, of the role %d of %d, master %s:%d",
				w.Base, w.Total, w.RoleBase, w.RoleTotal, w.MasterAddr, w.MasterPort)
		})
	case "finish":
		s.call(m, func(x Exchange) string {
			if err := x.Finish(); err != nil {
				return "error: " + err.Error()
			}
			return "finished"
		})
	case "drain":
		for s.answer(m, "answer") {
		}
	default:
		s.answer(m, verb)
	}
}

// call begins a call of a member, which continues with each reply.
func (s *worldScript) call(m *worldMember, do func(Exchange) string) {
	next, stop := iter.Pull(func(yield func([]Action) bool) {
		m.result = do(Exchange{
			Membership: Membership{Version: 1, Rank: m.rank, Size: len(s.agents), Agents: s.agents},
			Dir:        "/r/v_1", Check: 10 * time.Second, Chance: func() float64 { return 0.5 },
			Ask: func(actions []Action) ([]Reply, error) {
				if !yield(actions) {
					return nil, errors.New("the transcript has ended")
				}
				return m.replies, nil
			},
		})
	})
	s.t.Cleanup(stop)
	m.next = next
	s.step(m)
}

func (s *worldScript) step(m *worldMember) {
	var ok bool
	if m.asked, ok = m.next(); !ok {
		s.answers = append(s.answers, m.name+": "+m.result)
	}
	for _, a := range m.asked {
		shown, _ := named(a)
		s.answers = append(s.answers, m.name+": "+shown.text())
	}
}

// answer answers what a member has asked; false where it has asked nothing, or watches what has not changed.
func (s *worldScript) answer(m *worldMember, how string) bool {
	if len(m.asked) == 0 {
		return false
	}
	replies := make([]Reply, len(m.asked))
	for i, a := range m.asked {
		r, shown := Reply{}, true
		switch {
		case how == "expire":
			r.Code = Expired
		case a.Kind == Pause:
		case a.Kind == Watch && how == "answer":
			r, shown = s.store.watched(a)
		case a.Kind != Watch && how != "cut":
			r = s.store.do(a)
		}
		if !shown {
			return false
		}
		if how == "lose" || how == "cut" {
			r = Reply{Code: Lost}
		}
		replies[i] = r
	}
	m.replies = replies
	s.step(m)
	return true
}

// named is an action with the key and the value that the store has in base64, and whether it is about one of those.
func named(a Action) (Action, bool) {
	dir, key := path.Split(a.Key)
	if path.Base(dir) != "kv" {
		return a, false
	}
	a.Key, a.Value = "kv/"+decode(key), decode(a.Value)
	a.Previous = decode(a.Previous)
	return a, true
}

// TestComputeRanks: workers are counted over all roles, and within their own.
func TestComputeRanks(t *testing.T) {
	got := computeRanks([]info{{"a", 0, 2}, {"b", 1, 1}, {"a", 2, 3}, {"b", 3, 0}})
	want := []ranks{{0, 6, 0, 5}, {2, 6, 0, 1}, {3, 6, 2, 5}, {6, 6, 1, 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestManyRanks: the ranks of many agents are written some at a time, and those that are lost again.
func TestManyRanks(t *testing.T) {
	store, at, most, lost := newV2(), 0, 0, 0
	x := Exchange{Membership: Membership{Version: 1, Size: 20, Agents: make([]string, 20)}, Dir: "/r/v_1"}
	for i := range x.Size {
		x.Agents[i] = strconv.Itoa(i)
		store.do(x.write(roleInfo+"/"+strconv.Itoa(i), `{"role": "r", "rank": 0, "local_world_size": 2}`))
	}
	x.Ask = func(actions []Action) ([]Reply, error) {
		var replies []Reply
		most = max(most, len(actions))
		for _, a := range actions {
			if at++; at%5 == 0 && a.Kind == Set {
				lost++
				replies = append(replies, Reply{Code: Lost})
			} else {
				replies = append(replies, store.do(a))
			}
		}
		return replies, nil
	}
	if _, err := x.Join(rendezvous.Agent{Role: "r", Workers: 2}, 1); err != nil {
		t.Fatal(err)
	}
	for i := range x.Size {
		want := fmt.Sprintf("[%d, 40, %d, 40]", 2*i, 2*i)
		if got := decode(store.nodes[x.key(assigned+strconv.Itoa(i))].value); got != want {
			t.Errorf("agent %d has ranks %q, not %s", i, got, want)
		}
	}
	if most != writesAtOnce || lost == 0 {
		t.Errorf("at most %d writes at once, %d lost", most, lost)
	}
}
