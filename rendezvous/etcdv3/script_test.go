package etcdv3

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/internal/golden"
)

// TestScripts plays the transcripts of testdata, which hold the events of one machine and, indented, what it
// wants done. Each begins with the reason why it is there. make golden rewrites the answers; read the difference.
func TestScripts(t *testing.T) { golden.Transcripts(t, play) }

func play(t *testing.T, transcript string) string {
	m := newMachine("a", rules{2, 3, 30 * time.Second, time.Second, 10 * time.Second},
		entry{Host: "host-a", Workers: 2})
	return golden.Play(transcript, func(command string) (answers []string) {
		for _, a := range m.Step(parse(t, strings.Fields(command))) {
			answer := fmt.Sprintf("%s %+v", strings.TrimPrefix(fmt.Sprintf("%T", a), "etcdv3.act"), a)
			if u, ok := a.(actUpdate); ok && u.mark != nil { // not its address
				answer = fmt.Sprintf("Update {entry:%+v dir:%s mark:%+v}", u.entry, u.dir, *u.mark)
			}
			answers = append(answers, answer)
		}
		return answers
	})
}

// parse reads an event: its name, a word where it has one, and numbers.
func parse(t *testing.T, f []string) event {
	t.Helper()
	var n [4]int64
	word := ""
	for i, k := 1, 0; i < len(f); i++ {
		if _, err := fmt.Sscan(f[i], &n[k]); err != nil {
			word = f[i]
		} else {
			k++
		}
	}
	switch f[0] {
	case "join": // PORT
		return evJoin{int(n[0])}
	case "finish":
		return evFinish{}
	case "joined": // CREATED LEADS LEADER
		return evJoined{created: n[0], leads: n[1], leader: n[2]}
	case "loaded": // REVISION OF-LEADER: only this agent is there
		return evLoaded{agents: map[string]agent{"a": {
			n[1],
			entry{Host: "host-a", Workers: 2, Port: 1, Intent: joining},
		}}, leader: n[1], rev: n[0]}
	case "agent": // ID CREATED AFTER REVISION
		return evAgent{
			word, n[0], &entry{Host: "host-" + word, Workers: 2, Port: 2, Intent: joining, After: int(n[1])},
			n[2],
		}
	case "lost": // ID REVISION
		return evAgent{id: word, rev: n[0]}
	case "gone":
		return evGone{word}
	case "leader": // CREATED REVISION
		return evLeader{n[0], n[1]}
	case "elected": // LEADS
		return evElected{n[0]}
	case "world": // STATE VERSION REVISION
		return evWorld{&doc{Version: int(n[0]), State: state(word), Dir: "dir", Size: 2}, n[1]}
	case "recounted": // STATE VERSION REVISION: another version of this number, after the run's state was forgotten
		return evWorld{&doc{Version: int(n[0]), State: state(word), Dir: "dir2", Size: 2}, n[1]}
	case "forgotten": // REVISION
		return evWorld{nil, n[0]}
	case "assigned": // PRED RANK CREATED
		return evAssigned{"dir", &assignment{Rank: int(n[0]), Pred: word, Created: n[1]}}
	case "unassigned":
		return evAssigned{"dir", nil}
	case "written": // REVISION, or 0
		return evWritten{n[0] != 0, n[0]}
	case "timer": // KIND SEQ
		return evTimer{int(n[0]), int(n[1])}
	}
	t.Fatalf("unknown event %q", f[0])
	return nil
}
