// Package random is the Score plugin TegenRandom: of the nodes that fit a pod each is as likely as any other. It takes
// the place of schedulers that bind pods to a random ready node and know nothing of resources, taints or races: which
// nodes fit is decided by kube-scheduler's own filters before it is asked.
package random

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/tegen-dev/tegen/scheduler/args"
)

// Name of the plugin in a KubeSchedulerConfiguration.
const Name = "TegenRandom"

var (
	_ fwk.ScorePlugin     = &Random{}
	_ fwk.ScoreExtensions = &Random{}
	_ fwk.SignPlugin      = &Random{}
)

// Args are the plugin's args in a KubeSchedulerConfiguration.
type Args struct {
	// Seed makes the choice a function of the seed, the pod's namespace and name, and the nodes that fit: the same pods
	// on the same nodes are placed alike. Without it every process of the scheduler draws its own.
	Seed *uint64 `json:"seed,omitempty"`
}

// Random scores nodes by lot. It holds no state between pods.
type Random struct {
	seed  uint64
	drawn bool // the seed is not the user's: nobody expects the same pods on the same nodes
}

// New makes the plugin from its Args.
func New(_ context.Context, configuration runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	var a Args
	if err := args.Decode(configuration, &a); err != nil {
		return nil, fmt.Errorf("reading the args of %s: %w", Name, err)
	}
	if a.Seed == nil {
		return &Random{seed: rand.Uint64(), drawn: true}, nil
	}
	return &Random{seed: *a.Seed}, nil
}

// Name is the plugin's.
func (*Random) Name() string { return Name }

// Score is the lot of a pod and a node: any number. NormalizeScore turns the lots of all nodes into ranks.
func (r *Random) Score(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(nil, r.seed))
	for _, s := range []string{pod.Namespace, pod.Name, node.Node().Name} {
		h.Write(append([]byte(s), 0)) // the end, so that a/bc is not ab/c
	}
	return int64(mix(h.Sum64()) >> 1), nil
}

// mix spreads a hash over all bits: FNV alone orders names that differ in the last character alike for every seed. It
// is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// ScoreExtensions is the plugin itself.
func (r *Random) ScoreExtensions() fwk.ScoreExtensions { return r }

// NormalizeScore gives the node with the highest lot the best score and no other the same: nodes of one score would be
// chosen among by kube-scheduler's own dice, which know no seed.
func (*Random) NormalizeScore(
	_ context.Context, _ fwk.CycleState, _ *corev1.Pod, scores fwk.NodeScoreList,
) *fwk.Status {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b].Score, scores[a].Score), cmp.Compare(scores[a].Name, scores[b].Name))
	})
	for rank, i := range order {
		scores[i].Score = fwk.MaxScore
		if rank > 0 {
			scores[i].Score = (fwk.MaxScore - 1) * int64(len(order)-rank) / int64(len(order))
		}
	}
	return nil
}

// SignPod adds nothing to a pod's signature, so that a run of equal pods may share one ranking: its next node is by lot
// as well as a new ranking's first. With a seed of the user's the lot is the pod's own, and nothing is shared.
func (r *Random) SignPod(context.Context, *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if !r.drawn {
		return nil, fwk.NewStatus(fwk.Unschedulable, "a seed makes every pod's ranking its own")
	}
	return nil, nil
}
