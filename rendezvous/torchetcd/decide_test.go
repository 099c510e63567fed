package torchetcd

import "testing"

// TestRankWithoutToken: where another agent has dropped the field that names all of them, a member keeps its rank in
// the version that it knows, as long as that still has such a rank.
func TestRankWithoutToken(t *testing.T) {
	for _, c := range []struct {
		reason string
		state  State
		want   int
	}{
		{"the field was dropped", State{Version: 3, Participants: 3}, 2},
		{"no participant has this rank any more", State{Version: 3, Participants: 2}, -1},
		{"it is another version", State{Version: 4, Participants: 3}, -1},
		{"others have their tokens in it", State{Version: 3, Participants: 3, Agents: []string{"b", "c", "d"}}, -1},
	} {
		m := New(Protocol{Dir: "/r", Token: "a", Min: 2, Max: 3})
		m.version, m.rank, m.state = 3, 2, c.state
		if got := m.ownRank(); got != c.want {
			t.Errorf("%s: rank %d, want %d", c.reason, got, c.want)
		}
	}
}
