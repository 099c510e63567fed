package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFlags(t *testing.T) {
	opts, err := parseFlags([]string{
		"--pods", "500, 100,500", "--nodes", "20", "--only", "growth,plain", "--rounds",
		"1",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := options{
		pods: []int{100, 500}, nodes: []int{20}, rounds: 1, budget: 15 * time.Minute,
		only: []string{growthPart, plainPart},
	}
	if diff := cmp.Diff(want, opts, cmp.AllowUnexported(options{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := parseFlags(nil); err != nil {
		t.Errorf("without flags: %v", err)
	}
	for _, tt := range []struct {
		reason string
		args   []string
	}{
		{"no pods", []string{"--pods", "0"}},
		{"not a number", []string{"--nodes", "x"}},
		{"no rounds", []string{"--rounds", "0"}},
		{"an unknown part", []string{"--only", "plain,speed"}},
		{"more pods than fit", []string{"--pods", "1000", "--nodes", "10", "--only", "plain"}},
		{"a gang that cannot but fit", []string{"--pods", "10", "--nodes", "20"}},
		{"a gang of more pods than there are", []string{"--gangs", "10,5000"}},
		{"a gang of nothing", []string{"--gangs", "0"}},
		{"an argument that nobody reads", []string{"plain"}},
	} {
		if _, err := parseFlags(tt.args); err == nil {
			t.Errorf("%s: %v is accepted", tt.reason, tt.args)
		}
	}
}

func TestTrials(t *testing.T) {
	o := options{pods: []int{100, 500}, nodes: []int{20, 50}, only: parts}
	words := func(nodes int) []string {
		var out []string
		for _, trial := range o.trials(nodes) {
			out = append(out, trial.String())
		}
		return out
	}
	want := []string{
		"kube-scheduler: 100 pods on 20 nodes",
		"tegen-scheduler: 100 pods on 20 nodes",
		"kube-scheduler: 500 pods on 20 nodes",
		"tegen-scheduler: 500 pods on 20 nodes",
		"tegen-scheduler: 10 gangs of 10 on 20 nodes",
		"tegen-scheduler, PodGroups: 10 gangs of 10 on 20 nodes",
		"kube-scheduler, in-tree gangs: 10 gangs of 10 on 20 nodes",
		"tegen-scheduler: 1 gang of 100 on 20 nodes",
		"tegen-scheduler, PodGroups: 1 gang of 100 on 20 nodes",
		"kube-scheduler, in-tree gangs: 1 gang of 100 on 20 nodes",
		"tegen-scheduler: 1 gang of 100 on 20 nodes, which do not fit",
		"tegen-scheduler, PodGroups: 1 gang of 100 on 20 nodes, which do not fit",
	}
	if diff := cmp.Diff(want, words(20)); diff != "" {
		t.Errorf("the smallest number of nodes (-want +got)\n%s", diff)
	}
	want = []string{
		"kube-scheduler: 100 pods on 50 nodes",
		"tegen-scheduler: 100 pods on 50 nodes",
		"kube-scheduler: 500 pods on 50 nodes",
		"tegen-scheduler: 500 pods on 50 nodes",
		"tegen-scheduler: 10 gangs of 10 on 50 nodes",
		"tegen-scheduler: 10 gangs of 10 on 50 nodes, each in one rack",
		"tegen-scheduler: 10 gangs of 10 on 50 nodes, each in one rack if it can be",
		"tegen-scheduler: 1 gang of 100 on 50 nodes",
		"tegen-scheduler: 1 gang of 100 on 50 nodes, each in one rack",
		"tegen-scheduler: 1 gang of 100 on 50 nodes, each in one rack if it can be",
	}
	if diff := cmp.Diff(want, words(50)); diff != "" {
		t.Errorf("the others (-want +got)\n%s", diff)
	}
	o.only, o.earlier = []string{topologyPart}, "/tmp/tegen-scheduler"
	if got := words(50); len(got) != 8 || got[1] != "tegen-scheduler, earlier: 10 gangs of 10 on 50 nodes" {
		t.Errorf("topology beside an earlier program: %q", got)
	}
	o.only, o.sizes = []string{scalePart}, []int{50}
	for _, nodes := range o.nodes {
		if got := words(nodes); len(got) != 1 || !strings.HasPrefix(got[0], "tegen-scheduler: 2 gangs of 50 on ") {
			t.Errorf("the same gangs on %d nodes: %q", nodes, got)
		}
	}
	o.only, o.rivals = []string{gangsPart}, []rival{{name: "another"}}
	if got := words(20); len(got) != 5 || got[4] != "another: 2 gangs of 50 on 20 nodes" {
		t.Errorf("gangs of a size beside another scheduler: %q", got)
	}
	if got := words(50); len(got) != 0 {
		t.Errorf("other schedulers place gangs on the smallest number of nodes alone: %q", got)
	}
	o.sizes, o.rivals = nil, nil
	// Gangs alone still need what they are compared with.
	o.only = []string{gangsPart}
	if got := words(20)[0]; got != "kube-scheduler: 100 pods on 20 nodes" {
		t.Errorf("gangs alone begin with %q", got)
	}
}

// TestUnfittable: most of a gang that must be refused would fit, so that it is not refused at first sight.
func TestUnfittable(t *testing.T) {
	for _, tt := range []struct{ pods, nodes, want int }{{1000, 200, 2}, {100, 20, 2}, {1601, 200, 1}, {200, 200, 0}} {
		if got := (options{pods: []int{tt.pods}, nodes: []int{tt.nodes}}).gpusToRefuse(); got != tt.want {
			t.Errorf("%d pods on %d nodes ask for %d GPUs, want %d", tt.pods, tt.nodes, got, tt.want)
		}
	}
}

func TestGangsOfAPod(t *testing.T) {
	load := trial{nodes: 20, pods: 100, gang: 10}
	annotated := load.pod(contender{profile: "p", dialect: koordinatorDialect}, 25, 0)
	if diff := cmp.Diff(map[string]string{
		"gang.scheduling.koordinator.sh/name":          "gang-0002",
		"gang.scheduling.koordinator.sh/min-available": "10",
	}, annotated.Annotations); diff != "" {
		t.Errorf("annotations (-want +got)\n%s", diff)
	}
	gathered := trial{nodes: 20, pods: 100, gang: 10, gathers: mustGather}.pod(
		contender{profile: "p", dialect: koordinatorDialect}, 25, 0,
	)
	got := gathered.Annotations["gang.scheduling.koordinator.sh/network-topology-spec"]
	if want := `{"gatherStrategy":[{"layer":"example.com/rack","strategy":"MustGather"}]}`; got != want {
		t.Errorf("a pod in a rack has %s, want %s", got, want)
	}
	native := load.pod(contender{profile: "p", dialect: kubeDialect}, 25, 0)
	if got := native.Spec.SchedulingGroup; got == nil || *got.PodGroupName != "gang-0002" || native.Annotations != nil {
		t.Errorf("a native pod has group %v and annotations %v", got, native.Annotations)
	}
	alone := trial{nodes: 20, pods: 100}.pod(contender{profile: "p", dialect: kubeDialect}, 25, 0)
	if alone.Spec.SchedulingGroup != nil || alone.Annotations != nil {
		t.Errorf("a pod on its own has group %v and annotations %v", alone.Spec.SchedulingGroup, alone.Annotations)
	}
}

func TestReport(t *testing.T) {
	took := func(all ...float64) []figure {
		var out []figure
		for _, s := range all {
			out = append(out, figure{First: time.Millisecond, Last: duration(s), CPU: duration(s / 2), Calls: 200})
		}
		return out
	}
	plain := func(by string, pods int) trial { return trial{nodes: 20, pods: pods, by: by} }
	gang := func(by string) trial { return trial{nodes: 20, pods: 100, gang: 100, by: by} }
	r := report{
		options: options{
			pods: []int{100, 500}, nodes: []int{20}, only: parts, earlier: "x",
			rivals: []rival{{name: "another"}},
		}, loadBefore: "0.50",
		loadAfter: "1.00", results: results{
			plain(stock, 100): took(1, 2, 1), plain(tegen, 100): took(1.25, 2, 1.25),
			plain(stock, 500): took(5, 5, 5), plain(tegen, 500): took(5, 5, 5),
			gang(tegen): took(2, 2, 2), gang(inTree): took(4, 4, 4), gang(earlier): took(2, 2, 4),
			gang("another"): took(3, 3, 3),
			{nodes: 20, pods: 100, gang: 100, by: tegen, gathers: mustGather}: took(2.5, 2, 2.5),
			{
				nodes: 20, pods: 100, gang: 100, by: tegen,
				refuse: true,
			}: {{First: 40 * time.Millisecond, Last: 2 * time.Second, Verdict: 30 * time.Millisecond}},
		},
	}
	var got strings.Builder
	if err := r.print(&got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"load 0.50 before and 1.00 after",
		"| 20    | 100 pods      | tegen-scheduler               | 3      | 1 ms          | 1.25    | 80     | 0.80 " +
			" | 0.80 to 1.00 | 6.25 ms | 2.0 |",
		"| tegen-scheduler: 100 pods on 20 nodes: at least 0.95 of kube-scheduler | 0.80 | missed | 0.80 |",
		"| tegen-scheduler: 500 pods on 20 nodes: at least 0.95 of kube-scheduler | 1.00 | met | 1.00 |",
		"| tegen-scheduler: 1 gang of 100 on 20 nodes: at least 0.90 of kube-scheduler without gangs | 0.50 | " +
			"missed | 0.50 |",
		"| tegen-scheduler: 1 gang of 100 on 20 nodes: ahead of kube-scheduler, in-tree gangs | 2.00 | met | 2.00 |",
		"| tegen-scheduler: 1 gang of 100 on 20 nodes: ahead of another | 1.50 | met | 1.50 |",
		"| 20 | 1 gang of 100 | tegen-scheduler, each in one rack | 3 | 1 ms | 2.50 | 40 | 0.80 | 0.80 to 1.00 |",
		"| 20 | 1 gang of 100 | tegen-scheduler, earlier | 3 | 1 ms | 2.00 | 50 | 1.00 | 0.50 to 1.00 |",
		"| tegen-scheduler: 1 gang of 100 on 20 nodes, each in one rack: at least 0.90 of the same gangs anywhere | " +
			"0.80 | missed | 0.80 |",
		"| tegen-scheduler: 1 gang of 100 on 20 nodes, which do not fit: refused within 1s and 50ms of CPU | 40 ms, " +
			"all pods reported after 2.00 s | met | 30 ms |",
		"| time per pod of 500 pods at most 1.3 of that of 100, on 20 nodes | 0.80, " +
			"kube-scheduler 1.00 | met | 0.80, kube-scheduler 1.00 |",
	} {
		if !strings.Contains(squeeze(got.String()), squeeze(want)) {
			t.Errorf("the report lacks %q:\n%s", want, got.String())
		}
	}
	if strings.Contains(got.String(), "PodGroups") {
		t.Errorf("the report speaks of what was not measured:\n%s", got.String())
	}
}

// squeeze leaves one space of several: how wide a column is does not matter.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestScale: CPU per pod on many nodes is held against that on few, whatever the time does.
func TestScale(t *testing.T) {
	at := func(nodes int) trial { return trial{nodes: nodes, pods: 100, gang: 50, by: tegen} }
	r := report{
		options: options{pods: []int{100}, nodes: []int{20, 500}, sizes: []int{50}, only: []string{scalePart}},
		results: results{
			at(20):  {{Last: time.Second, CPU: 100 * time.Millisecond, Memory: 80e6}},
			at(500): {{Last: 2 * time.Second, CPU: 140 * time.Millisecond, Memory: 120e6}},
		},
	}
	var got strings.Builder
	if err := r.print(&got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 500 | 2 gangs of 50 | tegen-scheduler | 1 | 0 ms | 2.00 | 50 | | | 1.40 ms | 0.0 | 120 MB |",
		"| tegen-scheduler: 2 gangs of 50 on 500 nodes: CPU per pod at most 1.3 of that on 20 | 2.00 of the time | " +
			"missed | 1.40 |",
	} {
		if !strings.Contains(squeeze(got.String()), squeeze(want)) {
			t.Errorf("the report lacks %q:\n%s", want, got.String())
		}
	}
}

func TestCollect(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	collected := func(all ...sighting) moments {
		ch := make(chan sighting, len(all))
		for _, s := range all {
			ch <- s
		}
		first := make(chan struct{})
		m := collect(ch, 2, first)
		<-first
		return m
	}
	got := collected(sighting{at: at(1)}, sighting{pod: "a", at: at(2)}, sighting{pod: "a", at: at(3)},
		sighting{pod: "b", at: at(4)})
	if got.err != nil || !got.first.Equal(at(1)) || !got.last.Equal(at(4)) {
		t.Errorf("got %+v: an event came first, and the second pod last", got)
	}
	if got := collected(sighting{pod: "a", at: at(1)}, sighting{err: errors.New("closed")}); got.err == nil {
		t.Error("a watch that ended early is not seen")
	}
}

func TestParseStat(t *testing.T) {
	got, err := parseStat("42 (kube) sched) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 8 0 100 0 0\n")
	if err != nil || got != 3*time.Second {
		t.Errorf("got %v, %v: 250 and 50 ticks are 3 s", got, err)
	}
	for _, text := range []string{"", "42 (x) S 1 2", "42 (x) S 1 42 42 0 -1 4194560 100 0 0 0 a b 0"} {
		if _, err := parseStat(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestParseStatus(t *testing.T) {
	got, err := parseStatus("Name:\tx\nVmPeak:\t   9 kB\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\n")
	if err != nil || got != 2<<20 {
		t.Errorf("got %v, %v: want 2 MiB", got, err)
	}
	for _, text := range []string{"", "VmRSS: 1 kB\n", "VmHWM: many kB\n"} {
		if _, err := parseStatus(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestSumOf(t *testing.T) {
	text := "# HELP scheduler_pending_pods x\nscheduler_pending_pods{queue=\"active\"} " +
		"3\nscheduler_pending_pods{queue=\"gated\"} 1e+03\nother{queue=\"active\"} 7\n"
	if got, err := sumOf(text, "scheduler_pending_pods{"); err != nil || got != 1003 {
		t.Errorf("got %d, %v: want 1003", got, err)
	}
	if _, err := sumOf("a{} many\n", "a{"); err == nil {
		t.Error("what is no number is accepted")
	}
}
