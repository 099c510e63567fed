package proxystore

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorded are states of a round with participants a and b and a node c that waits, as three versions of torch pickle
// them.
var recorded = map[string]string{
	"1.13": `gASVYQEAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOUjBBfUmVuZGV6dm91
c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiIwIZGVhZGxpbmWUjAhkYXRldGltZZSMCGRhdGV0aW1llJOUQwoH6gECAwQFAAAGlIWUUpSM
BmNsb3NlZJSJjAxwYXJ0aWNpcGFudHOUfZQoaACMCV9Ob2RlRGVzY5STlCmBlH2UKIwEZnFkbpSMAWGUjANwaWSUSwGMCGxvY2FsX2lklEsAdWJLAGgSKYGU
fZQoaBWMAWKUaBdLAmgYSwB1YksBdYwJd2FpdF9saXN0lI+UKGgSKYGUfZQoaBWMAWOUaBdKcBEBAGgYTSwBdWKQjA9sYXN0X2hlYXJ0YmVhdHOUfZQoaBNo
DWgZaA1oHmgNdXViLg==`,
	"2.6": `gASVogEAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOUjBBfUmVuZGV6dm91c
1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiIwIZGVhZGxpbmWUjAhkYXRldGltZZSMCGRhdGV0aW1llJOUQwoH6gECAwQFAAAGlGgIjAh0a
W1lem9uZZSTlGgIjAl0aW1lZGVsdGGUk5RLAEsASwCHlFKUhZRSlIaUUpSMBmNsb3NlZJSJjAxwYXJ0aWNpcGFudHOUfZQoaACMCV9Ob2RlRGVzY5STlCmBl
H2UKIwEYWRkcpSMAWGUjANwaWSUSwGMCGxvY2FsX2lklEsAdWJLAGgaKYGUfZQoaB2MAWKUaB9LAmggSwB1YksBdYwJd2FpdF9saXN0lI+UKGgaKYGUfZQoa
B2MAWOUaB9KcBEBAGggTSwBdWKQjA9yZWR1bmRhbmN5X2xpc3SUj5SMD2xhc3RfaGVhcnRiZWF0c5R9lChoG2gVaCFoFWgmaBV1dWIu`,
	"2.14": `gAWVogEAAAAAAACMN3RvcmNoLmRpc3RyaWJ1dGVkLmVsYXN0aWMucmVuZGV6dm91cy5keW5hbWljX3JlbmRlenZvdXOUjBBfUmVuZGV6dm91
c1N0YXRllJOUKYGUfZQojAVyb3VuZJRLAIwIY29tcGxldGWUiIwIZGVhZGxpbmWUjAhkYXRldGltZZSMCGRhdGV0aW1llJOUQwoH6gECAwQFAAAGlGgIjAh0
aW1lem9uZZSTlGgIjAl0aW1lZGVsdGGUk5RLAEsASwCHlFKUhZRSlIaUUpSMBmNsb3NlZJSJjAxwYXJ0aWNpcGFudHOUfZQoaACMCV9Ob2RlRGVzY5STlCmB
lH2UKIwEYWRkcpSMAWGUjANwaWSUSwGMCGxvY2FsX2lklEsAdWJLAGgaKYGUfZQoaB2MAWKUaB9LAmggSwB1YksBdYwJd2FpdF9saXN0lI+UKGgaKYGUfZQo
aB2MAWOUaB9KcBEBAGggTSwBdWKQjA9yZWR1bmRhbmN5X2xpc3SUj5SMD2xhc3RfaGVhcnRiZWF0c5R9lChoG2gVaCFoFWgmaBV1dWIu`,
}

const (
	nodeA = "a_1_0"
	nodeB = "b_2_0"
	nodeC = "c_70000_300"
)

func state(t *testing.T, version string) *membership {
	t.Helper()
	m, err := parseMembership([]byte(strings.ReplaceAll(recorded[version], "\n", "")))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// again is a state as the next one reads it.
func again(t *testing.T, m *membership) *membership {
	t.Helper()
	text, err := m.text()
	if err != nil {
		t.Fatal(err)
	}
	if m, err = parseMembership(text); err != nil {
		t.Fatal(err)
	}
	return m
}

// summary is what agents see of a state.
func summary(m *membership) string {
	nodes := func(all []any) string { s := names(all); slices.Sort(s); return strings.Join(s, " ") }
	return fmt.Sprintf("round %d, complete %v, closed %v: %s; waiting %s; heard of %s",
		m.round(), m.complete(), m.closed(),
		nodes(m.participants.keys), nodes(m.waiting.items), nodes(m.heartbeats.keys))
}

// TestMembership: states of each version are read, and are the same after they were written.
func TestMembership(t *testing.T) {
	const want = "round 0, complete true, closed false: a_1_0 b_2_0; waiting c_70000_300; " +
		"heard of a_1_0 b_2_0 c_70000_300"
	for version := range recorded {
		m := state(t, version)
		for range 2 {
			if got := summary(m); got != want {
				t.Errorf("%s: got %s, want %s", version, got, want)
			}
			m = again(t, m)
		}
	}
}

// TestEvict: agents see a node that waits as long as the round lasts in which a node was lost, and no longer. The last
// participant ends the round.
func TestEvict(t *testing.T) {
	const phantom = placeholderHost + "b_2_0_0_0"
	for version := range recorded {
		t.Run(version, func(t *testing.T) {
			m := state(t, version)
			m.evict(map[string]bool{nodeB: true, nodeC: true})
			m = again(t, m)
			check := func(want string) {
				t.Helper()
				if diff := cmp.Diff(want, summary(m)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			check("round 0, complete true, closed false: a_1_0; waiting " + phantom + "; heard of a_1_0 " + phantom)
			if m.removeExpired() || m.remaining(nil) != 1 {
				t.Errorf("the lost node has expired in its own round, or counts as one of %d", m.remaining(nil))
			}
			m.fields.set("round", int64(1))
			if m = again(t, m); !m.removeExpired() || m.removeExpired() {
				t.Error("the lost node has not expired once with its round")
			}
			check("round 1, complete true, closed false: a_1_0; waiting ; heard of a_1_0")
			m.evict(map[string]bool{nodeA: true})
			check("round 2, complete false, closed false: ; waiting ; heard of ")
		})
	}
}

// TestWithNewHeartbeats: the node that has written a state is the one whose heartbeat is new.
func TestWithNewHeartbeats(t *testing.T) {
	for version := range recorded {
		older, m := state(t, version), state(t, version)
		if got := m.withNewHeartbeats(older); len(got) > 0 {
			t.Errorf("%s: %v have written what is the same", version, got)
		}
		beat, err := m.datetime(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		m.heartbeats.set(m.heartbeats.keys[1], beat)
		if got := m.withNewHeartbeats(older); len(got) != 1 || nodeName(got[0]) != nodeB {
			t.Errorf("%s: %v have written, want b alone", version, got)
		}
		if got := m.withNewHeartbeats(nil); len(got) != 3 {
			t.Errorf("%s: %v have written the first state, want all", version, got)
		}
	}
}

// TestRestore: a participant that an agent removes from a complete round is put back with its rank and a heartbeat, and
// one that leaves with the round is not.
func TestRestore(t *testing.T) {
	all := func(string) bool { return true }
	for version := range recorded {
		older, m := state(t, version), state(t, version)
		m.remove(func(v any) bool { return nodeName(v) == nodeB })
		if m.restore(older, func(string) bool { return false }) || m.has(nodeB) {
			t.Errorf("%s: a node was put back that is not kept", version)
		}
		began := time.Now().Add(-time.Second)
		if !m.restore(older, all) || m.restore(older, all) {
			t.Errorf("%s: b was not put back once", version)
		}
		m = again(t, m)
		if _, stale := m.stale(nodeB, began); stale || m.participants.values[1] != int64(1) {
			t.Errorf("%s: b is back with rank %v, and its heartbeat is old: %v", version, m.participants.values[1],
				stale)
		}
		if _, stale := m.stale(nodeA, began); !stale {
			t.Errorf("%s: the heartbeat of a is not from %v", version, began)
		}
		m = state(t, version)
		m.remove(func(any) bool { return true })
		m.fields.set("round", int64(1))
		if m.restore(older, all) {
			t.Errorf("%s: a round has got participants of the one before", version)
		}
	}
}

// TestLeaver: an agent that moves itself from a complete round to the wait list, because its heartbeat was old, gets a
// placeholder there. The others then form the next round. An agent that leaves to join the next round gets none.
func TestLeaver(t *testing.T) {
	isA := func(v any) bool { return nodeName(v) == nodeA }
	for version := range recorded {
		older, m := state(t, version), state(t, version)
		node := m.participants.keys[slices.IndexFunc(m.participants.keys, isA)].(*pyObject)
		m.remove(isA)
		if m.replaceLeaver(older, nodeA) {
			t.Errorf("%s: an agent that left has a placeholder", version)
		}
		m.addToWaitList(node, time.Now())
		if m.replaceLeaver(older, nodeB) || m.replaceLeaver(nil, nodeA) || m.hasPlaceholder() {
			t.Errorf("%s: another agent has a placeholder", version)
		}
		if !m.replaceLeaver(older, nodeA) || !again(t, m).hasPlaceholder() {
			t.Errorf("%s: no placeholder stands for the agent that removed itself", version)
		}
		m.fields.set("round", older.round()+1)
		if m.replaceLeaver(older, nodeA) {
			t.Errorf("%s: the agent of an older round has a placeholder", version)
		}
	}
}

// TestPython: Python reads what is written here as it was, with the times that were set.
func TestPython(t *testing.T) {
	const program = `
import base64, datetime, pickle, sys, types
name = "torch.distributed.elastic.rendezvous.dynamic_rendezvous"
for i in range(1, 6):
    part = ".".join(name.split(".")[:i])
    module = sys.modules[part] = types.ModuleType(part)
class _RendezvousState: pass
class _NodeDesc:
    def __hash__(self): return hash(tuple(vars(self).values()))
    def __eq__(self, other): return vars(self) == vars(other)
    def __lt__(self, other): return str(self) < str(other)
    def __repr__(self): return "_".join(map(str, vars(self).values()))
for c in _RendezvousState, _NodeDesc:
    c.__module__ = name
    setattr(module, c.__name__, c)
s = pickle.loads(base64.b64decode(sys.argv[1]))
print(s.round, s.complete, s.deadline, s.closed, s.participants, s.wait_list,
    sorted((n, str(t)) for n, t in s.last_heartbeats.items()))`
	python, err := exec.LookPath("python3")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("no python3 here")
	}
	for version, zone := range map[string]string{"1.13": "", "2.6": "+00:00", "2.14": "+00:00"} {
		m := state(t, version)
		m.addToWaitList(m.placeholder(m.participants.keys[0]), time.Date(2027, 1, 2, 3, 4, 5, 678_000, time.UTC))
		m.remove(func(v any) bool { return nodeName(v) == nodeC })
		text, err := m.text()
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), python, "-c", program, string(text)).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", version, err, out)
		}
		phantom := placeholderHost + "a_1_0_0_0"
		old := "2026-01-02 03:04:05.000006" + zone
		want := fmt.Sprintf("0 True %[1]s False {a_1_0: 0, b_2_0: 1} {%[2]s} [(a_1_0, '%[1]s'), (b_2_0, '%[1]s'), "+
			"(%[2]s, '2027-01-02 03:04:05.000678%[3]s')]\n", old, phantom, zone)
		if string(out) != want {
			t.Errorf("%s: got %s want %s", version, out, want)
		}
	}
}

// TestMalformed: what is no state of torch's is refused, whatever it is.
func TestMalformed(t *testing.T) {
	for version := range recorded {
		raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(recorded[version], "\n", ""))
		if err != nil {
			t.Fatal(err)
		}
		for n := range raw {
			if _, err := parseMembership([]byte(base64.StdEncoding.EncodeToString(raw[:n]))); err == nil {
				t.Errorf("%s: its first %d bytes are a state", version, n)
			}
			changed := slices.Clone(raw)
			changed[n] ^= 0x7f
			_, _ = parseMembership([]byte(base64.StdEncoding.EncodeToString(changed))) // it does not panic
		}
	}
	for name, text := range map[string]string{
		"no base64": "*", "nothing": "", "sentinel": "Y2FuaW1hZGFt", "an integer": "gARLAC4=", "a call": "gARLAEsAUi4=",
	} {
		if _, err := parseMembership([]byte(text)); err == nil {
			t.Errorf("%s is a state", name)
		}
	}
}

// withField is a state with one more field, whose value is built by operations of a pickle.
func withField(t *testing.T, value []byte) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(recorded["2.6"], "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	end := len(raw) - len("ub.")
	raw = slices.Concat(raw[:end], []byte{opShortText, 1, 'x'}, value, raw[end:])
	return base64.StdEncoding.AppendEncode(nil, raw)
}

// nestedTuples are the operations that build n tuples around an empty one.
func nestedTuples(n int) []byte {
	return append([]byte{opEmptyTuple}, bytes.Repeat([]byte{opTuple1}, n)...)
}

// TestNested: a state whose values are nested too deeply to be written again is refused when it is read.
func TestNested(t *testing.T) {
	raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(recorded["2.6"], "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	// Each dict is filled after it was put into the one before, so that no value is nested deeply when it is built.
	dicts, first := []byte{opMark, opEmptyDict}, bytes.Count(raw, []byte{opMemoize})
	for i := range 1000 {
		dicts = append(dicts, opNone, opEmptyDict, opMemoize, opSetItem)
		dicts = binary.LittleEndian.AppendUint32(append(dicts, opLongGet), uint32(first+i))
	}
	dicts = append(dicts, opTuple)
	for name, value := range map[string][]byte{
		"tuples": nestedTuples(780_000), "one too many": nestedTuples(mostNested), "dicts": dicts,
	} {
		if m, err := parseMembership(withField(t, value)); err == nil {
			_, err = m.text()
			t.Errorf("%s: the state is read, and writing it returns %v", name, err)
		}
	}
	m, err := parseMembership(withField(t, nestedTuples(mostNested/2)))
	if err != nil {
		t.Fatal(err)
	}
	again(t, m)
}

func FuzzMembership(f *testing.F) {
	for _, text := range recorded {
		f.Add([]byte(strings.ReplaceAll(text, "\n", "")))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseMembership(text)
		if err != nil {
			return
		}
		before := summary(m)
		if got := summary(again(t, m)); got != before {
			t.Errorf("got %s, want %s", got, before)
		}
		m.evict(map[string]bool{nodeB: true})
		m.removeExpired()
	})
}
