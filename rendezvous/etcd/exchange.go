package etcd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/torchetcd"
)

// Keys that the members of a world tell each other things by, torch's EtcdStore. Torch 1.13 has no slash before a rank
// where 2.x has one; each reads its own only, so that both are written.
const (
	masterAddr   = "MASTER_ADDR"
	masterPort   = "MASTER_PORT"
	roleInfo     = "torchelastic/role_info"            // + rank, or / and rank
	assigned     = "torchelastic/assigned_ranks/"      // 2.x: what rank 0 has reckoned for each
	terminal     = "torchelastic/agent/terminal_state" // 1.13: + rank
	numMembers   = terminal + "/num_members"           // 2.x: how many have finished
	lastMember   = terminal + "/last_member"           // 2.x: written by the last of them
	finished     = ".FIN"
	finishedText = "FIN"
)

var errMemberGone = errors.New("a member of the world is gone")

// exchange is what the members of one world tell each other.
type exchange struct {
	torchetcd.Membership
	client *client
	dir    string        // of the version
	whole  bool          // it ends when a member is gone, as then the world does not come about
	look   time.Duration // how often it is looked whether waiting makes sense
}

// info is what each agent says of itself.
type info struct {
	Role    string `json:"role"`
	Rank    int    `json:"rank"`
	Workers int    `json:"local_world_size"`
}

// ranks are what an agent's workers are numbered by, as torch 2.x writes them.
type ranks struct{ base, total, roleBase, roleTotal int }

// run tells the others of this agent, and returns the world as it sees it, without Changed.
func (x exchange) run(ctx context.Context, self rendezvous.Agent, port int) (rendezvous.World, error) {
	w := rendezvous.World{Version: x.Version, Rank: x.Rank, Size: x.Size}
	if err := x.introduce(ctx, self); err != nil {
		return w, err
	}
	if x.Rank == 0 {
		if err := x.master(ctx, self.Host, port); err != nil {
			return w, err
		}
	}
	r, err := x.number(ctx)
	if err != nil {
		return w, err
	}
	w.Base, w.Total, w.RoleBase, w.RoleTotal = r.base, r.total, r.roleBase, r.roleTotal
	if w.MasterAddr, err = x.await(ctx, masterAddr); err != nil {
		return w, err
	}
	text, err := x.await(ctx, masterPort)
	if err != nil {
		return w, err
	}
	if w.MasterPort, err = strconv.Atoi(text); err != nil {
		return w, fmt.Errorf("reading %s: %w", masterPort, err)
	}
	return w, nil
}

func (x exchange) introduce(ctx context.Context, self rendezvous.Agent) error {
	rank := strconv.Itoa(x.Rank)
	role, err := json.Marshal(self.Role)
	if err != nil {
		return fmt.Errorf("writing role %q: %w", self.Role, err)
	}
	text := fmt.Sprintf(`{"role": %s, "rank": %d, "local_world_size": %d}`, role, x.Rank, self.Workers)
	if err := x.set(ctx, roleInfo+"/"+rank, text); err != nil || x.Known() {
		return err
	}
	return x.set(ctx, roleInfo+rank, text)
}

// master says where rank 0's worker will listen. A free port may be taken again before it does, as with torch.
func (x exchange) master(ctx context.Context, host string, port int) error {
	if port == 0 {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", ":0")
		if err != nil {
			return fmt.Errorf("looking for a free port: %w", err)
		}
		port = l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return fmt.Errorf("looking for a free port: %w", err)
		}
	}
	if err := x.set(ctx, masterAddr, host); err != nil {
		return err
	}
	return x.set(ctx, masterPort, strconv.Itoa(port))
}

// number finds this agent's ranks. Where rank 0 is of our kind it reckons those of all, so that each reads one key. From
// torch's rank 0 of 1.13 nobody hears any; so each reckons its own, from what all have said in either form.
func (x exchange) number(ctx context.Context) (ranks, error) {
	if x.Rank != 0 && x.Agents[0] != "" {
		text, err := x.await(ctx, assigned+strconv.Itoa(x.Rank))
		if err != nil {
			return ranks{}, err
		}
		var four [4]int
		if err := json.Unmarshal([]byte(text), &four); err != nil {
			return ranks{}, fmt.Errorf("reading the ranks of agent %d: %w", x.Rank, err)
		}
		return ranks{four[0], four[1], four[2], four[3]}, nil
	}
	infos, err := x.infos(ctx)
	if err != nil {
		return ranks{}, err
	}
	all := reckon(infos)
	if !x.Known() {
		if err := x.set(ctx, roleInfo+strconv.Itoa(x.Rank)+finished, finishedText); err != nil {
			return ranks{}, err
		}
	}
	if x.Rank == 0 {
		if err := x.assign(ctx, all); err != nil {
			return ranks{}, err
		}
	}
	return all[x.Rank], nil
}

// infos waits until all agents have said who they are.
func (x exchange) infos(ctx context.Context) ([]info, error) {
	var infos []info
	err := x.until(ctx, func(keys map[string]string) (bool, error) {
		infos = make([]info, x.Size)
		for i := range infos {
			text, ok := keys[roleInfo+"/"+strconv.Itoa(i)]
			if !ok {
				text, ok = keys[roleInfo+strconv.Itoa(i)]
			}
			if !ok {
				return false, nil
			}
			if err := json.Unmarshal([]byte(text), &infos[i]); err != nil || infos[i].Workers < 0 {
				return false, fmt.Errorf("reading what agent %d says of itself: %.80q (%w)", i, text, err)
			}
		}
		return true, nil
	})
	return infos, err
}

// reckon numbers the workers in the order of their agents, all and by role.
func reckon(infos []info) []ranks {
	all, byRole := 0, map[string]int{}
	out := make([]ranks, len(infos))
	for i, n := range infos {
		out[i] = ranks{base: all, roleBase: byRole[n.Role]}
		all += n.Workers
		byRole[n.Role] += n.Workers
	}
	for i, n := range infos {
		out[i].total, out[i].roleTotal = all, byRole[n.Role]
	}
	return out
}

// assign writes everybody's ranks, some at a time.
func (x exchange) assign(ctx context.Context, all []ranks) error {
	const atOnce = 8
	errs := make(chan error)
	for part := range atOnce {
		go func() {
			var err error
			for i := part; i < len(all) && err == nil; i += atOnce {
				r := all[i]
				err = x.set(ctx, assigned+strconv.Itoa(i), fmt.Sprintf("[%d, %d, %d, %d]", r.base, r.total, r.roleBase, r.roleTotal))
			}
			errs <- err
		}()
	}
	var failed error
	for range atOnce {
		failed = errors.Join(failed, <-errs)
	}
	return failed
}

// barrier says that this agent's workers have succeeded, and waits until all agents have said so. Agents of torch 1.13
// each write a key, those of 2.x count, and each kind sees its own only: both are served, and either will do.
func (x exchange) barrier(ctx context.Context) error {
	own := terminal + strconv.Itoa(x.Rank)
	if err := x.set(ctx, own, strconv.Itoa(x.Rank)); err != nil {
		return err
	}
	if x.Known() && x.Rank != 0 {
		_, err := x.await(ctx, lastMember)
		return err
	}
	if !x.Known() {
		if err := x.count(ctx); err != nil {
			return err
		}
	}
	err := x.until(ctx, func(keys map[string]string) (bool, error) {
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
		return x.last(ctx)
	}
	return x.set(ctx, own+finished, finishedText)
}

func (x exchange) last(ctx context.Context) error { return x.set(ctx, lastMember, "<val_ignored>") }

// count adds this agent to those that have finished, as torch 2.x does.
func (x exchange) count(ctx context.Context) error {
	key := x.key(numMembers)
	for {
		n := 0
		a, err := x.client.get(ctx, key)
		switch {
		case code(err) == torchetcd.CodeNotFound:
			_, err = x.client.put(ctx, key, url.Values{"value": {encode("1")}, "prevExist": {"false"}})
		case err == nil:
			if n, err = strconv.Atoi(decode(a.Node.Value)); err != nil {
				return fmt.Errorf("reading how many have finished: %w", err)
			}
			_, err = x.client.put(ctx, key, url.Values{"value": {encode(strconv.Itoa(n + 1))}, "prevValue": {a.Node.Value}})
		}
		switch {
		case err == nil && n+1 >= x.Size:
			return x.last(ctx)
		case err == nil:
			return nil
		case code(err) == 0:
			return fmt.Errorf("counting those that have finished: %w", err)
		}
		if err := sleep(ctx, time.Duration(rand.Int64N(int64(20*time.Millisecond)*int64(x.Size)))); err != nil {
			return err
		}
	}
}

func (x exchange) key(name string) string { return path.Join(x.dir, "kv", encode(name)) }

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// decode is what was encoded, "" for what was not.
func decode(text string) string {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	return string(b)
}

// set writes a key, until the context ends: writing it twice does no harm.
func (x exchange) set(ctx context.Context, name, value string) error {
	for {
		_, err := x.client.put(ctx, x.key(name), url.Values{"value": {encode(value)}})
		if err == nil {
			return nil
		}
		if code(err) != 0 || sleep(ctx, time.Second) != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
}

// await waits for a key.
func (x exchange) await(ctx context.Context, name string) (string, error) {
	for {
		a, err := x.client.get(ctx, x.key(name))
		if err == nil {
			return decode(a.Node.Value), nil
		}
		if n := code(err); n != torchetcd.CodeNotFound {
			if n != 0 || sleep(ctx, time.Second) != nil {
				return "", fmt.Errorf("waiting for %s: %w", name, err)
			}
			continue
		}
		a, err = x.next(ctx, x.key(name), index(err))
		switch {
		case err != nil:
			return "", fmt.Errorf("waiting for %s: %w", name, err)
		case a.Node.Value != "":
			return decode(a.Node.Value), nil
		}
	}
}

// until waits until the keys are as asked for. Where many write, changes are let gather.
func (x exchange) until(ctx context.Context, ok func(map[string]string) (bool, error)) error {
	gather := min(time.Duration(x.Size)*4*time.Millisecond, time.Second)
	for {
		dir := path.Join(x.dir, "kv")
		a, err := x.client.get(ctx, dir)
		at := a.index
		if code(err) == torchetcd.CodeNotFound {
			at, err = index(err), nil
		}
		if err != nil {
			if code(err) != 0 || sleep(ctx, time.Second) != nil {
				return fmt.Errorf("reading what the members have said: %w", err)
			}
			continue
		}
		keys := map[string]string{}
		for _, n := range a.Node.Nodes {
			keys[decode(path.Base(n.Key))] = decode(n.Value)
		}
		if done, err := ok(keys); done || err != nil {
			return err
		}
		if _, err := x.next(ctx, dir, at); err != nil {
			return err
		}
		if err := sleep(ctx, gather); err != nil {
			return err
		}
	}
}

// next waits for a change after an index, for some seconds, and then looks whether there is anything to wait for.
func (x exchange) next(ctx context.Context, key string, after uint64) (answer, error) {
	watching, cancel := context.WithTimeout(ctx, x.look)
	defer cancel()
	a, err := x.client.watch(watching, key, after+1, true)
	if ctx.Err() != nil {
		return answer{}, context.Cause(ctx)
	}
	switch {
	case err == nil:
		return a, nil
	case watching.Err() == nil: // the store has none of it; a read comes next
		return answer{}, sleep(ctx, 100*time.Millisecond)
	case x.whole:
		return answer{}, x.complete(ctx)
	}
	return answer{}, x.open(ctx)
}

// open is ErrClosed once somebody has closed the run: those who have not finished by then never will.
func (x exchange) open(ctx context.Context) error {
	a, err := x.client.get(ctx, path.Join(path.Dir(x.dir), "active_version"))
	if err != nil {
		return nil
	}
	if s, err := torchetcd.ParseState(a.Node.Value); err == nil && s.Status == torchetcd.Closed {
		return rendezvous.ErrClosed
	}
	return nil
}

// complete is errMemberGone once a member does not live any more, as the world does not come about then.
func (x exchange) complete(ctx context.Context) error {
	members, err := x.client.get(ctx, x.dir)
	if err != nil {
		return nil
	}
	for rank := range x.Size {
		key := path.Join(x.dir, "rank_"+strconv.Itoa(rank))
		if !slices.ContainsFunc(members.Node.Nodes, func(n node) bool { return strings.HasSuffix(n.Key, key) }) {
			return fmt.Errorf("agent %d: %w", rank, errMemberGone)
		}
	}
	return nil
}

func index(err error) uint64 {
	var e *apiError
	if errors.As(err, &e) {
		return e.index
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
