package etcdv3

import "time"

// state is the state of the run.
type state string

const (
	forming   state = "forming"   // the version is over, the next one does not exist yet
	final     state = "final"     // the version is a running world
	succeeded state = "succeeded" // all agents of the last version have finished
	failed    state = "failed"    // an agent has failed for good
)

func (s state) over() bool { return s == succeeded || s == failed }

// doc is the value of the key that all agents watch. It does not grow with the world.
type doc struct {
	Version int    `json:"version"`
	State   state  `json:"state"`
	Dir     string `json:"dir,omitempty"` // where the assignments of this version are, never used twice
	Size    int    `json:"size,omitempty"`
	Total   int    `json:"total,omitempty"` // workers of all agents
	Addr    string `json:"addr,omitempty"`
	Port    int    `json:"port,omitempty"`
	Known   int64  `json:"known,omitempty"` // store's revision at which all agents in it existed
}

// intent is what an agent requests of the leader.
type intent string

const (
	joining intent = "joining" // a version later than After
	done    intent = "done"    // nothing more: its workers have succeeded in version After
	failing intent = "failed"  // that the run is closed
)

// entry is the value of an agent's key, which goes when its lease does.
type entry struct {
	Host    string `json:"host"`
	Role    string `json:"role"`
	Workers int    `json:"workers"`
	Port    int    `json:"port"`             // free on its host, for the worker of rank 0 to listen on
	Listen  int    `json:"listen,omitempty"` // where its neighbours connect to it, 0: nowhere
	Intent  intent `json:"intent"`
	After   int    `json:"after"`
}

// assignment is an agent's place in one version.
type assignment struct {
	Rank      int    `json:"rank"`
	Base      int    `json:"base"`
	RoleBase  int    `json:"roleBase"`
	RoleTotal int    `json:"roleTotal"`
	Pred      string `json:"pred,omitempty"` // the agent of the rank below, which this one watches
	// create revision of the agent's key: a later agent of the same name is another
	Created int64 `json:"created"`
	Done    bool  `json:"done,omitempty"` // outlives the agent, so that no later leader considers it lost
	// Neighbours are watched by a connection to each, in case the agent or its machine is gone.
	Neighbours []neighbour `json:"neighbours,omitempty"`
}

// neighbour is an agent as another one watches it. Its key was created at this revision.
type neighbour struct {
	ID      string `json:"id"`
	Created int64  `json:"created"`
	Addr    string `json:"addr"` // host and port
}

// An event is an input of a machine, an action an output. Every action that names an event in its comment is answered
// by exactly one of those, unless the agent loses its lease first, which ends the machine.
type (
	event  any
	action any

	// Calls of the user.
	evJoin   struct{ port int }
	evFinish struct{}
	evFail   struct{}

	// evJoined says that the agent's key was created at this revision, and what else existed then. leads is the
	// revision of the leader's key if this agent made it, leader that of another's.
	evJoined struct {
		created, leads, leader int64
		world                  *doc
		worldRev               int64
	}
	evTaken    struct{ rev int64 } // another agent has this name; rev is when that was seen
	evElected  struct{ leads int64 }
	evAssigned struct {
		dir  string
		mine *assignment
	}
	// Events of watches. rev is the store's revision of the change; a doc of nil and a leader of 0 mean deleted.
	evWorld struct {
		doc *doc
		rev int64
	}
	evLeader struct{ created, rev int64 }
	evGone   struct{ id string } // the watched agent's key is deleted
	evAgent  struct {
		id      string
		created int64
		entry   *entry // nil: its key is deleted
		rev     int64
	}
	evReload struct{} // the watch of the agents' keys has broken
	evLoaded struct {
		agents   map[string]agent
		members  map[string]assignment // those in the directory that world names
		world    *doc
		worldRev int64
		leader   int64
		rev      int64 // of this snapshot
	}
	evWritten struct {
		ok  bool
		rev int64
	}
	evTimer struct{ kind, seq int }

	actJoin     struct{ entry entry } // → evJoined, evTaken
	actCampaign struct{}              // → evElected
	actUpdate   struct {
		entry entry
		dir   string      // of the mark
		mark  *assignment // nil: none
	}
	actFetch struct { // → evAssigned
		dir string
		rev int64 // revision of the world's key
	}
	actWatch struct { // → evGone, in place of an earlier watch
		id  string
		rev int64
	}
	actUnwatch    struct{}
	actNeighbours struct{ all []neighbour } // watch these and no others
	actLoad       struct {                  // → evLoaded, then evAgent for each change, until actStepDown
		after time.Duration
	}
	actWrite struct { // → evWritten
		leads, worldRev int64
		doc             doc
		places          map[string]assignment
	}
	actStepDown struct{}
	actTimer    struct { // → evTimer, unless another of its kind is started before
		kind, seq int
		after     time.Duration
	}
	actWorld struct {
		doc  doc
		mine assignment
	} // what Join returns
	actChanged struct{}              // the version that was returned is over
	actEnd     struct{ state state } // the run is over: delete the agent's key
)

// agent is what a leader knows of another.
type agent struct {
	created int64
	entry   entry
}

type rules struct {
	min, max               int
	lastCall, pause, grace time.Duration
}

// machine is one agent's part in a run: its world, the agent it watches, and, while it leads, the decisions. It has no
// clock and no store.
type machine struct {
	id      string
	rules   rules
	self    entry
	created int64 // revision of this agent's key, 0 before it exists
	call    event // of the user, not answered yet

	world     doc
	worldRev  int64 // of its key, 0: none
	worldSeen int64

	held    int        // version that the user works in, 0: none
	last    assignment // the latest that the user got
	lastDir string
	outside string // directory of the latest version that this agent is known not to be in

	leaderRev  int64 // of the leader's key, 0: none
	leaderSeen int64
	candidate  bool // campaigns when there is no leader: it knows of no older agent that is alive
	lead       *lead
	seq        int // of the last timer

	out []action
}

func newMachine(id string, r rules, self entry) *machine {
	self.Intent = joining
	return &machine{id: id, rules: r, self: self, candidate: true, world: doc{State: forming}}
}

// Step takes one event, and returns the actions that follow, in order.
func (m *machine) Step(ev event) []action {
	m.out = nil
	switch ev := ev.(type) {
	case evJoin:
		m.join(ev)
	case evFinish, evFail:
		m.finish(ev)
	case evTaken:
		m.do(actWatch{m.id, ev.rev})
	case evJoined:
		m.joined(ev)
	case evWorld:
		m.see(ev.doc, ev.rev)
	case evLeader:
		m.leader(ev)
	case evElected:
		m.elected(ev.leads)
	case evGone:
		m.gone(ev)
	case evAssigned:
		m.assigned(ev)
	default:
		m.stepLeader(ev)
	}
	return m.out
}

func (m *machine) do(a action) { m.out = append(m.out, a) }

// join requests a world, or, in one, another.
func (m *machine) join(ev evJoin) {
	m.call, m.self.Port, m.self.Intent = ev, ev.port, joining
	if m.created == 0 {
		m.do(actJoin{m.self})
		return
	}
	m.drop()
	late := m.world.Version > m.self.After // another version was formed meanwhile
	if late && m.world.State == forming {
		m.self.After = m.world.Version
	}
	m.do(actUpdate{entry: m.self})
	if late && m.world.State == final {
		m.do(actFetch{m.world.Dir, m.worldRev})
	}
}

// finish reports to the leader that this agent needs no other world, or that no agent does. That it has succeeded stays
// on record in its assignment.
func (m *machine) finish(ev event) {
	m.call, m.self.Intent = ev, failing
	var mark *assignment
	if _, ok := ev.(evFinish); ok {
		m.self.Intent, m.last.Done = done, true
		last := m.last
		mark = &last
	}
	if m.created == 0 {
		m.do(actJoin{m.self})
		return
	}
	m.do(actUpdate{m.self, m.lastDir, mark})
}

func (m *machine) joined(ev evJoined) {
	m.created, m.leaderRev, m.leaderSeen = ev.created, ev.leader, ev.created
	m.worldSeen = ev.created
	if ev.world != nil {
		m.world, m.worldRev = *ev.world, ev.worldRev
		m.outside = ev.world.Dir // it was there before this agent
	}
	if m.world.State.over() {
		m.do(actEnd{m.world.State})
		return
	}
	m.elected(ev.leads)
}

// see takes the run's latest state. A write of one's own is seen twice, as its answer and by the watch.
func (m *machine) see(d *doc, rev int64) {
	if rev <= m.worldSeen {
		return
	}
	m.worldSeen = rev
	if d == nil { // deleted, though there are agents: the last version is over, and the next one counts on from it
		// Its assignments are deleted too: not to have found one's own says nothing.
		m.worldRev, m.world.State, m.outside = 0, forming, ""
	} else {
		m.world, m.worldRev = *d, rev
	}
	if m.held != 0 && (m.world.State != final || m.world.Dir != m.lastDir) {
		m.drop()
	}
	if m.world.State.over() {
		m.stepDown()
		m.do(actEnd{m.world.State})
		return
	}
	_, waits := m.call.(evJoin)
	switch {
	case m.world.State == final && waits:
		m.do(actFetch{m.world.Dir, m.worldRev})
	case waits && m.world.Version > m.self.After && m.world.Dir != m.outside:
		// It may have been in that version without noticing: the leader would wait for it.
		m.self.After = m.world.Version
		m.do(actUpdate{entry: m.self})
	}
	m.follow()
}

func (m *machine) assigned(ev evAssigned) {
	_, waits := m.call.(evJoin)
	if !waits || m.world.State != final || m.world.Dir != ev.dir {
		return
	}
	if ev.mine == nil || ev.mine.Created != m.created {
		m.outside = ev.dir
		return
	}
	m.call, m.held, m.last, m.lastDir = nil, m.world.Version, *ev.mine, ev.dir
	m.self.After = m.held
	m.do(actWorld{m.world, m.last})
	m.do(actNeighbours{m.last.Neighbours})
	if m.candidate = m.last.Pred == ""; m.candidate {
		m.do(actUnwatch{})
	} else {
		m.do(actWatch{m.last.Pred, m.world.Known})
	}
}

// drop ends the user's version.
func (m *machine) drop() {
	if m.held != 0 {
		m.held = 0
		m.do(actChanged{})
	}
}

func (m *machine) leader(ev evLeader) {
	if ev.rev <= m.leaderSeen {
		return
	}
	m.leaderRev, m.leaderSeen = ev.created, ev.rev
	if m.lead != nil && m.lead.rev != ev.created {
		m.stepDown()
	}
	m.campaign()
}

// gone: the older agent that this one watches is gone, so that it campaigns if there is no leader.
func (m *machine) gone(ev evGone) {
	switch {
	case m.created == 0 && ev.id == m.id: // the one that had this agent's name
		m.do(actJoin{m.self})
	case ev.id == m.last.Pred:
		m.candidate = true
		m.campaign()
	}
}

func (m *machine) campaign() {
	if m.candidate && m.leaderRev == 0 && !m.world.State.over() {
		m.do(actCampaign{})
	}
}

func (m *machine) elected(leads int64) {
	if leads == 0 || m.lead != nil || m.world.State.over() {
		return
	}
	m.leaderRev, m.leaderSeen = leads, max(leads, m.leaderSeen)
	m.lead = &lead{rev: leads, names: map[string]int64{}, agents: map[int64]entry{}, members: map[int64]*member{}}
	m.do(actLoad{})
}
