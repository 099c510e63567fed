package etcd

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/torchetcd"
)

// peer is what an agent of torch does once a world is final: it publishes, waits for what it needs, and reports that.
type peer struct {
	torchetcd.Membership
	client  *client
	dir     string // of the version
	workers int
}

// key is a key of torch's EtcdStore.
func (p peer) key(name string) string {
	return path.Join(p.dir, "kv", base64.StdEncoding.EncodeToString([]byte(name)))
}

func (p peer) set(ctx context.Context, name, value string) error {
	form := url.Values{"value": {base64.StdEncoding.EncodeToString([]byte(value))}}
	_, err := p.client.put(ctx, p.key(name), form)
	return err
}

func (p peer) await(ctx context.Context, name string) (string, error) {
	for {
		a, err := p.client.get(ctx, p.key(name))
		if code(err) == torchetcd.CodeNotFound {
			err = sleep(ctx, 5*time.Millisecond)
		}
		if err != nil || a.Node.Value != "" {
			text, _ := base64.StdEncoding.DecodeString(a.Node.Value)
			return string(text), err
		}
	}
}

func (p peer) info() string {
	return fmt.Sprintf(`{"role": "default", "rank": %d, "local_world_size": %d}`, p.Rank, p.workers)
}

// sizes waits for what all agents have published with a prefix, and returns how many workers each has.
func (p peer) sizes(ctx context.Context, prefix string) ([]int, error) {
	out := make([]int, p.Size)
	for i := range out {
		text, err := p.await(ctx, prefix+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		var rank int
		format := `{"role": "default", "rank": %d, "local_world_size": %d}`
		if _, err := fmt.Sscanf(text, format, &rank, &out[i]); err != nil || rank != i {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
	}
	return out, nil
}

// numbers are the base and the total of an agent's workers, all of one role.
func numbers(sizes []int, rank int) ranks {
	base, total := 0, 0
	for i, n := range sizes {
		if i < rank {
			base += n
		}
		total += n
	}
	return ranks{base, total, base, total}
}

// old is torch 1.13. Of each other agent it needs one key, from rank 0 two; rank 0 needs one more of each.
func (p peer) old(ctx context.Context) (ranks, string, error) {
	const info = "torchelastic/role_info"
	own := info + strconv.Itoa(p.Rank)
	if err := p.set(ctx, own, p.info()); err != nil {
		return ranks{}, "", err
	}
	sizes, err := p.sizes(ctx, info)
	if err != nil {
		return ranks{}, "", err
	}
	if err := p.set(ctx, own+".FIN", "FIN"); err != nil {
		return ranks{}, "", err
	}
	if p.Rank == 0 {
		for i := range p.Size {
			if _, err := p.await(ctx, info+strconv.Itoa(i)+".FIN"); err != nil {
				return ranks{}, "", err
			}
		}
		if err := p.publish(ctx); err != nil {
			return ranks{}, "", err
		}
	}
	master, err := p.await(ctx, "MASTER_ADDR")
	return numbers(sizes, p.Rank), master, err
}

// recent is torch 2.x. From rank 0 it needs three keys, and rank 0 one from each.
func (p peer) recent(ctx context.Context) (ranks, string, error) {
	if p.Rank == 0 {
		if err := p.publish(ctx); err != nil {
			return ranks{}, "", err
		}
	}
	master, err := p.await(ctx, "MASTER_ADDR")
	if err != nil {
		return ranks{}, "", err
	}
	const info, assigned = "torchelastic/role_info/", "torchelastic/assigned_ranks/"
	if err := p.set(ctx, info+strconv.Itoa(p.Rank), p.info()); err != nil {
		return ranks{}, "", err
	}
	if p.Rank == 0 {
		sizes, err := p.sizes(ctx, info)
		if err != nil {
			return ranks{}, "", err
		}
		for i := range sizes {
			r := numbers(sizes, i)
			text := fmt.Sprintf("[%d, %d, %d, %d]", r.base, r.total, r.roleBase, r.roleTotal)
			if err := p.set(ctx, assigned+strconv.Itoa(i), text); err != nil {
				return ranks{}, "", err
			}
		}
	}
	text, err := p.await(ctx, assigned+strconv.Itoa(p.Rank))
	if err != nil {
		return ranks{}, "", err
	}
	var r ranks
	if _, err := fmt.Sscanf(text, "[%d, %d, %d, %d]", &r.base, &r.total, &r.roleBase, &r.roleTotal); err != nil {
		return ranks{}, "", fmt.Errorf("%s: %w", text, err)
	}
	return r, master, nil
}

func (p peer) publish(ctx context.Context) error {
	if err := p.set(ctx, "MASTER_ADDR", fmt.Sprintf("host-%d", p.Rank)); err != nil {
		return err
	}
	return p.set(ctx, "MASTER_PORT", "1234")
}

// oldBarrier is how agents of torch 1.13 end together.
func (p peer) oldBarrier(ctx context.Context) error {
	const state = "torchelastic/agent/terminal_state"
	if err := p.set(ctx, state+strconv.Itoa(p.Rank), strconv.Itoa(p.Rank)); err != nil {
		return err
	}
	for _, suffix := range []string{"", ".FIN"} {
		for i := range p.Size {
			if _, err := p.await(ctx, state+strconv.Itoa(i)+suffix); err != nil {
				return err
			}
		}
		if p.Rank != 0 {
			return p.set(ctx, state+strconv.Itoa(p.Rank)+".FIN", "FIN")
		}
		if err := p.set(ctx, state+"0.FIN", "FIN"); err != nil {
			return err
		}
	}
	return nil
}

// recentBarrier is how those of 2.x do.
func (p peer) recentBarrier(ctx context.Context) error {
	const state = "torchelastic/agent/terminal_state"
	for {
		was, n, change := "", 0, url.Values{"prevExist": {"false"}}
		a, err := p.client.get(ctx, p.key(state+"/num_members"))
		if err == nil {
			text, _ := base64.StdEncoding.DecodeString(a.Node.Value)
			was = a.Node.Value
			if n, err = strconv.Atoi(string(text)); err != nil {
				return err
			}
			change = url.Values{"prevValue": {was}}
		}
		change.Set("value", base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(n+1))))
		_, err = p.client.put(ctx, p.key(state+"/num_members"), change)
		switch {
		case code(err) != 0: // another was first
			continue
		case err == nil && n+1 == p.Size:
			err = p.set(ctx, state+"/last_member", "<val_ignored>")
		}
		if err != nil {
			return err
		}
		_, err = p.await(ctx, state+"/last_member")
		return err
	}
}

// TestDialects: our agents and those of torch exchange all they need, whichever has rank 0, in both of torch's
// dialects.
func TestDialects(t *testing.T) {
	t.Parallel()
	dialects := map[string]struct {
		meet    func(peer, context.Context) (ranks, string, error)
		barrier func(peer, context.Context) error
	}{
		"1.13": {peer.old, peer.oldBarrier},
		"2.x":  {peer.recent, peer.recentBarrier},
	}
	for name, dialect := range dialects {
		for _, members := range []string{"tg", "gt", "tgg", "gtg", "ttg", "ggt"} {
			t.Run(name+"/"+members, func(t *testing.T) {
				each(t, func(t *testing.T, r *run) {
					r.Min, r.Max = len(members), len(members)
					met := make([]seen, len(members))
					ended := make(chan error)
					for i, kind := range members {
						a, m := r.agent(i), membership(members, i)
						go func() {
							var err error
							if kind == 't' {
								p := peer{m, a.client, a.protocol.VersionDir(1), i + 1}
								met[i].ranks, met[i].master, err = dialect.meet(p, t.Context())
								if err == nil {
									err = dialect.barrier(p, t.Context())
								}
							} else if met[i], err = meet(t.Context(), a, m); err == nil {
								err = a.exchange(t.Context(), m).Finish()
							}
							ended <- err
						}()
					}
					for range members {
						if err := <-ended; err != nil {
							t.Error(err)
						}
					}
					if diff := cmp.Diff(expected(len(members)), met, cmp.AllowUnexported(seen{}, ranks{})); diff != "" {
						t.Errorf("(-want +got)\n%s", diff)
					}
				})
			})
		}
	}
}

// ranks are what an agent's workers are numbered by.
type ranks struct{ base, total, roleBase, roleTotal int }

// seen is what an agent learns of its world.
type seen struct {
	ranks  ranks
	master string
}

func meet(ctx context.Context, a *Agent, m torchetcd.Membership) (seen, error) {
	self := rendezvous.Agent{Host: fmt.Sprintf("host-%d", m.Rank), Role: "default", Workers: m.Rank + 1}
	w, err := a.exchange(ctx, m).Join(self, 1234)
	return seen{ranks{w.Base, w.Total, w.RoleBase, w.RoleTotal}, w.MasterAddr}, err
}

func expected(n int) []seen {
	var out []seen
	base := 0
	for i := range n {
		total := n * (n + 1) / 2
		out = append(out, seen{ranks{base, total, base, total}, "host-0"})
		base += i + 1
	}
	return out
}

// membership is that of one member of a world of agents of torch, t, and ours, g.
func membership(members string, rank int) torchetcd.Membership {
	m := torchetcd.Membership{Version: 1, Rank: rank, Size: len(members)}
	for i, kind := range members {
		token := ""
		if kind == 'g' {
			token = strconv.Itoa(i)
		}
		m.Agents = append(m.Agents, token)
	}
	return m
}
