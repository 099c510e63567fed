package job

import (
	"slices"
	"strings"
)

// OtherTopologies are the schedulers, other than the gang's, that place a gang by topology.
func (g *Gang) OtherTopologies() string {
	names := DialectsWhere(func(d Dialect) bool {
		return slices.Contains(d.Fields, "topology") && d.Name != g.Scheduler
	})
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Topology mirrors #Gang.topology: within which domain of the network the workers are placed.
type Topology struct {
	Level string `json:"level"`
	Mode  string `json:"mode"`
	Slice int32  `json:"slice,omitempty"`
}

// Values of Topology.Mode.
const (
	TopologyRequired  = "required"
	TopologyPreferred = "preferred"
)

// Level is a level of the network, as an Environment lists it. Without a label it is known by its name alone, to the
// schedulers that keep a list of levels themselves.
type Level struct {
	Name  string `json:"name"`
	Label string `json:"label"`
	Tier  *int32 `json:"tier,omitempty"`
}

// BuiltinLevels are those that every cluster has.
var BuiltinLevels = []Level{
	{Name: "zone", Label: "topology.kubernetes.io/zone"},
	{Name: levelNode, Label: "kubernetes.io/hostname"},
}

const levelNode = "node"

// Required says whether the workers wait for a domain that has room for them.
func (t *Topology) Required() bool { return t.Mode == TopologyRequired }

// Topology is the job's, nil where it has none.
func (s *Spec) Topology() *Topology {
	if s.Gang == nil {
		return nil
	}
	return s.Gang.Topology
}

// TopologyLevel is the level that the job's topology speaks of: one of the Environment's by its name or label, one that
// every cluster has, the key of a label, or else a name alone.
func (j *Job) TopologyLevel() Level {
	word := j.Spec.Gang.Topology.Level
	for _, levels := range [][]Level{j.Origin.Levels, BuiltinLevels} {
		for _, l := range levels {
			if word == l.Name || word == l.Label {
				return l
			}
		}
	}
	if strings.Contains(word, "/") {
		return Level{Label: word}
	}
	return Level{Name: word}
}

// koordinatorNodes is the layer of single nodes in every ClusterNetworkTopology (koordinator 1.8,
// apis/scheduling/v1alpha1).
const koordinatorNodes = "NodeTopologyLayer"

// TopologyLayer is the name of the job's level in Koordinator's ClusterNetworkTopology, "" where it is not known.
func (j *Job) TopologyLayer() string {
	level := j.TopologyLevel()
	switch listed := slices.ContainsFunc(j.Origin.Levels, func(l Level) bool { return l.Name == level.Name }); {
	case listed, level.Label == "":
		return level.Name
	case level.Name == levelNode:
		return koordinatorNodes
	}
	return ""
}

// ExclusiveTopology says whether JobSet's controller keeps the workers in one domain, which no other of its Jobs gets:
// it needs no scheduler of gangs for that.
func (s *Spec) ExclusiveTopology() bool {
	return s.Topology() != nil && s.Target == TargetJobSet && s.Gang.Scheduler == GangNone
}
