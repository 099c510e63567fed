package gangcache

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Annotations of the topology: the layers in which a gang gathers, Koordinator's, without the prefix as the others; the
// pod's rank where it is not a Job's, likewise; and in full how many workers of consecutive ranks gather on their own.
const (
	TopologyKey = "network-topology-spec"
	RankKey     = "network-topology-index"
	SliceKey    = "gang.tegen.dev/topology-slice"
)

// completionIndex is a pod's rank in its Job: a label and an annotation.
const completionIndex = "batch.kubernetes.io/job-completion-index"

// MaxLayers is how many layers a gang may gather in.
const MaxLayers = 4

// Layer is a label of nodes whose value is to be the same for all members of a gang, or of a slice.
type Layer struct {
	Label    string
	Required bool // else it is given up where no such nodes have room
}

// Slice is the members of a gang that gather on their own; the zero value is all that are in no slice.
type Slice struct {
	Owner  string // what made the pods: each Job of a JobSet counts its pods from 0
	Number int    // from 1
}

// String is how users read it, "" for members in no slice.
func (s Slice) String() string {
	switch {
	case s == Slice{}:
		return ""
	case s.Owner == "":
		return fmt.Sprintf("slice %d", s.Number-1)
	}
	return fmt.Sprintf("slice %d of %s", s.Number-1, s.Owner)
}

// Site is a node that members of a slice are on, or have reserved.
type Site struct {
	Slice   Slice
	Node    string
	Members int
}

// text is an annotation's and the layers that it names.
type text struct {
	text   string
	layers []Layer
}

// last is the text that was read last: the pods of a gang have the same, those of other gangs often, and each pod is
// read whenever anything about it changes.
var last atomic.Pointer[text]

// layers reads the layers in which a gang gathers.
func (r *reader) layers() []Layer {
	annotation, ok := r.annotations[Prefix+TopologyKey]
	if !ok {
		return nil
	}
	if known := last.Load(); known != nil && known.text == annotation {
		return known.layers
	}
	layers := r.parse(annotation)
	if len(layers) > 0 {
		last.Store(&text{annotation, layers})
	}
	return layers
}

// parse reads the layers of a text.
func (r *reader) parse(text string) []Layer {
	const shape = `it must be JSON such as {"gatherStrategy":[{"layer":"topology.kubernetes.io/zone",` +
		`"strategy":"MustGather"}]}; a layer is a label of nodes, a strategy MustGather or PreferGather`
	var spec struct {
		GatherStrategy []struct {
			Layer    string `json:"layer"`
			Strategy string `json:"strategy"`
		} `json:"gatherStrategy"`
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields() // such as podCountMultiple, which would be ignored
	if err := decoder.Decode(&spec); err != nil || decoder.More() || len(spec.GatherStrategy) == 0 {
		r.fail(TopologyKey, shape)
		return nil
	}
	if len(spec.GatherStrategy) > MaxLayers {
		r.fail(TopologyKey, fmt.Sprintf("it may have at most %d layers", MaxLayers))
		return nil
	}
	var out []Layer
	for _, rule := range spec.GatherStrategy {
		required := rule.Strategy == "MustGather"
		switch {
		case rule.Layer == "", len(rule.Layer) > maxLabel, !required && rule.Strategy != "PreferGather":
			r.fail(TopologyKey, shape)
			return nil
		case slices.ContainsFunc(out, func(l Layer) bool { return l.Label == rule.Layer }):
			r.fail(TopologyKey, fmt.Sprintf("it has layer %s twice", rule.Layer))
			return nil
		}
		out = append(out, Layer{Label: rule.Layer, Required: required})
	}
	return out
}

const maxLabel = 253 + 1 + 63 // of the name of a label with its prefix

// SliceOf reads which slice a pod is in; owner names what made it.
func SliceOf(annotations, labels map[string]string, owner string) (Slice, error) {
	text, ok := annotations[SliceKey]
	if !ok {
		return Slice{}, nil
	}
	size, err := strconv.Atoi(text)
	switch {
	case err != nil || size < 1 || size > MaxMembers:
		return Slice{}, fmt.Errorf("annotation %s must be a number from 1 to %d", SliceKey, MaxMembers)
	case annotations[Prefix+TopologyKey] == "":
		return Slice{}, fmt.Errorf("annotation %s needs %s%s, which says where a slice gathers", SliceKey, Prefix,
			TopologyKey)
	}
	for _, text := range []string{
		annotations[Prefix+RankKey], labels[completionIndex], annotations[completionIndex],
	} {
		if rank, err := strconv.Atoi(text); err == nil && rank >= 0 {
			return Slice{Owner: owner, Number: rank/size + 1}, nil
		}
	}
	return Slice{}, fmt.Errorf("annotation %s needs the pod's rank, from 0, as label or annotation %s or as "+
		"annotation %s%s", SliceKey, completionIndex, Prefix, RankKey)
}

// seat counts a member that has a node, where somebody asked for those before.
func (g *gang) seat(m *Member, by int) {
	if g.sites == nil || m.Node == "" {
		return
	}
	if g.sites[m.Slice] == nil {
		g.sites[m.Slice] = map[string]int{}
	}
	if g.sites[m.Slice][m.Node] += by; g.sites[m.Slice][m.Node] == 0 {
		delete(g.sites[m.Slice], m.Node)
	}
	if len(g.sites[m.Slice]) == 0 {
		delete(g.sites, m.Slice)
	}
}

// seated says whether a member counts for the place of its slice.
func (g *gang) seated(m *Member) bool {
	h := g.reserved[m.UID]
	return m.State == Bound || m.State == Pending && (h == waiting || h == allowed)
}

// takeSeats counts the members that have nodes for the first time. Most gangs gather nowhere and are never asked.
func (g *gang) takeSeats() {
	if g.sites != nil {
		return
	}
	g.sites = map[Slice]map[string]int{}
	for _, m := range g.members {
		if g.seated(m) {
			g.seat(m, 1)
		}
	}
}

// peers are the gangs of a group that gather together with its first: those that gather in the same layers.
func peers(group []*gang, g *gang) []*gang {
	var out []*gang
	for _, other := range group {
		if slices.Equal(other.spec.Layers, g.spec.Layers) {
			out = append(out, other)
		}
	}
	return out
}

// sitesOf are the nodes of some gangs' members, in no order: of one slice, or of all where that is nil.
func sitesOf(gangs []*gang, only *Slice) []Site {
	var out []Site
	for _, g := range gangs {
		g.takeSeats()
		if only != nil {
			out = appendSites(out, *only, g.sites[*only])
			continue
		}
		for s, nodes := range g.sites {
			out = appendSites(out, s, nodes)
		}
	}
	return out
}

func appendSites(out []Site, s Slice, nodes map[string]int) []Site {
	for node, n := range nodes {
		out = append(out, Site{Slice: s, Node: node, Members: n})
	}
	return out
}

// MustGather says whether what is wanted must not be anywhere.
func (w Want) MustGather() bool {
	return slices.ContainsFunc(w.Layers, func(l Layer) bool { return l.Required })
}

// alone is what a member asks for that is placed on its own though its gang gathers: one place near the others. While
// none of them has one the members that want places too are its company.
func (c *Cache) alone(g *gang, m *Member) Want {
	group, _ := c.group(g)
	gangs := peers(group, g)
	w := Want{
		Gang: g.key, Min: g.spec.Min, Need: 1, Candidates: []UID{m.UID}, Layers: g.spec.Layers,
		Sites: sitesOf(gangs, &m.Slice), Alone: true,
	}
	if len(w.Sites) > 0 {
		return w
	}
	for _, other := range gangs {
		for _, candidate := range other.candidates() {
			if candidate != m && candidate.Slice == m.Slice {
				w.Company = append(w.Company, candidate.UID)
			}
		}
	}
	return w
}
