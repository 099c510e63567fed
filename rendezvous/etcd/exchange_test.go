package etcd

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/rendezvous"
	"github.com/tegen-dev/tegen/rendezvous/torchetcd"
)

// peer is what an agent of torch does once a world is final: it tells, waits for what it needs, and says what it got.
type peer struct {
	exchange
	workers int
}

// old is torch 1.13. Of each other agent it needs one key, from rank 0 two; rank 0 needs one more of each.
func (p peer) old(ctx context.Context) (ranks, string, error) {
	own := "torchelastic/role_info" + strconv.Itoa(p.Rank)
	if err := p.set(ctx, own, fmt.Sprintf(`{"role": "default", "rank": %d, "local_world_size": %d}`, p.Rank, p.workers)); err != nil {
		return ranks{}, "", err
	}
	infos := make([]info, p.Size)
	for i := range infos {
		text, err := p.await(ctx, "torchelastic/role_info"+strconv.Itoa(i))
		if err != nil {
			return ranks{}, "", err
		}
		if _, err := fmt.Sscanf(text, `{"role": "default", "rank": %d, "local_world_size": %d}`, &infos[i].Rank, &infos[i].Workers); err != nil {
			return ranks{}, "", fmt.Errorf("%s: %w", text, err)
		}
	}
	if err := p.set(ctx, own+".FIN", "FIN"); err != nil {
		return ranks{}, "", err
	}
	if p.Rank == 0 {
		for i := range infos {
			if _, err := p.await(ctx, "torchelastic/role_info"+strconv.Itoa(i)+".FIN"); err != nil {
				return ranks{}, "", err
			}
		}
		if err := p.publish(ctx); err != nil {
			return ranks{}, "", err
		}
	}
	master, err := p.await(ctx, "MASTER_ADDR")
	return reckon(infos)[p.Rank], master, err
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
	text := fmt.Sprintf(`{"role": "default", "rank": %d, "local_world_size": %d}`, p.Rank, p.workers)
	if err := p.set(ctx, "torchelastic/role_info/"+strconv.Itoa(p.Rank), text); err != nil {
		return ranks{}, "", err
	}
	if p.Rank == 0 {
		infos := make([]info, p.Size)
		for i := range infos {
			text, err := p.await(ctx, "torchelastic/role_info/"+strconv.Itoa(i))
			if err != nil {
				return ranks{}, "", err
			}
			if _, err := fmt.Sscanf(text, `{"role": "default", "rank": %d, "local_world_size": %d}`, &infos[i].Rank, &infos[i].Workers); err != nil {
				return ranks{}, "", fmt.Errorf("%s: %w", text, err)
			}
		}
		if err := p.assign(ctx, reckon(infos)); err != nil {
			return ranks{}, "", err
		}
	}
	text, err = p.await(ctx, "torchelastic/assigned_ranks/"+strconv.Itoa(p.Rank))
	var r ranks
	if _, err := fmt.Sscanf(text, "[%d, %d, %d, %d]", &r.base, &r.total, &r.roleBase, &r.roleTotal); err != nil {
		return ranks{}, "", fmt.Errorf("%s: %w", text, err)
	}
	return r, master, err
}

func (p peer) publish(ctx context.Context) error {
	if err := p.set(ctx, "MASTER_ADDR", fmt.Sprintf("host-%d", p.Rank)); err != nil {
		return err
	}
	return p.set(ctx, "MASTER_PORT", "1234")
}

// oldBarrier is how agents of torch 1.13 end together.
func (p peer) oldBarrier(ctx context.Context) error {
	if err := p.set(ctx, "torchelastic/agent/terminal_state"+strconv.Itoa(p.Rank), strconv.Itoa(p.Rank)); err != nil {
		return err
	}
	for _, suffix := range []string{"", ".FIN"} {
		for i := range p.Size {
			if _, err := p.await(ctx, "torchelastic/agent/terminal_state"+strconv.Itoa(i)+suffix); err != nil {
				return err
			}
		}
		if p.Rank != 0 {
			return p.set(ctx, "torchelastic/agent/terminal_state"+strconv.Itoa(p.Rank)+".FIN", "FIN")
		}
		if err := p.set(ctx, "torchelastic/agent/terminal_state0.FIN", "FIN"); err != nil {
			return err
		}
	}
	return nil
}

// recentBarrier is how those of 2.x do.
func (p peer) recentBarrier(ctx context.Context) error {
	if err := p.count(ctx); err != nil {
		return err
	}
	_, err := p.await(ctx, "torchelastic/agent/terminal_state/last_member")
	return err
}

// TestDialects: agents of ours and of torch tell each other all they need, whoever has rank 0, in both of torch's
// dialects.
func TestDialects(t *testing.T) {
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
						x := member(r, members, i)
						go func() {
							var err error
							if kind == 't' {
								p := peer{x, i + 1}
								met[i].ranks, met[i].master, err = dialect.meet(p, t.Context())
								if err == nil {
									err = dialect.barrier(p, t.Context())
								}
							} else if met[i], err = meet(t.Context(), x, i); err == nil {
								err = x.barrier(t.Context())
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

// seen is what an agent learns of its world.
type seen struct {
	ranks  ranks
	master string
}

func meet(ctx context.Context, x exchange, i int) (seen, error) {
	w, err := x.run(ctx, rendezvous.Agent{Host: fmt.Sprintf("host-%d", i), Role: "default", Workers: i + 1}, 0)
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

// member is the exchange of one member of a world of agents of torch, t, and ours, g.
func member(r *run, members string, rank int) exchange {
	r.t.Helper()
	a := r.agent(rank)
	m := torchetcd.Membership{Version: 1, Rank: rank, Size: len(members)}
	for i, kind := range members {
		token := ""
		if kind == 'g' {
			token = strconv.Itoa(i)
		}
		m.Agents = append(m.Agents, token)
	}
	return a.exchange(m)
}

// TestRoles: workers are counted over all roles, and within their own.
func TestRoles(t *testing.T) {
	got := reckon([]info{{"a", 0, 2}, {"b", 1, 1}, {"a", 2, 3}, {"b", 3, 0}})
	want := []ranks{{0, 6, 0, 5}, {2, 6, 0, 1}, {3, 6, 2, 5}, {6, 6, 1, 1}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(ranks{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
