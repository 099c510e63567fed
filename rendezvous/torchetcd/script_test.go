package torchetcd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/rendezvous/internal/golden"
)

// TestScripts plays the transcripts of testdata, which hold what happens to machines and, indented, what they want
// done. Each begins with the reason why it is there. make golden rewrites the answers; read the difference.
//
//	machine A min=2 max=3 last-call=30s   makes machines, which are named by letters; ID is the letter
//	join|leave|close A…                     events of the caller; join with until=60s
//	answer A…                               answers all requests of machines, from the store
//	lose A…                                 carries them out, and loses the replies
//	cut A…                                  loses the requests
//	drain A…                               answers and ticks until the machines only watch, and no alarm is due
//	clock 5s                                lets time pass, without a tick
//	tick A…                                 lets time pass until the alarm of each machine, and ticks it
//	put KEY [ttl=10s] VALUE                 writes a key, as an agent of torch would; rm KEY removes it
//	store                                   shows all keys
//
// Those that begin with members are about an Exchange, see worldScript.
func TestScripts(t *testing.T) {
	golden.Transcripts(t, func(t *testing.T, transcript string) string {
		if strings.Contains(transcript, "\nmembers ") {
			return playWorld(t, transcript)
		}
		return play(t, transcript)
	})
}

// play carries out the commands of a transcript, and returns it with the answers.
func play(t *testing.T, transcript string) string {
	s := &script{t: t, store: newV2(), machines: map[string]*scripted{}}
	return golden.Play(transcript, func(command string) []string {
		s.answers = nil
		s.do(strings.Fields(command), command)
		return s.answers
	})
}

type script struct {
	t        *testing.T
	store    *v2
	machines map[string]*scripted
	now      time.Duration
	answers  []string
}

type scripted struct {
	*Machine
	name  string
	asked []Action
	alarm time.Duration
}

func (s *script) do(words []string, line string) {
	verb, names, options := words[0], []string{}, map[string]string{}
	for _, w := range words[1:] {
		if key, value, ok := strings.Cut(w, "="); ok && !strings.ContainsAny(key, `"{/`) {
			options[key] = value
		} else {
			names = append(names, w)
		}
	}
	switch verb {
	case "machine":
		for _, name := range names {
			s.machine(name, options)
		}
	case "clock":
		s.pass(s.now + s.duration(names[0]))
	case "store":
		if text := s.store.String(); text != "" {
			s.answers = strings.Split(text, "\n")
		}
	case "put":
		_, value, _ := strings.Cut(line, " {")
		switch {
		case value != "":
			value = "{" + value
		case len(names) > 1:
			value = names[1]
		}
		s.store.do(Action{Kind: Set, Key: names[0], Value: value, TTL: s.duration(options["ttl"])})
	case "rm":
		s.store.remove(names[0])
	default:
		for _, name := range names {
			m := s.machines[name]
			if m == nil {
				s.t.Fatalf("%s: there is no machine %s", line, name)
			}
			s.tell(m, verb, options)
		}
	}
}

func (s *script) machine(name string, options map[string]string) {
	number := func(key string) int {
		n, err := strconv.Atoi(options[key])
		if err != nil {
			s.t.Fatal(err)
		}
		return n
	}
	s.machines[name] = &scripted{name: name, Machine: New(Protocol{
		Dir: "/r", Token: name, Min: number("min"), Max: number("max"), LastCall: s.duration(options["last-call"]),
	})}
}

func (s *script) duration(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *script) pass(now time.Duration) {
	s.now = now
	s.store.pass(now)
}

func (s *script) tell(m *scripted, verb string, options map[string]string) {
	switch verb {
	case EventJoin, EventLeave, EventClose:
		until := s.duration(options["until"])
		if until == 0 {
			until = 10 * time.Minute
		}
		s.step(m, Event{Kind: verb, Until: s.now + until})
	case "answer", "lose", "cut":
		asked := m.asked
		m.asked = nil
		for _, a := range asked {
			s.answer(m, a, verb)
		}
	case EventTick:
		s.pass(max(s.now, m.alarm))
		s.answers = append(s.answers, fmt.Sprintf("at %s", s.now))
		s.step(m, Event{Kind: EventTick})
	case "drain":
		s.drain(m)
	default:
		s.t.Fatalf("unknown verb %q", verb)
	}
}

// answer answers one request. A watch without an event goes on.
func (s *script) answer(m *scripted, a Action, how string) {
	r := Reply{}
	switch {
	case a.Kind == Watch && how == "answer":
		ok := false
		if r, ok = s.store.watched(a); !ok {
			m.asked = append(m.asked, a)
			return
		}
	case how != "cut" && a.Kind != Watch:
		r = s.store.do(a)
	}
	if how != "answer" {
		r = Reply{Code: Lost}
	}
	s.step(m, Event{Kind: EventAnswer, ID: a.ID, Reply: r})
}

func (s *script) drain(m *scripted) {
	for range 1000 {
		before := len(s.answers)
		s.tell(m, "answer", nil)
		if len(s.answers) > before {
			continue
		}
		if m.alarm == 0 || m.alarm > s.now+2*time.Second {
			return
		}
		s.tell(m, EventTick, nil)
	}
	s.t.Fatalf("machine %s does not come to rest", m.name)
}

func (s *script) step(m *scripted, e Event) {
	e.Now, e.Chance = s.now, 0.5
	for _, a := range m.Step(e) {
		s.answers = append(s.answers, m.name+": "+a.text())
		switch a.Kind {
		case Alarm:
			m.alarm = a.At
		case Drop:
			m.asked = slices.DeleteFunc(m.asked, func(asked Action) bool { return asked.ID == a.ID })
		case Formed, Changed, Ended, TimedOut, Withdrawn:
		default:
			m.asked = append(m.asked, a)
		}
	}
}

// text is an action as transcripts have it.
func (a Action) text() string {
	words := []string{a.Kind}
	add := func(ok bool, format string, args ...any) {
		if ok {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(a.Key != "", "%s", a.Key)
	add(a.Value != "", "%s", a.Value)
	add(a.Index > 0, "@%d", a.Index)
	add(a.TTL > 0, "ttl=%s", a.TTL)
	add(a.For > 0, "for %s", a.For)
	add(a.Kind == Alarm, "at %s", a.At)
	add(a.Kind == Formed, "version %d: %d of %d, known %v", a.World.Version, a.World.Rank, a.World.Size,
		a.World.Known())
	return strings.Join(words, " ")
}
