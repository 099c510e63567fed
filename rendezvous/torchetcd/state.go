package torchetcd

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Status is the stage of a version.
type Status string

// The stages of a version, in their order. Any agent can create one that is missing.
const (
	Setup    Status = "setup"    // an agent is creating it
	Joinable Status = "joinable" // agents may enter themselves
	Frozen   Status = "frozen"   // those who entered confirm that they are alive
	Final    Status = "final"    // all have confirmed: this is a world
	Closed   Status = "closed"   // the run has ended
)

// Limits of a state. etcd takes requests of up to 1.5 MiB, which hold some 20,000 confirmed agents; a larger state was
// not written by an agent, and would cost every agent its memory.
const (
	maxState        = 2 << 20
	maxParticipants = 1 << 16
)

// State is what active_version holds, by which the agents of torch's etcd rendezvous agree on a world. Whoever changes
// it swaps it by value, so that the text as it was read is needed as well.
type State struct {
	Status       Status
	Version      int      // 1 and up; 0 before it has one
	Participants int      // their ranks are 0..Participants-1, in the order in which they came
	KeepAlives   []string // keys of those that confirmed, in that order
	Waiting      int      // agents that wait for another version, torch's num_workers_waiting
	// Agents are the tokens of the participants by rank, "" for agents of torch. It is our own field, which torch's
	// agents copy unread. By it an agent finds its own entry even when the reply to its entering was lost, and its rank
	// after another has left; and it shows whether all members are ours.
	Agents []string
	Raw    string // as it was read

	others map[string]json.RawMessage // unknown fields, which are kept
	has    map[string]bool            // fields that were there, although they may be empty
}

// Fields of the state. All but the last are torch's.
const (
	fieldStatus       = "status"
	fieldVersion      = "version"
	fieldParticipants = "participants"
	fieldKeepAlives   = "keep_alives"
	fieldWaiting      = "num_workers_waiting"
	fieldAgents       = "agents"
)

// ParseState reads the text of active_version. Ranks other than 0..n-1, more keep-alives than participants and text of
// more than 2 MiB are errors.
func ParseState(raw string) (State, error) {
	if len(raw) > maxState {
		return State{}, fmt.Errorf("reading a state of %d bytes: want at most %d", len(raw), maxState)
	}
	s := State{Raw: raw, has: map[string]bool{}}
	if err := json.Unmarshal([]byte(raw), &s.others); err != nil {
		return State{}, fmt.Errorf("reading a state: %w", err)
	}
	var version string
	var ranks []int
	for field, into := range map[string]any{
		fieldStatus: &s.Status, fieldVersion: &version, fieldParticipants: &ranks,
		fieldKeepAlives: &s.KeepAlives, fieldWaiting: &s.Waiting, fieldAgents: &s.Agents,
	} {
		value, ok := s.others[field]
		if !ok {
			continue
		}
		if err := json.Unmarshal(value, into); err != nil {
			return State{}, fmt.Errorf("reading %s of a state: %w", field, err)
		}
		s.has[field] = true
		delete(s.others, field)
	}
	if err := s.check(version, ranks); err != nil {
		return State{}, err
	}
	return s, nil
}

func (s *State) check(version string, ranks []int) error {
	switch s.Status {
	case Setup, Joinable, Frozen, Final, Closed:
	default:
		return fmt.Errorf("reading a state: unknown status %.20q", s.Status)
	}
	if version != "" || s.Status != Setup && s.Status != Closed {
		n, err := strconv.Atoi(version)
		if err != nil || n < 0 || strconv.Itoa(n) != version {
			return fmt.Errorf("reading a state: version %.20q: want a decimal number", version)
		}
		s.Version = n
	}
	if len(ranks) > maxParticipants || len(s.KeepAlives) > len(ranks) || s.Waiting < 0 {
		return fmt.Errorf("reading a state: %d participants, %d keep-alives, %d waiting: "+
			"want at most %d participants, no more keep-alives than those, no negative number",
			len(ranks), len(s.KeepAlives), s.Waiting, maxParticipants)
	}
	for i, r := range ranks {
		if i != r {
			return fmt.Errorf("reading a state: participant %d has rank %d: want ranks in order", i, r)
		}
	}
	s.Participants = len(ranks)
	if len(s.Agents) != s.Participants { // torch's agents do not write theirs
		s.Agents = append(slices.Clone(s.Agents[:min(len(s.Agents), s.Participants)]),
			make([]string, max(0, s.Participants-len(s.Agents)))...)
	}
	return nil
}

// String is the state as torch would write it, and after it the fields that torch does not know.
func (s State) String() string {
	b := &strings.Builder{}
	fmt.Fprintf(b, `{"status": %q`, string(s.Status))
	if s.Version > 0 || s.has[fieldVersion] {
		fmt.Fprintf(b, `, "version": "%d"`, s.Version)
	}
	if s.Status == Joinable || s.Participants > 0 || s.has[fieldParticipants] {
		b.WriteString(`, "participants": [`)
		for i := range s.Participants {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(strconv.Itoa(i))
		}
		b.WriteString("]")
	}
	if s.Status == Frozen || s.Status == Final || s.has[fieldKeepAlives] {
		writeStrings(b, fieldKeepAlives, s.KeepAlives)
	}
	if s.Status == Final || s.has[fieldWaiting] {
		fmt.Fprintf(b, `, %q: %d`, fieldWaiting, s.Waiting)
	}
	if s.tokens() > 0 {
		writeStrings(b, fieldAgents, s.Agents)
	}
	for _, field := range slices.Sorted(maps.Keys(s.others)) {
		fmt.Fprintf(b, ", %s: %s", quote(field), s.others[field])
	}
	b.WriteString("}")
	return b.String()
}

func writeStrings(b *strings.Builder, field string, values []string) {
	fmt.Fprintf(b, ", %q: [", field)
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(v))
	}
	b.WriteString("]")
}

// quote is a string as JSON has it, which is not how Go has it.
func quote(s string) string {
	out, err := json.Marshal(s)
	if err != nil { // no string is refused
		panic(err)
	}
	return string(out)
}

// tokens is how many participants have written their token.
func (s State) tokens() int {
	n := 0
	for _, a := range s.Agents {
		if a != "" {
			n++
		}
	}
	return n
}

// Known says whether all participants are our agents, to whom any other version is a change of membership. Then nobody
// has to wait for torch's agents to poll.
func (s State) Known() bool { return s.tokens() == s.Participants }

// with is the state after one more agent entered itself; the last freezes it.
func (s State) with(token string, maximum int) State {
	s.Agents = append(slices.Clone(s.Agents), token)
	s.Participants++
	if s.Participants == maximum {
		return s.frozen()
	}
	return s
}

// without is the state after the participant of a rank removed itself from a joinable version. All after it get a lower
// rank, which only agents with a token notice; ok is false where there are others.
func (s State) without(rank int) (next State, ok bool) {
	if slices.Contains(s.Agents[rank+1:], "") {
		return State{}, false
	}
	s.Agents = slices.Delete(slices.Clone(s.Agents), rank, rank+1)
	s.Participants--
	return s, true
}

func (s State) frozen() State {
	s.Status, s.KeepAlives = Frozen, nil
	return s
}

// confirmed is the state after one more agent confirmed that it is alive; the last makes it final.
func (s State) confirmed(keepAlive string) State {
	if keepAlive != "" {
		s.KeepAlives = append(slices.Clone(s.KeepAlives), keepAlive)
	}
	if len(s.KeepAlives) == s.Participants {
		s.Status, s.Waiting = Final, 0
	}
	return s
}

func (s State) announced() State {
	s.Waiting++
	return s
}

func (s State) closed() State {
	s.Status = Closed
	return s
}
