package scheduling

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tegen-dev/tegen/scheduler/gang/gangcache"
)

// unitLabel names the pods of a namespace that must be in one rack, for the auditor.
const unitLabel = "unit"

// racks is what an auditor knows of racks.
type racks struct {
	mu       sync.Mutex
	rack     map[string]string            // of each node that is known; "" for one without a rack
	lost     map[string]bool              // nodes that are gone
	units    map[string]map[string]string // pods of a unit that are there, and their nodes
	problems []string
}

// see notes where a pod is.
func (r *racks) see(event watch.EventType, pod *corev1.Pod) {
	if r == nil || pod.Labels[unitLabel] == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	unit, id := pod.Namespace+"/"+pod.Labels[unitLabel], string(pod.UID)
	node := pod.Spec.NodeName
	switch {
	case event == watch.Deleted, pod.DeletionTimestamp != nil:
		delete(r.units[unit], id)
		return
	case node == "", r.units[unit][id] != "", r.lost[node]:
		return
	}
	if r.units[unit] == nil {
		r.units[unit] = map[string]string{}
	}
	r.units[unit][id] = node
	r.check(unit)
}

// check looks for pods of a unit that are in different racks, or in none. A node that was only just made, and is not
// known yet, is looked at when it is.
func (r *racks) check(unit string) {
	in := map[string]string{} // a node of each rack
	for pod, node := range r.units[unit] {
		rack, known := r.rack[node]
		switch {
		case !known, r.lost[node]:
		case rack == "":
			r.problems = append(r.problems, fmt.Sprintf("pod %s of unit %s is on %s, in no rack", pod, unit, node))
		default:
			in[rack] = node
		}
	}
	if len(in) > 1 {
		r.problems = append(r.problems, fmt.Sprintf("unit %s is in several racks: %v", unit, in))
	}
}

// enter notes nodes of a rack.
func (r *racks) enter(rack string, nodes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range nodes {
		r.rack[n] = rack
	}
	for unit := range r.units {
		r.check(unit)
	}
}

// report fails the test for what was seen.
func (r *racks) report(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.problems {
		t.Error(p)
	}
	t.Logf("%d units in racks, %d nodes lost", len(r.units), len(r.lost))
}

// lose notes that a node is about to go, and that its pods do not count any more.
func (r *racks) lose(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost[node] = true
}

// some is a random node in a rack of those whose name begins with a prefix.
func (r *racks) some(dice *rand.Rand, prefix string) (node, rack string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var nodes []string
	for n, rack := range r.rack {
		if strings.HasPrefix(rack, prefix) && !r.lost[n] {
			nodes = append(nodes, n)
		}
	}
	slices.Sort(nodes)
	node = nodes[dice.IntN(len(nodes))]
	return node, r.rack[node]
}

// rackNodes are the nodes of each rack of a lane, each with rackGPUs: the largest rack holds six pods.
var rackNodes = map[string]int{"a": 2, "b": 3, "c": 1, "": 1}

const (
	rackGPUs    = 2
	rackRoom    = 6
	clusterRoom = 14
)

// TestTopologyRounds lets gangs contend that gather in racks, must or would rather, whole or in slices, alone or as the
// roles of a job, while nodes come and go and lost members are made anew. Never is a gang in two racks that must be in
// one, never does a part of one run, and in the end each has run, as each fits. It has a control plane of its own.
func TestTopologyRounds(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	n := asked(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var names []string
	for lane := range lanes {
		names = append(names, fmt.Sprintf("lane-%d", lane))
	}
	known := &racks{rack: map[string]string{}, lost: map[string]bool{}, units: map[string]map[string]string{}}
	a := &auditor{
		gangs: map[string]*account{}, used: map[string]int{}, size: rackGPUs, namespaces: names, racks: known,
	}
	l.watch(a)
	l.t.Run("lanes", func(t *testing.T) {
		own := *l
		own.t = t
		for lane, name := range names {
			own.story(name, func(l *lab, ns string) {
				for rack, n := range rackNodes {
					known.enter(strings.TrimSuffix(ns+"-"+rack, ns+"-"), l.rack(ns, rack, n, rackGPUs))
				}
				dice := rand.New(rand.NewPCG(seed, uint64(lane)))
				for round := lane; round < n; round += lanes {
					l.rackRound(ns, round, dice, known)
				}
			})
		}
	})
	a.report(t, 10*time.Second)
	known.report(t)
}

// rackRound creates gangs whose pods arrive in any order, lets a node go and come, and finishes each gang that runs,
// until all have run.
func (l *lab) rackRound(ns string, round int, dice *rand.Rand, known *racks) {
	l.t.Helper()
	var jobs [][]gang
	var pods []*corev1.Pod
	for i := range 3 + dice.IntN(4) {
		job := draw(ns, fmt.Sprintf("r%d-%c", round, 'a'+i), dice)
		jobs = append(jobs, job)
		for _, g := range job {
			for n := range g.pods {
				pods = append(pods, g.pod(n))
			}
		}
	}
	dice.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	l.createAll(pods)
	lost := ""
	if dice.IntN(2) == 0 {
		lost = l.replaceNode(ns, slices.Concat(jobs...), dice, known)
	}
	l.finishAll(round, jobs)
	l.until("the round's pods have gone", func() bool {
		if lost != "" { // the scheduler may have used it until it heard, and nobody ends those pods
			l.evacuate(ns, lost)
		}
		return l.empty(ns)
	}, func() string { return "" })
}

// draw makes a gang, or two of one group, with a topology by chance. Each fits into an empty lane.
func draw(ns, name string, dice *rand.Rand) []gang {
	one := func(name string, pods int, more ...string) gang {
		g := of(ns, name, pods, 1+dice.IntN(pods), 1, append(more, gangcache.WaitingTime, "2s")...)
		if dice.IntN(4) == 0 {
			g.annotations[gangcache.MatchPolicy] = "waiting-and-running"
		}
		return g
	}
	switch dice.IntN(8) {
	case 0:
		return []gang{one(name, 1+dice.IntN(clusterRoom))}
	case 1:
		return []gang{one(name, 1+dice.IntN(clusterRoom), gangcache.TopologyKey, preferGather)}
	case 2, 3:
		size := 1 + dice.IntN(3)
		g := one(name, size*(1+dice.IntN(3)), gangcache.TopologyKey, mustGather).inSlices(size)
		slice := g.with
		g.with = func(p *corev1.Pod) {
			slice(p)
			rank, _ := strconv.Atoi(p.Labels["batch.kubernetes.io/job-completion-index"])
			p.Labels[unitLabel] = fmt.Sprintf("%s-%d", name, rank/size)
		}
		return []gang{g}
	case 4:
		group, _ := json.Marshal([]string{ns + "/" + name + "-driver", ns + "/" + name + "-worker"})
		driver := one(name+"-driver", 1+dice.IntN(2), gangcache.TopologyKey, mustGather, gangcache.GroupsKey,
			string(group)).unit(name)
		worker := one(name+"-worker", 1+dice.IntN(rackRoom-2), gangcache.TopologyKey, mustGather, gangcache.GroupsKey,
			string(group)).unit(name)
		// All are needed: a pod too many of one gang may take the place of one that the other has lost, for good, since
		// a gang that stood once competes for it like any pod.
		for _, g := range []gang{driver, worker} {
			g.annotations[gangcache.MinMembers] = strconv.Itoa(g.pods)
		}
		return []gang{driver, worker}
	}
	g := one(name, 1+dice.IntN(rackRoom), gangcache.TopologyKey, mustGather).unit(name)
	if dice.IntN(5) == 0 {
		g.annotations[gangcache.ModeKey] = "NonStrict"
	}
	return []gang{g}
}

// unit names the pods of a gang, among which no two may be in different racks.
func (g gang) unit(name string) gang {
	g.with = func(p *corev1.Pod) { p.Labels[unitLabel] = name }
	return g
}

// replaceNode takes a node of a rack away with its pods once one of the gangs runs, puts another into the rack, and
// makes the pods anew.
func (l *lab) replaceNode(ns string, gangs []gang, dice *rand.Rand, known *racks) (lost string) {
	l.t.Helper()
	l.until("a gang has begun", func() bool {
		return slices.ContainsFunc(gangs, func(g gang) bool { return len(l.bound(g)) > 0 })
	}, l.sight(gangs...))
	lost, rack := known.some(dice, ns+"-")
	known.lose(lost)
	if err := l.Client().CoreV1().Nodes().Delete(l.t.Context(), lost, metav1.DeleteOptions{}); err != nil {
		l.t.Fatal(err)
	}
	gone := l.evacuate(ns, lost)
	known.enter(rack, l.rack(ns, strings.TrimPrefix(rack, ns+"-"), 1, rackGPUs))
	var anew []*corev1.Pod
	for _, g := range gangs {
		for i := range g.pods {
			if p := g.pod(i); slices.Contains(gone, p.Name) {
				anew = append(anew, p)
			}
		}
	}
	l.createAll(anew)
	return lost
}

// evacuate deletes the pods on a node at once, and returns their names when they are gone.
func (l *lab) evacuate(ns, node string) (names []string) {
	l.t.Helper()
	pods := l.Client().CoreV1().Pods(ns)
	on := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}
	list, err := pods.List(l.t.Context(), on)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, p := range list.Items {
		names = append(names, p.Name)
		now := metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(p.UID)),
		}
		if err := pods.Delete(l.t.Context(), p.Name, now); err != nil && !apierrors.IsNotFound(err) {
			l.t.Fatal(err)
		}
	}
	return names
}
