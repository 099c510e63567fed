package gang

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// nominator knows pods that are nominated for nodes.
type nominator struct {
	idle
	on map[string][]fwk.PodInfo
}

func (n nominator) NominatedPodsForNode(node string) []fwk.PodInfo { return n.on[node] }

// scene is a cluster and a gang that looks for room, made by chance.
type scene struct {
	nodes   []*corev1.Node
	running []*corev1.Pod
	waiting nominator
	gang    []*corev1.Pod
}

// most is about how much nodes have, in an order that does not change from run to run.
var most = []struct {
	name       corev1.ResourceName
	unit, most int
}{
	{corev1.ResourcePods, 1, 8},
	{corev1.ResourceCPU, 1, 12},
	{corev1.ResourceMemory, 1 << 20, 12},
	{corev1.ResourceEphemeralStorage, 1 << 20, 12},
	{"a/b", 1, 12},
}

// newScene makes clusters in which most gangs nearly fit, with all that may keep a pod off a node.
func newScene(r *rand.Rand) scene {
	amount := func(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }
	asks := func() corev1.ResourceList {
		out := corev1.ResourceList{gpu: amount(1 + r.IntN(2))}
		for _, of := range most[1:] {
			if r.IntN(3) == 0 {
				out[of.name] = amount(of.unit * r.IntN(3))
			}
		}
		if r.IntN(4) == 0 {
			delete(out, gpu)
		}
		return out
	}
	var s scene
	for i := range 1 + r.IntN(8) {
		n := machine(fmt.Sprintf("n%d", i), r.IntN(6))
		n.Labels["rack"] = fmt.Sprint(i % 2)
		for _, of := range most {
			n.Status.Allocatable[of.name] = amount(of.unit * (of.most/3 + r.IntN(of.most)))
		}
		if r.IntN(6) == 0 {
			closed(n)
		}
		s.nodes = append(s.nodes, n)
	}
	s.waiting.on = map[string][]fwk.PodInfo{}
	for i := range r.IntN(5) {
		p := worker(fmt.Sprintf("r%d", i), []string{"", "shunned", "g"}[r.IntN(3)], 0, 0, "", int32(r.IntN(200)))
		p.Spec.Containers[0].Resources.Requests = asks()
		if r.IntN(4) == 0 {
			shuns(p)
			p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.
				MatchLabels["app"] = "g"
		}
		node := s.nodes[r.IntN(len(s.nodes))].Name
		if r.IntN(6) == 0 {
			info, err := framework.NewPodInfo(p)
			if err != nil {
				panic(err)
			}
			s.waiting.on[node] = append(s.waiting.on[node], info)
			continue
		}
		p.Spec.NodeName = node
		s.running = append(s.running, p)
	}
	s.gang = newGang(r, asks)
	return s
}

// newGang is a gang by chance.
func newGang(r *rand.Rand, asks func() corev1.ResourceList) []*corev1.Pod {
	size := 1 + r.IntN(24)
	request, first, overhead, whole := asks(), asks(), asks(), asks()
	always := corev1.ContainerRestartPolicyAlways
	chance := func(one int, change func(*corev1.Pod)) func(*corev1.Pod) {
		if r.IntN(one) > 0 {
			return func(*corev1.Pod) {}
		}
		return change
	}
	init := func(policy *corev1.ContainerRestartPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
				Resources: corev1.ResourceRequirements{Requests: first}, RestartPolicy: policy,
			})
		}
	}
	gang := workers("g", size, 1+size/4+r.IntN(size-size/4), 0,
		func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = request },
		chance(4, init(nil)), chance(4, init(&always)), chance(6, token), chance(8, must), chance(8, apart),
		chance(8, better), chance(8, shuns),
		chance(8, func(p *corev1.Pod) { p.Spec.Overhead = overhead }),
		chance(8, func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: whole[corev1.ResourceCPU],
			}}
		}),
		chance(8, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"rack": "1"} }),
		chance(8, func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}),
		chance(10, func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
		}),
		chance(10, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				AllocatedResources: whole, Resources: &corev1.ResourceRequirements{Requests: whole},
			}}
		}),
	)
	if r.IntN(6) == 0 {
		gang[r.IntN(size)].Spec.Containers[0].Resources.Requests = asks()
	}
	return gang
}

// ignores is a profile that leaves GPUs to others.
func ignores(p *schedconfig.KubeSchedulerProfile) {
	for _, c := range p.PluginConfig {
		if a, ok := c.Args.(*schedconfig.NodeResourcesFitArgs); ok {
			a.IgnoredResources = []string{string(gpu)}
		}
	}
}

// boundless is a profile without a filter of resources.
func boundless(p *schedconfig.KubeSchedulerProfile) {
	p.Plugins.MultiPoint.Enabled = slices.DeleteFunc(p.Plugins.MultiPoint.Enabled, func(p schedconfig.Plugin) bool {
		return p.Name == names.NodeResourcesFit
	})
}

func usual(*schedconfig.KubeSchedulerProfile) {}

// look is what a dry run says of a scene, and what it says where it must place one pod after another, which pods of
// the node's network without a port make it do; counted where the first was without placing any.
func (s scene) look(t *testing.T, profile func(*schedconfig.KubeSchedulerProfile)) (got, want string, counted bool) {
	t.Helper()
	g := newPluginOf(t, profile, s.waiting, s.nodes, s.running)
	for _, p := range s.gang {
		g.shared.seen(nil, p)
	}
	wants := g.shared.cache.Attempt(uidOf(s.gang[0])).Wants
	dry := func() (string, bool) {
		sim, err := g.newSimulation()
		if err != nil {
			t.Fatal(err)
		}
		p, short, err := sim.placeAll(t.Context(), wants, g.shared.podsOf)
		switch {
		case err != nil:
			t.Fatal(err)
		case short == nil:
			return fmt.Sprintf("%d placed", len(p.assignments)), false
		}
		return short.String(), short.placed > 0 && short.search == nil && len(sim.moves) == 0
	}
	got, counted = dry()
	for _, p := range s.gang {
		p.Spec.HostNetwork = true
	}
	want, still := dry()
	if still {
		t.Error("counted what was to be placed one after another")
	}
	return got, want, counted
}

// TestRefuse holds the count of what fits to what comes of placing one pod after another, in clusters by chance. Where
// nothing is counted chance decides which nodes are filled first, and so at times what is said.
func TestRefuse(t *testing.T) {
	profiles := []func(*schedconfig.KubeSchedulerProfile){usual, ignores, boundless}
	counts := 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 0))
		got, want, counted := newScene(r).look(t, profiles[max(0, r.IntN(8)-5)])
		if !counted {
			continue
		}
		counts++
		if got != want {
			t.Errorf("seed %d: %s; one after another: %s", seed, got, want)
		}
	}
	if t.Logf("%d counted", counts); counts < 10 {
		t.Error("that is too few to mean anything")
	}
}

// TestRefuseWhat looks for room for a gang of twenty where there is some for six.
func TestRefuseWhat(t *testing.T) {
	asks := func(name corev1.ResourceName, amount string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(amount)}
	}
	always := corev1.ContainerRestartPolicyAlways
	for name, c := range map[string]struct {
		reason  string
		change  func(*corev1.Pod) // each of the gang
		other   func(*scene)
		profile func(*schedconfig.KubeSchedulerProfile)
		counted bool
	}{
		"plain":     {reason: "what is free says all", counted: true},
		"tokens":    {reason: "they bind to no node", change: token, counted: true},
		"preferred": {reason: "what is only better keeps nobody out", change: better, counted: true},
		"taint": {reason: "what keeps all away is asked of the filters", counted: true, other: func(s *scene) {
			s.nodes = append(s.nodes, machine("closed", 8, closed))
		}},
		"another's anti-affinity": {reason: "it keeps away all alike", counted: true, other: func(s *scene) {
			s.nodes = append(s.nodes, machine("z", 8))
			s.running = append(s.running, worker("r", "", 0, 1, "z", 0, func(p *corev1.Pod) {
				p.Labels["app"] = "g"
				apart(p)
			}))
		}},
		"few pods": {reason: "a node takes so many and no more", counted: true, other: func(s *scene) {
			s.nodes[0].Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
		}},
		"overhead": {reason: "it counts", counted: true, change: func(p *corev1.Pod) {
			p.Spec.Overhead = asks(corev1.ResourceCPU, "40")
		}},
		"before it starts": {reason: "what needs more counts", counted: true, change: func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: asks(gpu, "2")},
			}}
		}},
		"a sidecar": {reason: "it counts beside the others", counted: true, change: func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{
				Resources:     corev1.ResourceRequirements{Requests: asks(corev1.ResourceCPU, "40")},
				RestartPolicy: &always,
			}}
		}},
		"as a whole": {reason: "what the pod asks for counts", counted: true, change: func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: asks(corev1.ResourceCPU, "40")}
		}},

		"apart": {reason: "one is in the way of the next", change: apart},
		"ports": {reason: "one has the port of the next", change: func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80}}
		}},
		"disks": {reason: "one has the disk of the next", change: func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "a", IQN: "one"},
			}}}
		}},
		"resized": {reason: "a node counts what it has been given", change: func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				AllocatedResources: asks(corev1.ResourceCPU, "60"),
				Resources:          &corev1.ResourceRequirements{Requests: asks(corev1.ResourceCPU, "60")},
			}}
		}},
		"unlike": {reason: "one asks for another thing", other: func(s *scene) {
			s.gang[3].Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
		}},
		"numbers": {reason: "one of them is shunned", other: func(s *scene) {
			indexed(s.gang)
			s.running = append(s.running, worker("r", "", 0, 0, "x", 0, shunsIndex(3)))
		}},
		"nominated": {reason: "room is kept for another", other: func(s *scene) {
			info, err := framework.NewPodInfo(worker("n", "", 0, 1, "", 1000))
			if err != nil {
				panic(err)
			}
			s.waiting.on = map[string][]fwk.PodInfo{"x": {info}}
		}},
		"ignored":   {reason: "the profile counts no GPUs", profile: ignores},
		"boundless": {reason: "the profile counts nothing", profile: boundless},
		"nothing asked": {
			reason: "whether the profile counts pods is not known", change: func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests = nil
			},
			other: func(s *scene) {
				for _, n := range s.nodes {
					n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("2")
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var change []func(*corev1.Pod)
			if c.change != nil {
				change = append(change, c.change)
			}
			s := scene{
				nodes: []*corev1.Node{machine("x", 2), machine("y", 3), machine("z", 1)},
				gang:  workers("g", 20, 20, 1, change...),
			}
			if c.other != nil {
				c.other(&s)
			}
			profile := usual
			if c.profile != nil {
				profile = c.profile
			}
			got, want, counted := s.look(t, profile)
			if got != want {
				t.Errorf("%s: %s; one after another: %s", c.reason, got, want)
			}
			if counted != c.counted {
				t.Errorf("%s: counted: %t", c.reason, counted)
			}
		})
	}
}
