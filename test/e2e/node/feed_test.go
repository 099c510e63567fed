package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lines are what two workers print that train from step 4, then one alone from step 6.
const printed = `[default0]:{"event": "join", "host": "w-0", "rank": 0, "size": 2, "restart": 0, "master": "w-0", "step": 4, "time": 100.5}
{"event": "join", "host": "w-1", "rank": 1, "size": 2, "restart": 0, "master": "w-0", "step": 4, "time": 100.25}
NCCL is not there {but gloo is}
{"event": "step", "step": 5, "size": 2, "rank": 0, "sum": 3, "loss": 0.5, "time": 101}
{"event": "step", "step": 5, "size": 2, "rank": 1, "sum": 3, "loss": 0.5, "time": 101.5}
{"event": "step", "step": 6, "size": 2, "rank": 0, "sum": 3, "loss": 0.5, "time": 102}
{"event": "join", "host": "w-0", "rank": 0, "size": 1, "restart": 1, "master": "w-0", "step": 6, "time": 110}
{"event": "step", "step": 7, "size": 1, "rank": 0, "sum": 1, "loss": null, "time": 111}
`

func printedFeed() *feed {
	f := newFeed()
	for line := range strings.Lines(printed) {
		f.add(source{pod: "w-0", uid: "0", container: "worker"}, strings.TrimSpace(line))
	}
	return f
}

func TestFormed(t *testing.T) {
	t.Parallel()
	f := printedFeed()
	g, ok := formed(f.all(), 2, time.Unix(100, 0))
	if !ok || g.step != 4 || !g.joined.Equal(time.UnixMilli(100500)) || !g.stepped.Equal(time.UnixMilli(101500)) {
		t.Errorf("two ranks: %v, got %+v", ok, g)
	}
	if g.joins[0].Host != "w-0" || g.joins[1].Host != "w-1" {
		t.Errorf("ranks are out of order: %+v", g.joins)
	}
	if g, ok = formed(f.all(), 2, time.Unix(105, 0)); ok {
		t.Errorf("two ranks trained after one was gone: %+v", g)
	}
	if g, ok = formed(f.all(), 1, time.Unix(105, 0)); !ok || g.step != 6 || lastStep(f.all(), g.joined) != 6 {
		t.Errorf("one rank: %v, got %+v", ok, g)
	}
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	f := printedFeed()
	f.add(source{pod: "w-1", uid: "1"},
		`{"event": "lost", "host": "w-1", "error": "Connection closed by peer", "time": 105}`)
	want := `+  0.2 s w-0 join as rank 1 of 2 at step 4
+  0.5 s w-0 join as rank 0 of 2 at step 4
+  5.0 s w-1 lost: Connection closed by peer
+ 10.0 s w-0 join as rank 0 of 1 at step 6
`
	if diff := cmp.Diff(want, timeline(f.all(), time.Unix(100, 0))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWaitFor(t *testing.T) {
	t.Parallel()
	f := printedFeed()
	f.add(source{pod: "w-0", uid: "0", container: "worker"},
		strings.TrimSpace(printed[strings.Index(printed, "\n")+1:strings.Index(printed, "\nNCCL")]))
	if n := len(f.all()); n != 7 {
		t.Errorf("%d events, want 7: a log that is read again brings none twice", n)
	}
	five := func(events []event) bool { return len(events) > 7 }
	err := f.waitFor(t.Context(), 10*time.Millisecond, five)
	if err == nil || !strings.Contains(err.Error(), "not within 10ms") ||
		!strings.Contains(err.Error(), `w-0/worker: {"event": "step"`) {
		t.Errorf("got %v, want what was printed last", err)
	}
	go f.add(source{pod: "w-1", uid: "1", container: "worker"},
		`{"event": "done", "rank": 0, "size": 1, "step": 7, "loss": null, "time": 120}`)
	if err := f.waitFor(t.Context(), time.Minute, five); err != nil {
		t.Error(err)
	}
}

func TestWrongSum(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"event": "step", "step": 5, "size": 3, "rank": 0, "sum": 3, "loss": 0.5, "time": 101}`,
		`{"event": "step", "step": "five", "time": 101}`,
	} {
		f := newFeed()
		f.add(source{pod: "w-0", container: "worker"}, line)
		err := f.waitFor(t.Context(), time.Minute, func([]event) bool { return true })
		if err == nil || !strings.Contains(err.Error(), "w-0/worker printed: ") {
			t.Errorf("%s: got %v, want an error that says who printed it", line, err)
		}
	}
	// Nothing but a step of a training is held to the sum of its ranks.
	f := newFeed()
	f.add(source{pod: "s-0"}, fmt.Sprintf(`{"event": "mxnet", "role": "server", "rank": 0, "sum": %d, "time": 1}`, 6))
	if err := f.waitFor(t.Context(), time.Minute,
		func(e []event) bool { return e[0].Fields["role"] == "server" }); err != nil {
		t.Error(err)
	}
}

func TestOfOther(t *testing.T) {
	t.Parallel()
	jobs := []string{"resnet", "imagenet", "resnet-tj"}
	for _, c := range []struct {
		o    object
		want bool
	}{
		{object{name: "Pod/resnet-worker-0", instance: "resnet"}, false},
		{object{name: "Pod/etcd-0", instance: "imagenet"}, true},
		{object{name: "Lease/imagenet-leader"}, true},
		{object{name: "EndpointSlice/x", owners: []string{"Service/imagenet-worker"}}, true},
		{object{name: "Lease/resnet-leader"}, false},
		{object{name: "Secret/stray"}, false},
		{object{name: "Service/resnet-tj-11120bc0"}, true},
		{object{name: "EndpointSlice/x", owners: []string{"Service/resnet-tj-worker"}}, true},
	} {
		if got := ofOther(c.o, "resnet", jobs); got != c.want {
			t.Errorf("%+v is of another job: %v, want %v", c.o, got, c.want)
		}
	}
}
