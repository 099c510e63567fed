package torchetcd

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/tegen-dev/tegen/rendezvous"
)

// Keys by which the members of a world exchange information, torch's EtcdStore. Torch 1.13 has no slash before a rank
// where 2.x has one; each reads only its own form, so both are written.
const (
	masterAddr   = "MASTER_ADDR"
	masterPort   = "MASTER_PORT"
	roleInfo     = "torchelastic/role_info"            // + rank, or / and rank
	assigned     = "torchelastic/assigned_ranks/"      // 2.x: what rank 0 has computed for each
	terminal     = "torchelastic/agent/terminal_state" // 1.13: + rank
	numMembers   = terminal + "/num_members"           // 2.x: how many have finished
	lastMember   = terminal + "/last_member"           // 2.x: written by the last of them
	finished     = ".FIN"
	finishedText = "FIN"
)

// ErrMemberGone says that a member of the world is dead.
var ErrMemberGone = errors.New("a member of the world is gone")

// writesAtOnce is how many keys are written at a time.
const writesAtOnce = 8

// Exchange is the exchange of information among the members of a world that has formed. It has no clock, network or
// randomness of its own: Ask carries out its requests, which are those of a Machine and pauses, and returns their
// replies.
type Exchange struct {
	Membership
	Dir    string        // of the version
	Check  time.Duration // how long a watch lasts before the members or the run are checked
	Ask    func([]Action) ([]Reply, error)
	Chance func() float64 // 0 ≤ Chance < 1, at random

	missing map[int]bool // ranks whose keep-alives were, at the last check; nil once the world has formed
}

// info is what each agent publishes about itself.
type info struct {
	Role    string `json:"role"`
	Rank    int    `json:"rank"`
	Workers int    `json:"local_world_size"`
}

// ranks number an agent's workers: base, total, base and total within the role, as torch 2.x writes them.
type ranks [4]int

// Join publishes this agent's info to the others, and returns the world without Changed. The port is where rank 0's
// worker is to listen. It returns ErrMemberGone once a member is dead.
func (x Exchange) Join(self rendezvous.Agent, port int) (rendezvous.World, error) {
	x.missing = map[int]bool{}
	w := rendezvous.World{Version: x.Version, Rank: x.Rank, Size: x.Size}
	if err := x.publish(self, port); err != nil {
		return w, err
	}
	r, err := x.ranks()
	if err != nil {
		return w, err
	}
	w.Base, w.Total, w.RoleBase, w.RoleTotal = r[0], r[1], r[2], r[3]
	if w.MasterAddr, err = x.await(masterAddr); err != nil {
		return w, err
	}
	text, err := x.await(masterPort)
	if err != nil {
		return w, err
	}
	if w.MasterPort, err = strconv.Atoi(text); err != nil {
		return w, fmt.Errorf("reading %s: %w", masterPort, err)
	}
	return w, nil
}

// publish writes this agent's info, and for rank 0 where its worker will listen.
func (x Exchange) publish(self rendezvous.Agent, port int) error {
	rank := strconv.Itoa(x.Rank)
	text := fmt.Sprintf(`{"role": %s, "rank": %d, "local_world_size": %d}`, quote(self.Role), x.Rank, self.Workers)
	writes := []Action{x.write(roleInfo+"/"+rank, text)}
	if !x.Known() {
		writes = append(writes, x.write(roleInfo+rank, text))
	}
	if x.Rank == 0 {
		writes = append(writes, x.write(masterAddr, self.Host), x.write(masterPort, strconv.Itoa(port)))
	}
	return x.set(writes...)
}

// ranks returns this agent's ranks. Where rank 0 is of our kind it computes those of all, so that each reads one key.
// Torch 1.13's rank 0 writes none; there each agent computes its own, from what all have published in either form.
func (x Exchange) ranks() (ranks, error) {
	if x.Rank != 0 && x.Agents[0] != "" {
		text, err := x.await(assigned + strconv.Itoa(x.Rank))
		if err != nil {
			return ranks{}, err
		}
		var r ranks
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return ranks{}, fmt.Errorf("reading the ranks of agent %d: %w", x.Rank, err)
		}
		return r, nil
	}
	infos, err := x.infos()
	if err != nil {
		return ranks{}, err
	}
	all := computeRanks(infos)
	var writes []Action
	if !x.Known() {
		writes = append(writes, x.write(roleInfo+strconv.Itoa(x.Rank)+finished, finishedText))
	}
	if x.Rank == 0 {
		for i, r := range all {
			text := fmt.Sprintf("[%d, %d, %d, %d]", r[0], r[1], r[2], r[3])
			writes = append(writes, x.write(assigned+strconv.Itoa(i), text))
		}
	}
	return all[x.Rank], x.set(writes...)
}

// infos waits until all agents have published their info.
func (x Exchange) infos() ([]info, error) {
	infos := make([]info, x.Size)
	err := x.until(func(keys map[string]string) (bool, error) {
		for i := range infos {
			text, ok := keys[roleInfo+"/"+strconv.Itoa(i)]
			if !ok {
				text, ok = keys[roleInfo+strconv.Itoa(i)]
			}
			if !ok {
				return false, nil
			}
			infos[i] = info{}
			err := json.Unmarshal([]byte(text), &infos[i])
			if err == nil && infos[i].Workers < 0 {
				err = errors.New("the number of workers is negative")
			}
			if err != nil {
				return false, fmt.Errorf("reading the info of agent %d, %.80q: %w", i, text, err)
			}
		}
		return true, nil
	})
	return infos, err
}

// computeRanks numbers the workers in the order of their agents, all and by role.
func computeRanks(infos []info) []ranks {
	all, byRole := 0, map[string]int{}
	out := make([]ranks, len(infos))
	for i, n := range infos {
		out[i] = ranks{all, 0, byRole[n.Role], 0}
		all += n.Workers
		byRole[n.Role] += n.Workers
	}
	for i, n := range infos {
		out[i][1], out[i][3] = all, byRole[n.Role]
	}
	return out
}

// Finish says that this agent's workers have succeeded, and waits until all agents have said so. Agents of torch 1.13
// each write a key, those of 2.x count, and each kind sees only its own: we write both, and accept either. It returns
// rendezvous.ErrClosed where an agent has closed the run.
func (x Exchange) Finish() error {
	own := terminal + strconv.Itoa(x.Rank)
	if err := x.set(x.write(own, strconv.Itoa(x.Rank))); err != nil {
		return err
	}
	if x.Known() && x.Rank != 0 {
		_, err := x.await(lastMember)
		return err
	}
	if !x.Known() {
		if err := x.count(); err != nil {
			return err
		}
	}
	err := x.until(func(keys map[string]string) (bool, error) {
		if _, ok := keys[lastMember]; ok {
			return true, nil
		}
		for i := range x.Size {
			if _, ok := keys[terminal+strconv.Itoa(i)]; !ok {
				return false, nil
			}
		}
		return true, nil
	})
	switch {
	case err != nil:
		return err
	case x.Known():
		return x.last()
	}
	return x.set(x.write(own+finished, finishedText))
}

func (x Exchange) last() error { return x.set(x.write(lastMember, "<val_ignored>")) }

// count adds this agent to those that have finished, as torch 2.x does.
func (x Exchange) count() error {
	key := x.key(numMembers)
	for {
		n := 0
		r, err := x.ask(Action{Kind: Get, Key: key})
		switch {
		case err != nil:
		case r.Code == CodeNotFound:
			r, err = x.ask(Action{Kind: Create, Key: key, Value: encode("1")})
		case r.Code == 0:
			was := r.Value
			if n, err = strconv.Atoi(decode(was)); err != nil {
				return fmt.Errorf("reading how many have finished: %w", err)
			}
			r, err = x.ask(Action{Kind: Swap, Key: key, Value: encode(strconv.Itoa(n + 1)), Previous: was})
		}
		switch {
		case err != nil:
		case r.Code == Lost:
			err = errors.New("the store did not answer")
		case r.Code == 0 && n+1 >= x.Size:
			return x.last()
		case r.Code == 0:
			return nil
		default: // another agent was first
			err = x.pause(time.Duration(x.Chance() * float64(20*time.Millisecond) * float64(x.Size)))
		}
		if err != nil {
			return fmt.Errorf("counting those that have finished: %w", err)
		}
	}
}

func (x Exchange) key(name string) string { return path.Join(x.Dir, "kv", encode(name)) }

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// decode is what was encoded, "" for what was not.
func decode(text string) string {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	return string(b)
}

func (x Exchange) write(name, value string) Action {
	return Action{Kind: Set, Key: x.key(name), Value: encode(value)}
}

// set writes keys until the store has them all: writing one twice does no harm.
func (x Exchange) set(writes ...Action) error {
	for len(writes) > 0 {
		n := min(len(writes), writesAtOnce)
		replies, err := x.Ask(writes[:n])
		if err != nil {
			return fmt.Errorf("writing %s: %w", nameOf(writes[0]), err)
		}
		var lost []Action
		for i, r := range replies {
			switch r.Code {
			case 0:
			case Lost:
				lost = append(lost, writes[i])
			default:
				return fmt.Errorf("writing %s: %w", nameOf(writes[i]), refused(r))
			}
		}
		writes = append(lost, writes[n:]...)
		if len(lost) == 0 {
			continue
		}
		if err := x.retry(); err != nil {
			return fmt.Errorf("writing %s: %w", nameOf(lost[0]), err)
		}
	}
	return nil
}

func nameOf(a Action) string { return decode(path.Base(a.Key)) }

func refused(r Reply) error { return fmt.Errorf("the store answers with code %d", r.Code) }

// await waits for a key.
func (x Exchange) await(name string) (string, error) {
	for {
		r, err := x.ask(Action{Kind: Get, Key: x.key(name)})
		switch {
		case err != nil:
		case r.Code == 0:
			return decode(r.Value), nil
		case r.Code == CodeNotFound:
			if r, err = x.next(x.key(name), r.Index); err == nil && r.Value != "" {
				return decode(r.Value), nil
			}
		case r.Code == Lost:
			err = x.retry()
		default:
			err = refused(r)
		}
		if err != nil {
			return "", fmt.Errorf("waiting for %s: %w", name, err)
		}
	}
}

// until waits until the keys are as asked for. Where many write, it lets changes gather.
func (x Exchange) until(ok func(map[string]string) (bool, error)) error {
	dir := path.Join(x.Dir, "kv")
	for {
		r, err := x.ask(Action{Kind: List, Key: dir})
		switch {
		case err != nil:
		case r.Code == Lost:
			if err = x.retry(); err == nil {
				continue
			}
		case r.Code != 0 && r.Code != CodeNotFound:
			err = refused(r)
		}
		if err != nil {
			return fmt.Errorf("reading what the members have published: %w", err)
		}
		keys := map[string]string{}
		for i, name := range r.Names {
			keys[decode(path.Base(name))] = decode(r.Values[i])
		}
		if done, err := ok(keys); done || err != nil {
			return err
		}
		if _, err := x.next(dir, r.Index); err != nil {
			return err
		}
		if err := x.pause(min(time.Duration(x.Size)*4*time.Millisecond, time.Second)); err != nil {
			return err
		}
	}
}

// next waits for a change after an index. When none comes for some seconds it checks whether one still can.
func (x Exchange) next(key string, after uint64) (Reply, error) {
	r, err := x.ask(Action{Kind: Watch, Key: key, Index: after + 1, For: x.Check})
	switch {
	case err != nil || r.Code == 0:
		return r, err
	case r.Code != Expired: // the store no longer has that event, or went away; a read comes next
		return Reply{}, x.pause(100 * time.Millisecond)
	case x.missing != nil:
		return Reply{}, x.checkMembers()
	}
	return Reply{}, x.checkRun()
}

// checkRun returns ErrClosed once an agent has closed the run: those who have not finished by then never will.
func (x Exchange) checkRun() error {
	r, err := x.ask(Action{Kind: Get, Key: path.Join(path.Dir(x.Dir), "active_version")})
	if err != nil || r.Code != 0 {
		return err
	}
	if s, err := ParseState(r.Value); err == nil && s.Status == Closed {
		return rendezvous.ErrClosed
	}
	return nil
}

// checkMembers returns ErrMemberGone once a member is dead, with which the world cannot form any more: once its
// keep-alive was missing twice, as all of them expire while the store or a machine stands still, and are then written
// again. Who asks is alive.
func (x Exchange) checkMembers() error {
	r, err := x.ask(Action{Kind: List, Key: x.Dir})
	if err != nil || r.Code != 0 {
		return err
	}
	for rank := range x.Size {
		gone := rank != x.Rank && !slices.Contains(r.Names, path.Join(x.Dir, "rank_"+strconv.Itoa(rank)))
		if gone && x.missing[rank] {
			return fmt.Errorf("agent %d: %w", rank, ErrMemberGone)
		}
		x.missing[rank] = gone
	}
	return nil
}

func (x Exchange) ask(a Action) (Reply, error) {
	replies, err := x.Ask([]Action{a})
	if err != nil {
		return Reply{}, err
	}
	return replies[0], nil
}

func (x Exchange) pause(d time.Duration) error {
	_, err := x.ask(Action{Kind: Pause, For: d})
	return err
}

func (x Exchange) retry() error { return x.pause(Defaults().Retry) }
