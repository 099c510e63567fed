package scheduling

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// rounds is how many times gangs contend: TEGEN_ROUNDS overrides it.
const rounds = 200

// binding is one gang as the auditor sees it.
type account struct {
	min   int
	bound map[string]string // pod to node
	// partial since the first of its pods was bound without its minimum being bound; zero where all is well.
	partial time.Time
	longest time.Duration
}

// auditor watches every binding in some namespaces. Bindings of one gang reach the API one after another, so that a
// gang is partial for moments; it must not stay so.
type auditor struct {
	mu       sync.Mutex
	gangs    map[string]*account
	used     map[string]int // GPUs by node
	problems []string

	size       int // GPUs of a node
	namespaces []string
	racks      *racks // nil where nobody gathers
}

func (a *auditor) see(e watch.Event) {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok || pod.Annotations[gangcache.Prefix+gangcache.Name] == "" || !slices.Contains(a.namespaces, pod.Namespace) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key := pod.Namespace + "/" + pod.Annotations[gangcache.Prefix+gangcache.Name]
	g := a.gangs[key]
	if g == nil {
		minimum, _ := strconv.Atoi(pod.Annotations[gangcache.Prefix+gangcache.MinMembers])
		g = &account{min: minimum, bound: map[string]string{}}
		a.gangs[key] = g
	}
	id := pod.Name + "/" + string(pod.UID)
	node, was := g.bound[id]
	switch {
	case e.Type == watch.Deleted:
		if was {
			a.used[node]--
			delete(g.bound, id)
			g.min = 0 // its round is over
		}
	case pod.Spec.NodeName != "" && !was:
		g.bound[id] = pod.Spec.NodeName
		if a.used[pod.Spec.NodeName]++; a.used[pod.Spec.NodeName] > a.size {
			a.problems = append(a.problems, fmt.Sprintf("%d pods on %s, which has %d GPUs", a.used[pod.Spec.NodeName],
				pod.Spec.NodeName, a.size))
		}
	case was && node != pod.Spec.NodeName:
		a.problems = append(a.problems, fmt.Sprintf("pod %s moved from %s to %s", pod.Name, node, pod.Spec.NodeName))
	}
	a.racks.see(e.Type, pod)
	g.evaluate()
}

func (g *account) evaluate() {
	whole := len(g.bound) == 0 || len(g.bound) >= g.min
	switch {
	case whole && !g.partial.IsZero():
		g.longest = max(g.longest, time.Since(g.partial))
		g.partial = time.Time{}
	case !whole && g.partial.IsZero():
		g.partial = time.Now()
	}
}

// audit starts an auditor, which watches until the test ends.
func (l *lab) audit(size int, namespaces ...string) *auditor {
	l.t.Helper()
	a := &auditor{gangs: map[string]*account{}, used: map[string]int{}, size: size, namespaces: namespaces}
	l.watch(a)
	return a
}

// watch shows all pods to an auditor until the test ends.
func (l *lab) watch(a *auditor) {
	l.t.Helper()
	list, err := l.Client().CoreV1().Pods("").List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface,
		error,
	) {
		return l.Client().CoreV1().Pods("").Watch(ctx, o)
	}}
	// It takes up where a watch ended that the server closed, so that no binding is missed.
	w, err := watchtools.NewRetryWatcherWithContext(l.t.Context(), list.ResourceVersion, source)
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(l.t.Context())
	l.t.Cleanup(func() { cancel(); w.Stop() })
	go func() {
		for e := range w.ResultChan() {
			if e.Type == watch.Error {
				break
			}
			a.see(e)
		}
		if ctx.Err() == nil {
			a.mu.Lock()
			a.problems = append(a.problems, "the watch ended early: not every binding was seen")
			a.mu.Unlock()
		}
	}()
}

// report fails the test for what the auditor saw. A gang's bindings are to be through within the tolerance.
func (a *auditor) report(t *testing.T, tolerance time.Duration) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.problems {
		t.Error(p)
	}
	var longest time.Duration
	for key, g := range a.gangs {
		longest = max(longest, g.longest)
		if !g.partial.IsZero() || g.longest > tolerance {
			t.Errorf("gang %s: %d pods bound of at least %d, partial for %v", key, len(g.bound), g.min,
				max(g.longest, time.Since(g.partial)))
		}
	}
	t.Logf("%d gangs audited; bindings of one gang were at most %v apart",
		len(a.gangs), longest.Round(time.Millisecond))
}

// lanes is how many rounds run at a time, each with nodes of its own: most of a round's time is the scheduler's
// backoff.
const lanes = 5

// TestRounds lets gangs of mixed sizes, minimums, modes and policies contend for room that all of them together never
// have, again and again. A gang that runs is finished after a moment; a round is over when every gang has run.
// It has a control plane of its own, beside the stories', so that nothing else is in the queue of its scheduler.
func TestRounds(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	n := asked(t)
	const nodes, size = 4, 4
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var names []string
	for lane := range lanes {
		names = append(names, fmt.Sprintf("lane-%d", lane))
	}
	a := l.audit(size, names...)
	l.t.Run("lanes", func(t *testing.T) {
		own := *l
		own.t = t
		for lane, name := range names {
			own.story(name, func(l *lab, ns string) {
				l.nodes(ns, nodes, size)
				dice := rand.New(rand.NewPCG(seed, uint64(lane)))
				for round := lane; round < n; round += lanes {
					l.round(ns, round, dice, nodes*size)
				}
			})
		}
	})
	a.report(t, 10*time.Second)
}

// asked is how many rounds are to be played.
func asked(t *testing.T) int {
	t.Helper()
	text := os.Getenv("TEGEN_ROUNDS")
	if text == "" {
		return rounds
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// round creates gangs whose pods arrive in any order, and finishes each that runs, until all have run.
func (l *lab) round(ns string, round int, dice *rand.Rand, room int) {
	l.t.Helper()
	var gangs []gang
	var order []int // of the gangs, once for each pod
	for i := range 3 + dice.IntN(4) {
		pods := 1 + dice.IntN(room)
		g := of(ns, fmt.Sprintf("r%d-%c", round, 'a'+i), pods, 1+dice.IntN(pods), 1, gangcache.WaitingTime, "2s")
		if dice.IntN(4) == 0 {
			g.annotations[gangcache.MatchPolicy] = "waiting-and-running"
		}
		if dice.IntN(6) == 0 {
			g.annotations[gangcache.ModeKey] = "NonStrict"
		}
		gangs = append(gangs, g)
		for range pods {
			order = append(order, i)
		}
	}
	dice.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	made := make([]int, len(gangs))
	var pods []*corev1.Pod
	for _, i := range order {
		pods = append(pods, gangs[i].pod(made[i]))
		made[i]++
	}
	l.createAll(pods)
	var jobs [][]gang
	for _, g := range gangs {
		jobs = append(jobs, []gang{g})
	}
	l.finishAll(round, jobs)
	l.until("the round's pods have gone", func() bool { return l.empty(ns) }, func() string { return "" })
}

// empty says whether a namespace has no pods.
func (l *lab) empty(ns string) bool {
	left, err := l.kept.Pods(ns).List(labels.Everything())
	return err == nil && len(left) == 0
}

// finishAll drops each job of a round once all its gangs run, until all have.
func (l *lab) finishAll(round int, jobs [][]gang) {
	l.t.Helper()
	runs := func(g gang) bool {
		minimum, _ := strconv.Atoi(g.annotations[gangcache.MinMembers])
		return len(l.bound(g)) >= minimum
	}
	l.until(fmt.Sprintf("every gang of round %d has run", round), func() bool {
		jobs = slices.DeleteFunc(jobs, func(job []gang) bool {
			if slices.ContainsFunc(job, func(g gang) bool { return !runs(g) }) {
				return false
			}
			for _, g := range job {
				l.drop(g)
			}
			return true
		})
		return len(jobs) == 0
	}, func() string {
		left := slices.Concat(jobs...)
		return fmt.Sprint(annotations(left), "\n", l.sight(left...)())
	})
}

// annotations of gangs are what they asked for.
func annotations(gangs []gang) (all []map[string]string) {
	for _, g := range gangs {
		all = append(all, g.annotations)
	}
	return all
}
