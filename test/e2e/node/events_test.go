package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// event is a line that a program in a pod printed: a JSON object with the field event.
type event struct {
	Event   string  `json:"event"`
	Host    string  `json:"host"`
	Rank    int     `json:"rank"`
	Size    int     `json:"size"`
	Restart int     `json:"restart"`
	Master  string  `json:"master"`
	Step    int     `json:"step"` // of a join: where the training goes on
	Sum     float64 `json:"sum"`
	Loss    float64 `json:"loss"`
	Time    float64 `json:"time"` // Unix seconds; of its arrival, where a program does not say

	Pod    string         `json:"-"` // that printed it
	UID    types.UID      `json:"-"`
	Fields map[string]any `json:"-"` // all that it says
}

// at is when the program printed it. The clock is this machine's, as all are.
func (e event) at() time.Time { return time.UnixMicro(int64(e.Time * 1e6)) }

// source is a container that prints.
type source struct {
	pod       string
	uid       types.UID
	container string
}

func (s source) String() string { return s.pod + "/" + s.container }

// line is one that a container printed.
type line struct {
	text string
	at   time.Time // when it arrived
}

// feed is what the pods of a job print: events, and the lines of each container, whatever they are.
type feed struct {
	mu      sync.Mutex
	changed chan struct{} // closed at the next line
	events  []event       // as they arrived: those of two pods need not be in the order of their times
	seen    map[string]bool
	lines   map[source][]line
	order   []source
	wrong   error // what no training may say
}

func newFeed() *feed {
	return &feed{changed: make(chan struct{}), seen: map[string]bool{}, lines: map[source][]line{}}
}

// add takes a line. What stands before the object, such as the rank that torchrun's tee or mpirun writes, is left out;
// an event that was read already, from a log that had to be opened again, too.
func (f *feed) add(from source, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.lines[from]; !known {
		f.order = append(f.order, from)
	}
	f.lines[from] = append(f.lines[from], line{text, time.Now()})
	defer func() {
		close(f.changed)
		f.changed = make(chan struct{})
	}()

	e, ok, err := parseEvent(text)
	if err == nil && ok {
		err = e.check()
	}
	if err != nil && f.wrong == nil {
		f.wrong = fmt.Errorf("%s printed: %w: %s", from, err, text)
	}
	id := string(from.uid) + "/" + from.container + ": " + text
	if !ok || f.seen[id] {
		return
	}
	f.seen[id] = true
	if e.Time == 0 { // a shell's
		e.Time = float64(time.Now().UnixMicro()) / 1e6
	}
	e.Pod, e.UID = from.pod, from.uid
	f.events = append(f.events, e)
}

// parseEvent says whether a line is an event. One whose fields have other types than every program agreed on is an
// error.
func parseEvent(line string) (e event, ok bool, err error) {
	_, object, found := strings.Cut(line, "{")
	if !found {
		return e, false, nil
	}
	object = "{" + object
	if json.Unmarshal([]byte(object), &e.Fields) != nil || e.Fields["event"] == nil {
		return e, false, nil
	}
	if err := json.Unmarshal([]byte(object), &e); err != nil {
		return e, false, fmt.Errorf("reading an event: %w", err)
	}
	return e, true, nil
}

// check is the proof that each step brings along: every rank of the world was in the sum.
func (e event) check() error {
	if want := float64(e.Size*(e.Size+1)) / 2; e.Event == "step" && e.Sum != want {
		return fmt.Errorf("a sum over %d ranks of %v, want %v", e.Size, e.Sum, want)
	}
	return nil
}

// waitFor returns when what was printed is found to be enough. The function must not keep the events.
func (f *feed) waitFor(ctx context.Context, within time.Duration, found func([]event) bool) error {
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	for {
		f.mu.Lock()
		ok, wrong, changed := found(f.events), f.wrong, f.changed
		f.mu.Unlock()
		if wrong != nil {
			return wrong
		}
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timeout.C:
			return fmt.Errorf("not within %v; last printed:\n%s", within, f.last(6))
		}
	}
}

// wrongSaid is the first thing that was printed and may not be.
func (f *feed) wrongSaid() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wrong
}

// all are the events until now.
func (f *feed) all() []event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events[:len(f.events):len(f.events)]
}

// printed has the lines of a container of a pod, or of all where none is named.
func (f *feed) printed(pod, container string) (lines []line) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, from := range f.order {
		if pod == "" || from.pod == pod && from.container == container {
			lines = append(lines, f.lines[from]...)
		}
	}
	return lines
}

// last is the end of what every container printed.
func (f *feed) last(n int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for _, from := range f.order {
		lines := f.lines[from]
		for _, line := range lines[max(0, len(lines)-n):] {
			text := line.text
			if len(text) > 400 {
				text = text[:400] + "…"
			}
			fmt.Fprintf(&b, "%s: %s\n", from, text)
		}
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

// generation is a world that trained: all ranks joined, then all made a step.
type generation struct {
	joins   []event // the last of each rank
	joined  time.Time
	step    int // where they went on
	stepped time.Time
}

// formed finds a world of this size: each rank's last join after a time, and the first step after those that every rank
// made.
func formed(events []event, size int, after time.Time) (g generation, ok bool) {
	joins := map[int]event{}
	for _, e := range events {
		if e.Event == "join" && e.Size == size && e.at().After(after) && e.Time >= joins[e.Rank].Time {
			joins[e.Rank] = e
		}
	}
	for rank := range size {
		e, ok := joins[rank]
		if !ok {
			return g, false
		}
		g.joins = append(g.joins, e)
		if e.at().After(g.joined) {
			g.joined, g.step = e.at(), e.Step
		}
	}
	g.stepped, ok = stepped(events, size, g.joined)
	return g, ok
}

// stepped finds the first step after a time that every rank of a world made, and when the last of them did.
func stepped(events []event, size int, after time.Time) (first time.Time, ok bool) {
	ranks, last := map[int]map[int]bool{}, map[int]time.Time{}
	for _, e := range events {
		if e.Event != "step" || e.Size != size || !e.at().After(after) {
			continue
		}
		if ranks[e.Step] == nil {
			ranks[e.Step] = map[int]bool{}
		}
		ranks[e.Step][e.Rank] = true
		if e.at().After(last[e.Step]) {
			last[e.Step] = e.at()
		}
	}
	for step, of := range ranks {
		if len(of) == size && (!ok || last[step].Before(first)) {
			first, ok = last[step], true
		}
	}
	return first, ok
}

// lastStep is the furthest step of any rank before a time.
func lastStep(events []event, before time.Time) (step int) {
	for _, e := range events {
		if e.Event == "step" && e.at().Before(before) {
			step = max(step, e.Step)
		}
	}
	return step
}
