package random

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Quantiles 0.999 and 0.001 of chi-squared with 19 degrees of freedom: counts further from equal are no lot, and counts
// nearer to equal are a rota.
const (
	chiSquared999 = 43.82
	chiSquared001 = 5.407
)

func TestEachNodeIsAsLikely(t *testing.T) {
	nodes := nodes(20)
	// Names as a Deployment's, a Job's and a StatefulSet's pods have them: those that are almost equal are the hard
	// ones.
	named := map[string]func(i int) string{
		"numbered":   func(i int) string { return fmt.Sprintf("worker-%d", i) },
		"of one end": func(i int) string { return fmt.Sprintf("%d-worker", i) },
		"long":       func(i int) string { return strings.Repeat("x", 200) + fmt.Sprint(i) },
	}
	for style, name := range named {
		for _, seed := range []uint64{0, 1, 42, math.MaxUint64} {
			counts := map[string]int{}
			const pods = 2000
			for i := range pods {
				counts[choice(t, seeded(t, seed), pod("team", name(i)), nodes)]++
			}
			sum, expected := 0.0, float64(pods)/float64(len(nodes))
			for _, n := range nodes {
				d := float64(counts[n.Node().Name]) - expected
				sum += d * d / expected
			}
			if sum > chiSquared999 || sum < chiSquared001 {
				t.Errorf(
					"pods %s, seed %d: chi-squared %.1f, want one from %.1f to %.1f: %v", style, seed, sum,
					chiSquared001, chiSquared999, counts,
				)
			}
		}
	}
}

// TestNeighboursAreIndependent looks at the second of two pods by the node of the first: pods of one job must not
// follow each other around.
func TestNeighboursAreIndependent(t *testing.T) {
	nodes := nodes(20)
	r := seeded(t, 7)
	same, ahead := 0, 0
	const pods = 4000
	before := ""
	for i := range pods {
		now := choice(t, r, pod("team", fmt.Sprintf("worker-%d", i)), nodes)
		if now == before {
			same++
		}
		if now > before {
			ahead++
		}
		before = now
	}
	// 200 and 1,900 are expected; the bounds are five standard deviations away.
	if same < 131 || same > 269 || ahead < 1741 || ahead > 2059 {
		t.Errorf("of %d pods %d went where the last one went, and %d to a later node", pods, same, ahead)
	}
}

func TestSeed(t *testing.T) {
	nodes := nodes(20)
	differ := func(a, b func(i int) string) int {
		n := 0
		for i := range 200 {
			if a(i) != b(i) {
				n++
			}
		}
		return n
	}
	of := func(r fwk.Plugin, namespace string) func(i int) string {
		return func(i int) string { return choice(t, r, pod(namespace, fmt.Sprintf("w-%d", i)), nodes) }
	}
	one, two := seeded(t, 1), seeded(t, 2)
	if n := differ(of(one, "team"), of(seeded(t, 1), "team")); n != 0 {
		t.Errorf("two schedulers of one seed place %d of 200 pods differently", n)
	}
	// 190 of 200 are expected.
	for what, n := range map[string]int{
		"another seed":              differ(of(one, "team"), of(two, "team")),
		"another namespace":         differ(of(one, "team"), of(one, "other")),
		"the next pod":              differ(of(one, "team"), func(i int) string { return of(one, "team")(i + 1) }),
		"another process, unseeded": differ(of(plugin(t, ""), "team"), of(plugin(t, ""), "team")),
	} {
		if n < 160 {
			t.Errorf("%s places only %d of 200 pods elsewhere", what, n)
		}
	}
}

// TestLotOfNames: namespace, name and node draw as the three that they are, wherever one ends and the next begins.
func TestLotOfNames(t *testing.T) {
	r, drawn := seeded(t, 7), map[int64]string{}
	for _, names := range [][3]string{{"a", "bc", "d"}, {"ab", "c", "d"}, {"a", "b", "cd"}} {
		info := framework.NewNodeInfo()
		info.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names[2]}})
		lot, s := r.Score(t.Context(), nil, pod(names[0], names[1]), info)
		if !s.IsSuccess() {
			t.Fatal(s.AsError())
		}
		text := strings.Join(names[:], "/")
		if other := drawn[lot]; other != "" {
			t.Errorf("%s and %s draw the same lot", text, other)
		}
		drawn[lot] = text
	}
}

func TestOrderOfNodesDoesNotMatter(t *testing.T) {
	r, given := seeded(t, 3), nodes(50)
	for i := range 50 {
		p := pod("team", fmt.Sprintf("w-%d", i))
		shuffled := slices.Clone(given)
		rand.New(rand.NewPCG(uint64(i), 0)).Shuffle(len(shuffled), func(a, b int) {
			shuffled[a], shuffled[b] = shuffled[b], shuffled[a]
		})
		if a, b := choice(t, r, p, given), choice(t, r, p, shuffled); a != b {
			t.Fatalf("pod %s goes to %s, and with the nodes in another order to %s", p.Name, a, b)
		}
	}
}

// TestOtherNodesDoNotMatter: a pod whose node is not full stays where it was.
func TestOtherNodesDoNotMatter(t *testing.T) {
	r, all := seeded(t, 3), nodes(20)
	for i := range 100 {
		p := pod("team", fmt.Sprintf("w-%d", i))
		chosen := choice(t, r, p, all)
		fewer := slices.DeleteFunc(slices.Clone(all), func(n fwk.NodeInfo) bool {
			return n.Node().Name != chosen && len(n.Node().Name)%2 == 0
		})
		if got := choice(t, r, p, fewer); got != chosen {
			t.Fatalf("pod %s goes to %s, and to %s where some of the others do not fit", p.Name, chosen, got)
		}
	}
}

func TestScores(t *testing.T) {
	for _, n := range []int{1, 2, 3, 20, 101, 5000} {
		for i := range 20 {
			list := scores(t, seeded(t, uint64(i)), pod("team", fmt.Sprintf("w-%d", i)), nodes(n))
			best := 0
			for _, s := range list {
				if s.Score < fwk.MinScore || s.Score > fwk.MaxScore {
					t.Fatalf(
						"of %d nodes %s has score %d, want one from %d to %d", n, s.Name, s.Score, fwk.MinScore,
						fwk.MaxScore,
					)
				}
				if s.Score == fwk.MaxScore {
					best++
				}
			}
			if best != 1 {
				t.Fatalf(
					"of %d nodes %d have the best score: kube-scheduler throws dice among those, which know no seed", n,
					best,
				)
			}
		}
	}
}

func TestScoresOfOneLot(t *testing.T) {
	list := fwk.NodeScoreList{{Name: "b", Score: 7}, {Name: "a", Score: 7}, {Name: "c", Score: 7}}
	if s := (&Random{}).NormalizeScore(t.Context(), nil, nil, list); !s.IsSuccess() {
		t.Fatal(s.AsError())
	}
	i := slices.IndexFunc(list, func(s fwk.NodeScore) bool { return s.Score == fwk.MaxScore })
	if list[i].Name != "a" || list[0].Score == list[2].Score {
		t.Errorf("equal lots are ordered by name, got %v", list)
	}
	if s := (&Random{}).NormalizeScore(t.Context(), nil, nil, nil); !s.IsSuccess() {
		t.Errorf("no nodes: %v", s)
	}
}

func TestSignPod(t *testing.T) {
	if _, s := plugin(t, "").(*Random).SignPod(t.Context(), pod("team", "w")); !s.IsSuccess() {
		t.Errorf("without a seed pods may share a ranking, got %v", s)
	}
	if _, s := seeded(t, 1).SignPod(t.Context(), pod("team", "w")); s.IsSuccess() {
		t.Error("with a seed a pod's ranking is its own, and must not be shared")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{`{"seed": -1}`, "reading the args of TegenRandom: "},
		{`{"seed": "x"}`, "reading the args of TegenRandom: "},
		{`{"sed": 1}`, `unknown field "sed"`},
	} {
		_, err := New(t.Context(), &runtime.Unknown{Raw: []byte(c.args)}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.args, err, c.want)
		}
	}
}

func BenchmarkScore(b *testing.B) {
	r, p, nodes := &Random{seed: 1}, pod("team", "worker-0"), nodes(1000)
	for b.Loop() {
		list := make(fwk.NodeScoreList, len(nodes))
		for i, n := range nodes {
			score, _ := r.Score(b.Context(), nil, p, n)
			list[i] = fwk.NodeScore{Name: n.Node().Name, Score: score}
		}
		r.NormalizeScore(b.Context(), nil, p, list)
	}
}

func plugin(t *testing.T, args string) fwk.Plugin {
	t.Helper()
	p, err := New(t.Context(), &runtime.Unknown{Raw: []byte(args)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func seeded(t *testing.T, seed uint64) *Random {
	t.Helper()
	return plugin(t, fmt.Sprintf(`{"seed": %d}`, seed)).(*Random)
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func nodes(n int) []fwk.NodeInfo {
	out := make([]fwk.NodeInfo, n)
	for i := range out {
		info := framework.NewNodeInfo()
		info.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}})
		out[i] = info
	}
	return out
}

func scores(t *testing.T, r *Random, p *corev1.Pod, nodes []fwk.NodeInfo) fwk.NodeScoreList {
	t.Helper()
	list := make(fwk.NodeScoreList, len(nodes))
	for i, n := range nodes {
		score, s := r.Score(t.Context(), nil, p, n)
		if !s.IsSuccess() {
			t.Fatal(s.AsError())
		}
		list[i] = fwk.NodeScore{Name: n.Node().Name, Score: score}
	}
	if s := r.ScoreExtensions().NormalizeScore(t.Context(), nil, p, list); !s.IsSuccess() {
		t.Fatal(s.AsError())
	}
	return list
}

// choice is the node that kube-scheduler would take where no other plugin scores.
func choice(t *testing.T, r any, p *corev1.Pod, nodes []fwk.NodeInfo) string {
	t.Helper()
	return slices.MaxFunc(scores(t, r.(*Random), p, nodes), func(a, b fwk.NodeScore) int {
		return int(a.Score - b.Score)
	}).Name
}
