package keys

import (
	"encoding/base64"
	"net/http"
	"sync/atomic"
	"testing"
)

// state is the pickle of a run of backend etcd-v2, as far as it is read.
func state(closed bool) string {
	mark := "\x89"
	if closed {
		mark = "\x88"
	}
	const frame = "\x80\x04\x95\x40\x00\x00\x00\x00\x00\x00\x00"
	return base64.StdEncoding.EncodeToString([]byte(frame +
		"\x8c\x10_RendezvousState\x94\x8c\x05round\x94K\x00\x8c\x06closed\x94" + mark + "u."))
}

func publishedAt(id, rest string) string {
	return torchKeys + base64.StdEncoding.EncodeToString([]byte("torch.rendezvous."+id+"."+rest))
}

// TestForget: with a run go its own keys and nobody else's, however much the ids look alike.
func TestForget(t *testing.T) {
	t.Parallel()
	d := open(t, embedded(t), Options{Alone: true})
	ids := []string{"job", "job.v2", "job.1/x", "job2", "team/job", "x/job", "job??"}
	for _, id := range ids {
		put(t, d.Keys, torchStates+id, Put{Value: state(id == "job")})
		put(t, d.Keys, publishedAt(id, "0/MASTER_ADDR"), Put{Value: id})
		put(t, d.Keys, publishedAt(id, "12/MASTER_ADDR"), Put{Value: id})
	}
	there := func(p string) bool {
		_, err := d.Get(t.Context(), p, false)
		return err == nil
	}
	gone := map[string]bool{}
	for _, id := range []string{"job", "team/job", "job??"} { // one after the other, in this order
		put(t, d.Keys, torchStates+id, Put{Value: state(true)})
		all := d.Ended()
		if len(all) != 1 || all[0].Path != torchStates+id {
			t.Fatalf("%s: the ended ones are %+v", id, all)
		}
		if err := d.Forget(t.Context(), all[0]); err != nil {
			t.Fatal(err)
		}
		gone[id] = true
		for _, other := range ids {
			for _, p := range []string{
				torchStates + other, publishedAt(other, "0/MASTER_ADDR"),
				publishedAt(other, "12/MASTER_ADDR"),
			} {
				if there(p) == gone[other] {
					t.Errorf("once %s is forgotten, %s of %s is there: %t", id, p, other, gone[other])
				}
			}
		}
	}
}

// TestForgetAnew: what a run of the same id has written since the end of the one before stays.
func TestForgetAnew(t *testing.T) {
	t.Parallel()
	s := embedded(t)
	slow, fast := open(t, s, Options{}), open(t, s, Options{})
	yes := true
	put(t, slow.Keys, torchStates+"job", Put{Value: state(true)})
	put(t, slow.Keys, "/p/run_job/rdzv/active_version", Put{Value: `{"status": "closed"}`})
	seen := slow.Ended()
	if len(seen) != 2 {
		t.Fatalf("the ended ones are %+v", seen)
	}
	for _, e := range seen {
		if err := fast.Forget(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	put(t, fast.Keys, torchStates+"job", Put{Value: state(false)})
	put(t, fast.Keys, publishedAt("job", "0/MASTER_ADDR"), Put{Value: "new"})
	put(t, fast.Keys, "/p/run_job/rdzv/active_version", Put{Value: `{"status": "setup"}`})
	for _, e := range seen {
		var refused *Error
		if err := slow.Forget(t.Context(), e); !as(err, &refused) || refused.Status() != http.StatusPreconditionFailed {
			t.Errorf("%s: %v", e.Path, err)
		}
	}
	for _, p := range []string{torchStates + "job", "/p/run_job/rdzv/active_version"} {
		put(t, fast.Keys, p, Put{Value: "still", PrevExist: &yes})
	}
	if len(slow.Ended()) != 0 {
		t.Errorf("the ended ones are %+v", slow.Ended())
	}
}

// TestAdvanced: whoever waits for Open hears of nothing once it has returned.
func TestAdvanced(t *testing.T) {
	t.Parallel()
	s := embedded(t)
	var heard atomic.Int64
	a, b := open(t, s, Options{Advanced: func() { heard.Add(1) }}), open(t, s, Options{})
	before := heard.Load()
	e := put(t, b.Keys, "/k", Put{Value: "1"})
	if err := a.reach(soon(t), e.Index); err != nil {
		t.Fatal(err)
	}
	if before == 0 || heard.Load() != before {
		t.Errorf("heard %d times of opening, and %d times in all", before, heard.Load())
	}
}
