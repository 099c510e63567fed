package torchetcd

import (
	"iter"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"time"
)

// torch is an agent of torch, written from the description of what it does and not for speed or safety: one thread that
// asks and waits. It is run as a coroutine, which yields what it wants of the world, and then finds the answer in got.
type torch struct {
	min, max      int
	lastCall      time.Duration
	dir           string
	rand          *rand.Rand
	now           func() time.Duration
	got           Reply
	yield         func(want) bool
	key           string // that is kept alive, "" for none
	version, rank int
	size          int
}

// want is one thing of those that an agent of torch wants.
type want struct {
	ask   *Action
	limit time.Duration // of a watch
	sleep time.Duration
	alive bool // the key is to be kept alive from now on
	final bool // a world: go on once it is to be left
}

// What ends a round, or the agent.
type (
	torchKilled struct{}
	torchAgain  struct{ after time.Duration }
	torchEnds   struct{}
)

// life is the agent's life, until it is killed or the run is closed.
func (a *torch) life() iter.Seq[want] {
	return func(yield func(want) bool) {
		a.yield = yield
		for {
			a.key = ""
			next, ends := a.round()
			if ends {
				return
			}
			if next > 0 && !yield(want{sleep: next}) {
				return
			}
		}
	}
}

// round tries once to form a world, and stays in it.
func (a *torch) round() (again time.Duration, ends bool) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case torchKilled, torchEnds:
			ends = true
		case torchAgain:
			again = e.after
		default:
			panic(e)
		}
	}()
	a.rendezvous()
	a.do(want{final: true})
	return 0, false
}

func (a *torch) do(w want) {
	if !a.yield(w) {
		panic(torchKilled{})
	}
}

func (a *torch) sleep(d time.Duration) { a.do(want{sleep: d}) }

func (a *torch) ask(action Action) Reply {
	a.do(want{ask: &action})
	return a.got
}

// must is an answer other than an error, which ends the round.
func (a *torch) must(r Reply) Reply {
	if r.Code != 0 {
		panic(torchAgain{time.Second})
	}
	return r
}

func (a *torch) active() string { return path.Join(a.dir, "active_version") }

func (a *torch) state() State {
	r := a.must(a.ask(Action{Kind: Get, Key: a.active()}))
	s, err := ParseState(r.Value)
	if err != nil {
		panic(err)
	}
	a.got = r
	return s
}

func (a *torch) watch(key string, limit time.Duration) Reply {
	w := Action{Kind: Watch, Key: key, Index: a.got.Index + 1}
	a.do(want{ask: &w, limit: limit})
	return a.got
}

func (a *torch) swap(old, next State, ttl time.Duration) bool {
	r := a.ask(Action{Kind: Swap, Key: a.active(), Previous: old.Raw, Value: next.String(), TTL: ttl})
	if r.Code == CodeCompare {
		return false
	}
	a.must(r)
	return true
}

func (a *torch) rendezvous() {
	s := a.create()
	switch s.Status {
	case Closed:
		panic(torchEnds{})
	case Joinable:
		a.version = s.Version
		a.join()
		a.callLast()
		a.awaitFrozen()
		a.confirm()
	case Final:
		a.wait(s)
	default:
		a.watch(a.active(), time.Minute)
		panic(torchAgain{time.Second})
	}
}

func (a *torch) create() State {
	setup := State{Status: Setup}
	r := a.ask(Action{Kind: Create, Key: a.active(), Value: setup.String(), TTL: 5 * time.Second})
	if r.Code == CodeExists {
		return a.state()
	}
	a.must(r)
	counter := path.Join(a.dir, "version_counter")
	r = a.must(a.ask(Action{Kind: Get, Key: counter}))
	n, err := strconv.Atoi(r.Value)
	if err != nil {
		panic(err)
	}
	if r := a.ask(Action{Kind: SwapAt, Key: counter, Value: strconv.Itoa(n + 1), Index: r.Modified}); r.Code != 0 {
		panic(torchEnds{})
	}
	a.must(a.ask(Action{Kind: Mkdir, Key: path.Join(a.dir, "v_"+strconv.Itoa(n+1))}))
	next := State{Status: Joinable, Version: n + 1}
	setup.Raw = setup.String()
	if !a.swap(setup, next, 0) {
		panic(torchAgain{time.Second})
	}
	return next
}

// pause is what torch's agents do before each swap that many may try.
func (a *torch) pause() { a.sleep(time.Duration(a.rand.Float64() * float64(100*time.Millisecond))) }

func (a *torch) ofMine(s State, status Status) State {
	if s.Status != status || s.Version != a.version {
		panic(torchAgain{time.Second})
	}
	return s
}

func (a *torch) join() {
	for {
		a.pause()
		s := a.ofMine(a.state(), Joinable)
		if s.Participants >= a.max {
			panic(torchAgain{time.Second})
		}
		next, ttl := s, time.Duration(0)
		next.Participants++
		if next.Participants == a.max {
			next, ttl = next.frozen(), 10*time.Second
		} else if next.Participants >= a.min {
			ttl = 10 * time.Second
		}
		if a.swap(s, next, ttl) {
			a.rank = s.Participants
			return
		}
	}
}

func (a *torch) callLast() {
	if a.rank != a.min-1 || a.min == a.max {
		return
	}
	end := a.now() + a.lastCall
	for {
		s := a.state()
		if s.Status != Joinable || s.Version != a.version {
			return
		}
		left := end - a.now()
		if left <= 0 {
			if a.swap(s, s.frozen(), 10*time.Second) {
				return
			}
			continue
		}
		if a.swap(s, s, 10*time.Second) {
			a.watch(a.active(), min(5*time.Second, left+time.Second))
		}
	}
}

func (a *torch) awaitFrozen() {
	for {
		s := a.state()
		if s.Status == Joinable && s.Version == a.version {
			a.watch(a.active(), time.Minute)
			continue
		}
		a.ofMine(s, Frozen)
		return
	}
}

func (a *torch) confirm() {
	for {
		a.pause()
		s := a.ofMine(a.state(), Frozen)
		key := path.Join(a.dir, "v_"+strconv.Itoa(a.version), "rank_"+strconv.Itoa(a.rank))
		a.must(a.ask(Action{Kind: Set, Key: key, TTL: 10 * time.Second}))
		next, ttl := s.confirmed(key), 10*time.Second
		if next.Status == Final {
			ttl = 0
		}
		if a.swap(s, next, ttl) {
			a.key = key
			a.do(want{alive: true})
			break
		}
	}
	for {
		s := a.state()
		if s.Status == Frozen && s.Version == a.version {
			a.watch(a.active(), time.Minute)
			continue
		}
		a.size = a.ofMine(s, Final).Participants
		return
	}
}

// wait is for a world that this agent is no member of.
func (a *torch) wait(s State) {
	for {
		next := s.announced()
		if a.swap(s, next, 0) {
			break
		}
		if s = a.state(); s.Status != Final {
			panic(torchAgain{time.Second})
		}
	}
	version := s.Version
	for {
		s := a.state()
		if s.Status != Final || s.Version != version {
			panic(torchAgain{0})
		}
		at := a.got
		r := a.must(a.ask(Action{Kind: List, Key: path.Join(a.dir, "v_"+strconv.Itoa(version))}))
		for _, key := range s.KeepAlives {
			if !slices.Contains(r.Names, key) {
				a.must(a.ask(Action{Kind: Delete, Key: a.active(), Previous: s.Raw}))
				panic(torchAgain{0})
			}
		}
		a.got = at
		a.watch(a.dir, time.Minute)
	}
}
