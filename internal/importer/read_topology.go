package importer

import (
	"encoding/json"
	"strconv"

	"github.com/tegen-dev/tegen/schema/job"
)

// Keys by which pods are placed in one domain of the network.
const (
	kueueRequired   = kueue + "podset-required-topology"
	kueuePreferred  = kueue + "podset-preferred-topology"
	kueueSlice      = kueue + "podset-slice-required-topology"
	kueueSliceSize  = kueue + "podset-slice-size"
	kueueGroup      = kueue + "podset-group-name"
	kueuePodIndex   = kueue + "pod-group-pod-index"
	gather          = koordinator + "network-topology-spec"
	tegenSlice      = "gang.tegen.dev/topology-slice"
	jobSetExclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology"
)

const topologyField = "spec.gang.topology"

// setTopology sets what a topology is made of.
func (d *draft) setTopology(level, mode string, slice int64, from view) {
	d.set(topologyField+".level", level, from)
	if mode != job.TopologyRequired {
		d.set(topologyField+".mode", mode, from)
	}
	if slice > 0 {
		d.set(topologyField+".slice", slice, from)
	}
}

// kueueTopology reads Kueue's annotations of a template. What says more than one level, or groups of pods that this
// does not know, stays in podTemplate.
func (d *draft) kueueTopology(t view) {
	annotations := t.at("metadata", "annotations")
	required, preferred := annotations.at(kueueRequired), annotations.at(kueuePreferred)
	slice, size := annotations.at(kueueSlice), annotations.at(kueueSliceSize)
	n, err := strconv.ParseInt(size.text(), 10, 32)
	switch {
	case slice.isSet() && (required.isSet() || preferred.isSet() || err != nil):
		return
	case slice.isSet():
		d.setTopology(slice.text(), job.TopologyRequired, n, slice)
	case required.isSet() && !preferred.isSet():
		d.setTopology(required.text(), job.TopologyRequired, 0, required)
	case preferred.isSet() && !required.isSet():
		d.setTopology(preferred.text(), job.TopologyPreferred, 0, preferred)
	}
}

// gatherTopology reads Koordinator's annotation, of pods or of their PodGroup, which tegen-scheduler reads too: its one
// rule, or else none, since a job has one level.
func (d *draft) gatherTopology(annotations view) {
	v := annotations.at(gather)
	if !v.isSet() {
		return
	}
	var spec struct {
		GatherStrategy []struct {
			Layer, Strategy  string
			PodCountMultiple int64
		}
	}
	if json.Unmarshal([]byte(v.text()), &spec) != nil || len(spec.GatherStrategy) != 1 {
		d.note(v, Dropped, "a TrainingJob's topology has one level: name it in spec.gang.topology")
		return
	}
	rule, mode := spec.GatherStrategy[0], job.TopologyRequired
	slice := rule.PodCountMultiple
	if n, err := strconv.ParseInt(annotations.at(tegenSlice).text(), 10, 32); err == nil {
		slice = n
	}
	if rule.Strategy == "PreferGather" && rule.PodCountMultiple == 0 {
		mode = job.TopologyPreferred
	}
	level := rule.Layer
	if level == "NodeTopologyLayer" {
		level = "node"
	}
	d.setTopology(level, mode, slice, v)
}

// volcanoTopology reads the tier of HyperNodes, of all pods or of each slice.
func (d *draft) volcanoTopology(v view, slice int64) {
	if !v.isSet() {
		return
	}
	name, mode := v.at("highestTierName"), job.TopologyRequired
	if !name.isSet() {
		d.note(v, Dropped, "which nodes are of a tier is in Volcano's HyperNodes alone: name the level in "+
			"spec.gang.topology, by the key of a node label or by an Environment's topology")
		return
	}
	if v.at("mode").text() == "soft" {
		mode = job.TopologyPreferred
	}
	d.set("spec.gang.scheduler", job.GangVolcano, v)
	d.setTopology(name.text(), mode, slice, v)
}

// vcTopology reads that of Volcano's own Job.
func (d *draft) vcTopology(spec, task view) {
	partitions := task.at("partitionPolicy")
	if n, ok := partitions.at("partitionSize").number(); ok && partitions.at("networkTopology").isSet() {
		d.volcanoTopology(partitions.at("networkTopology"), n)
		return
	}
	d.volcanoTopology(spec.at("networkTopology"), 0)
}

// exclusiveTopology reads JobSet's own way to keep a child Job in one domain, of the set or of one of its Jobs. It is
// the workload's, and no annotation that all objects are to have.
func (d *draft) exclusiveTopology(set, child view) {
	v := orElse(child.at("template", "metadata", "annotations", jobSetExclusive),
		set.at("metadata", "annotations", jobSetExclusive))
	if !v.isSet() {
		return
	}
	if d.get("spec.gang").isSet() { // a queue's, which JobSet's own way goes with
		d.put("spec.workload.annotations", jobSetExclusive, v.text(), v)
		v.markTranslated()
		return
	}
	if n, ok := child.at("replicas").number(); ok && n > 1 && !d.get("spec.workers.slices").isSet() {
		d.note(v, Dropped, "each of %d Jobs has a domain of its own, and the one Job of a TrainingJob would have one "+
			"for all workers", n)
		return
	}
	d.set("spec.gang.scheduler", job.GangNone, v)
	d.setTopology(v.text(), job.TopologyRequired, 0, v)
	v.markTranslated()
}
