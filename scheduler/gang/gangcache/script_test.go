package gangcache

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tegen-dev/tegen/scheduler/internal/golden"
)

// TestScripts plays the transcripts of testdata, which hold what happens to a cache and, indented, what it answers.
// Each begins with the reason why it is there. make golden rewrites the answers; read the difference.
//
//	gang NAME min=4 mode=NonStrict      what pods of a gang declare from here on; native ones need no such line
//	pod, bound, held, failed, leaving PODS       with of=GANG, bad=PROBLEM: records pods; g-0..3 are four pods of gang g
//	gone PODS                           removes pods
//	podgroup NAME min=4                sets the PodGroup of a native gang; delete-podgroup NAME removes it
//	admit, wanted, reserve, blocked, … PODS   asks about pods, or records what became of them
//	start POD PODS [on=NODE]            opens a round with a plan
//	sites PODS                         shows near what they must be, and who would be with them
//	holding NODE                       shows who holds a place there
//	clock 5s, order, stats               lets time pass; shows the queue, and sums
func TestScripts(t *testing.T) { golden.Transcripts(t, play) }

// play carries out the commands of a transcript, and returns it with the answers.
func play(t *testing.T, transcript string) string {
	s := &script{cache: New(), now: start, specs: map[string]Spec{}, pods: map[string]Member{}}
	return golden.Play(transcript, func(command string) []string {
		answers := s.do(t, strings.Fields(command))
		checkSums(t, s.cache)
		return answers
	})
}

var start = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)

type script struct {
	cache *Cache
	now   time.Time
	specs map[string]Spec
	pods  map[string]Member
	age   int
	node  string // where pods run, or have places reserved
}

// do carries out one command: a verb, names, and key=value options.
func (s *script) do(t *testing.T, words []string) (answers []string) {
	verb, names, options := words[0], []string{}, map[string]string{}
	for _, w := range words[1:] {
		if key, value, ok := strings.Cut(w, "="); ok {
			options[key] = value
		} else {
			names = append(names, expand(t, w)...)
		}
	}
	states := map[string]State{
		"pod": Pending, "bound": Bound, "held": Held, "failed": Failed, "leaving": Leaving, "absent": Absent,
	}
	if state, ok := states[verb]; ok {
		for _, name := range names {
			answers = append(answers, s.put(name, state, options)...)
		}
		return answers
	}
	switch verb {
	case "gang":
		s.specs[names[0]] = spec(t, names[0], options)
	case "podgroup":
		var problem error
		if p := options["bad"]; p != "" {
			problem = errors.New(strings.ReplaceAll(p, "_", " "))
		}
		return changes(s.cache.SetPodGroup(nativeKey(names[0]), spec(t, names[0], options), problem, s.now))
	case "delete-podgroup":
		return changes(s.cache.RemovePodGroup(nativeKey(names[0]), s.now))
	case "start":
		plan := map[UID]string{}
		for _, name := range names[1:] {
			plan[UID(name)] = options["on"]
		}
		_, c := s.cache.Start(UID(names[0]), plan)
		return changes(c)
	case "clock":
		d, err := time.ParseDuration(names[0])
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(d)
	case "order":
		return []string{s.order()}
	case "holding":
		held := s.cache.WaitingOn(names[0])
		slices.Sort(held)
		return []string{fmt.Sprint(held)}
	case "stats":
		return []string{fmt.Sprintf("%+v", s.cache.Stats())}
	default:
		s.node = options["on"]
		for _, name := range names {
			answers = append(answers, s.ask(t, verb, UID(name))...)
		}
	}
	return answers
}

// ask puts a question about one pod, or records what became of it.
func (s *script) ask(t *testing.T, verb string, uid UID) []string {
	switch verb {
	case "gone":
		return changes(s.cache.Remove(uid, s.now))
	case "admit":
		if v := s.cache.Admit(uid); !v.OK {
			return []string{fmt.Sprintf("%s: no: %s", uid, v.Reason)}
		}
		return []string{string(uid) + ": yes"}
	case "sites":
		return or(sites(s.cache.Attempt(uid).Wants), string(uid)+": none")
	case "wanted":
		var out []string
		for _, w := range s.cache.Attempt(uid).Wants {
			out = append(out, fmt.Sprintf("%s: %d of %d among %s", w.Gang, w.Need, w.Min, w.Candidates))
		}
		return or(out, "nothing")
	case "planned":
		a := s.cache.Attempt(uid)
		return []string{fmt.Sprintf("%s: %v %q pinned %v", uid, a.Planned, a.Node, a.Pin)}
	case "reserve":
		r := s.cache.Reserve(uid, s.node, s.now)
		if r.Allowed {
			return append([]string{string(uid) + ": allowed"}, changes(r.Change)...)
		}
		return append([]string{fmt.Sprintf("%s: waits %s", uid, r.Wait)}, changes(r.Change)...)
	case "unreserve":
		return changes(s.cache.Unreserve(uid))
	case "fail":
		return changes(s.cache.Fail(uid))
	case "blocked":
		reason, broken := s.cache.BlockingReason(uid)
		return []string{fmt.Sprintf("%s: %q broken %v", uid, reason, broken)}
	case "membership":
		return []string{fmt.Sprintf("%s: %+v", uid, s.cache.Membership(uid))}
	case "overdue":
		return []string{fmt.Sprintf("%s: %q", uid, s.cache.Overdue(uid, s.now))}
	}
	t.Fatalf("unknown verb %q", verb)
	return nil
}

// put records a pod. One that is new is a second younger than the last.
func (s *script) put(name string, state State, options map[string]string) []string {
	m, ok := s.pods[name]
	if !ok {
		s.age++
		m = Member{UID: UID(name), Namespace: "a", Name: name, Created: start.Add(time.Duration(s.age) * time.Second)}
		gang, _, _ := strings.Cut(name, "-")
		m.Gang = keyOf(gang)
	}
	if of := options["of"]; of != "" {
		m.Gang = keyOf(of)
	}
	m.State, m.Problem, m.Node = state, nil, ""
	if state == Bound {
		m.Node = options["on"]
	}
	m.Slice.Number, _ = strconv.Atoi(options["slice"])
	if !m.Gang.Native {
		m.Spec = s.specs[gangName(m.Gang)]
	}
	if p := options["bad"]; p != "" {
		m.Problem = errors.New(strings.ReplaceAll(p, "_", " "))
	}
	if n, err := strconv.Atoi(options["min"]); err == nil {
		m.Spec.Min = n
	}
	s.pods[name] = m
	return changes(s.cache.Put(m, s.now))
}

func (s *script) order() string {
	var pods []string
	for name := range s.pods {
		if _, ok := s.cache.Order(UID(name)); ok {
			pods = append(pods, name)
		}
	}
	slices.SortFunc(pods, func(a, b string) int {
		orderA, _ := s.cache.Order(UID(a))
		orderB, _ := s.cache.Order(UID(b))
		return orderA.Compare(orderB)
	})
	return strings.Join(pods, " ")
}

// keyOf reads a gang's name as transcripts have it: b/g is in namespace b, others are in a; pg… are native.
func keyOf(name string) Key {
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		return Key{Namespace: namespace, Name: rest}
	}
	if strings.HasPrefix(name, "native:") {
		return nativeKey(strings.TrimPrefix(name, "native:"))
	}
	return Key{Namespace: "a", Name: name}
}

func gangName(k Key) string {
	if k.Namespace == "a" {
		return k.Name
	}
	return k.String()
}

func nativeKey(name string) Key { return Key{Namespace: "a", Name: name, Native: true} }

func spec(t *testing.T, name string, options map[string]string) Spec {
	annotations := map[string]string{Prefix + Name: name, Prefix + MinMembers: options["min"]}
	if layer, ok := options["gathers"]; ok {
		options["topology"] = `{"gatherStrategy":[{"layer":"` + layer + `","strategy":"MustGather"}]}`
	}
	for option, key := range map[string]string{
		"total": TotalNumber, "mode": ModeKey, "policy": MatchPolicy, "waiting": WaitingTime, "topology": TopologyKey,
	} {
		if v, ok := options[option]; ok {
			annotations[Prefix+key] = v
		}
	}
	if v, ok := options["groups"]; ok {
		annotations[Prefix+GroupsKey] = `["` + strings.ReplaceAll(v, ",", `","`) + `"]`
	}
	key := keyOf(name)
	annotations[Prefix+Name] = key.Name
	_, s, err := FromAnnotations(key.Namespace, annotations, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// expand reads g-0..3 as four names.
func expand(t *testing.T, name string) []string {
	prefix, last, ok := strings.Cut(name, "..")
	if !ok {
		return []string{name}
	}
	i := strings.LastIndex(prefix, "-") + 1
	from, err := strconv.Atoi(prefix[i:])
	to, err2 := strconv.Atoi(last)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	var out []string
	for n := from; n <= to; n++ {
		out = append(out, prefix[:i]+strconv.Itoa(n))
	}
	return out
}

// sites are the nodes near which pods must be, and who would be with them.
func sites(wants []Want) (out []string) {
	for _, w := range wants {
		slices.SortFunc(w.Sites, func(a, b Site) int {
			return cmp.Or(cmp.Compare(a.Slice.Number, b.Slice.Number), cmp.Compare(a.Node, b.Node))
		})
		line := fmt.Sprintf("%s of %s gathers in %v:", w.Candidates, w.Gang, w.Layers)
		for _, site := range w.Sites {
			line += fmt.Sprintf(" %d in slice %d on %s,", site.Members, site.Slice.Number, site.Node)
		}
		out = append(out, fmt.Sprintf("%s alone %v with %s", line, w.Alone, w.Company))
	}
	return out
}

func changes(c Change) []string {
	var out []string
	for _, part := range []struct {
		verb string
		uids []UID
	}{{"wake", c.Wake}, {"allow", c.Allow}, {"reject", c.Reject}} {
		if len(part.uids) > 0 {
			slices.Sort(part.uids)
			out = append(out, fmt.Sprintf("%s %s", part.verb, part.uids))
		}
	}
	if len(c.Later) > 0 {
		out = append(out, fmt.Sprintf("later %s after %s", c.Later, c.After))
	}
	for _, a := range c.Admitted {
		out = append(out, fmt.Sprintf("admitted %s after %s", a.Gang, a.Waited))
	}
	return out
}

func or(out []string, nothing string) []string {
	if len(out) == 0 {
		return []string{nothing}
	}
	return out
}
