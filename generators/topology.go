package generators

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/schema/job"
)

// Keys by which schedulers and controllers read within which domain of the network pods are placed.
const (
	kueueRequiredKey    = "kueue.x-k8s.io/podset-required-topology"
	kueuePreferredKey   = "kueue.x-k8s.io/podset-preferred-topology"
	kueueSliceKey       = "kueue.x-k8s.io/podset-slice-required-topology"
	kueueSliceSizeKey   = "kueue.x-k8s.io/podset-slice-size"
	kueuePodSetGroupKey = "kueue.x-k8s.io/podset-group-name"
	kueuePodIndexKey    = "kueue.x-k8s.io/pod-group-pod-index"
	gatherKey           = koordinatorKeys + "network-topology-spec"
	gatherRankKey       = koordinatorKeys + "network-topology-index"
	tegenSliceKey       = "gang.tegen.dev/topology-slice"
	jobSetExclusiveKey  = "alpha.jobset.sigs.k8s.io/exclusive-topology"
)

// kueueTopology is what Kueue finds a domain by for the pods of a role, or one for each slice of workers. It places
// each set of pods by itself, and a Master in the domain of the others where both are of one group. A launcher is of
// none: where all nodes of the domain are for accelerators, it may tolerate no taint of theirs.
func kueueTopology(j *job.Job, component string) map[string]string {
	t, a := j.Spec.Topology(), map[string]string{}
	if t == nil {
		return a
	}
	label := j.TopologyLevel().Label
	switch {
	case component == componentLauncher:
		return a
	case t.Slice > 0:
		a[kueueSliceKey], a[kueueSliceSizeKey] = label, strconv.Itoa(int(t.Slice))
	case t.Required():
		a[kueueRequiredKey] = label
	default:
		a[kueuePreferredKey] = label
	}
	if j.Spec.Workers.Master && j.Spec.Workers.Replicas > 1 {
		a[kueuePodSetGroupKey] = j.GangName()
	}
	return a
}

// podRank tells the scheduler the rank of a bare pod, by which it fills domains; those of Jobs have a label for it.
func podRank(j *job.Job, number int32) (labels, annotations map[string]string) {
	if j.Spec.Topology() == nil {
		return nil, nil
	}
	rank := strconv.Itoa(int(number - j.Spec.Workers.FirstIndex))
	switch g := j.Spec.Gang; {
	case g.Is(job.GangKueue):
		return map[string]string{kueuePodIndexKey: rank}, nil
	case g.Is(job.GangKoordinator, job.GangTegen):
		return nil, map[string]string{gatherRankKey: rank}
	}
	return nil, nil
}

// gatherRule is one of Koordinator's network-topology-spec, which tegen-scheduler reads too.
type gatherRule struct {
	Layer            string `json:"layer"`
	Strategy         string `json:"strategy"`
	PodCountMultiple int32  `json:"podCountMultiple,omitempty"`
}

// koordinatorTopology is on the pods of every role, which are one group. Koordinator knows the layers of its
// ClusterNetworkTopology, and slices as the number of which the pods in each domain are a multiple; tegen-scheduler
// knows labels of nodes, slices of workers by a key of its own, and lets a launcher without the key be anywhere.
func koordinatorTopology(j *job.Job, component string) map[string]string {
	t := j.Spec.Topology()
	tegen := j.Spec.Gang.Is(job.GangTegen)
	if t == nil || t.Slice > 0 && component != componentWorker || tegen && component == componentLauncher {
		return nil
	}
	rule := gatherRule{Strategy: "MustGather"}
	if !t.Required() || !tegen && t.Slice > 0 { // which would have all slices in one domain
		rule.Strategy = "PreferGather"
	}
	a := map[string]string{}
	switch {
	case tegen:
		rule.Layer = j.TopologyLevel().Label
		if t.Slice > 0 {
			a[tegenSliceKey] = strconv.Itoa(int(t.Slice))
		}
	default:
		rule.Layer, rule.PodCountMultiple = j.TopologyLayer(), t.Slice
	}
	text, err := json.Marshal(map[string][]gatherRule{"gatherStrategy": {rule}})
	if err != nil { // strings and numbers always have a JSON form
		panic(fmt.Errorf("writing a topology: %w", err))
	}
	a[gatherKey] = string(text)
	return a
}

// volcanoTopology is that of all pods of the gang; nil where each slice has its own, or there is none.
func volcanoTopology(j *job.Job) *apis.VolcanoTopology {
	if t := j.Spec.Topology(); t == nil || t.Slice > 0 || !j.Spec.Gang.Is(job.GangVolcano) {
		return nil
	}
	return highestTier(j)
}

// volcanoPartitions are the slices of the workers of Volcano's own Job.
func volcanoPartitions(j *job.Job) *apis.VCPartitionPolicy {
	t, g := j.Spec.Topology(), j.Spec.Gang
	if t == nil || t.Slice == 0 || !g.Is(job.GangVolcano) {
		return nil
	}
	return &apis.VCPartitionPolicy{
		TotalPartitions: j.Spec.Workers.Replicas / t.Slice, PartitionSize: t.Slice,
		MinPartitions: g.MinAvailable / t.Slice, NetworkTopology: highestTier(j),
	}
}

// highestTier names the tier of a level by its number, or else by the label of which Volcano's discovery makes the
// tier's name. In mode soft Volcano takes the lowest tier that it can, whichever is named.
func highestTier(j *job.Job) *apis.VolcanoTopology {
	level, out := j.TopologyLevel(), &apis.VolcanoTopology{Mode: "hard"}
	if !j.Spec.Topology().Required() {
		out.Mode = "soft"
	}
	switch {
	case level.Tier != nil:
		out.HighestTierAllowed = level.Tier
	case level.Label != "":
		out.HighestTierName = level.Label
	default:
		out.HighestTierName = level.Name
	}
	return out
}

// gangConstraints is the domain of Kubernetes' own gangs.
func gangConstraints(j *job.Job) *apis.GroupConstraints {
	if j.Spec.Topology() == nil {
		return nil
	}
	return &apis.GroupConstraints{Topology: []apis.TopologyConstraint{{Key: j.TopologyLevel().Label}}}
}

// exclusiveTopology has JobSet's controller keep a child Job in one domain, and all others of its Jobs out of it. It
// places pod 0 first and makes the others when that has a node.
func exclusiveTopology(j *job.Job) map[string]string {
	if !j.Spec.ExclusiveTopology() {
		return nil
	}
	return map[string]string{jobSetExclusiveKey: j.TopologyLevel().Label}
}
