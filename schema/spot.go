package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Provisioner is who brings a cluster's nodes, and how it tells that one may be taken back.
type Provisioner struct {
	Name       string
	Key, Value string        // label of spot nodes
	lasting    string        // its value on nodes that stay, "" where spot nodes alone have the label
	tainted    bool          // with the same key and value, effect NoSchedule
	notice     time.Duration // from the word that a node goes to its end
	evicts     bool          // pods of a node that goes are evicted, by the Eviction API
	asksPods   bool          // but for those with karpenter.sh/do-not-disrupt
}

// Provisioners has a row for each, as placement.provisioner has them.
//
// Sources: karpenter.sh, well-known labels; Amazon EKS, managed node groups, and EC2's interruption notice of two
// minutes; Google Kubernetes Engine, Spot VMs: of the 30 seconds pods have the first 15; Azure Kubernetes Service, spot
// node pools. Karpenter's IsEvictable (pkg/utils/pod/scheduling.go) leaves out pods that are not to be disrupted, also
// on a node that is interrupted.
var Provisioners = []Provisioner{
	{"karpenter", "karpenter.sh/capacity-type", "spot", "on-demand", false, 2 * time.Minute, true, true},
	{"eks", "eks.amazonaws.com/capacityType", "SPOT", "ON_DEMAND", false, 2 * time.Minute, true, false},
	{"gke", "cloud.google.com/gke-spot", "true", "", true, 15 * time.Second, false, false},
	{"aks", "kubernetes.azure.com/scalesetpriority", "spot", "", true, 30 * time.Second, false, false},
}

// Toleration is what pods need beside the label, nil where spot nodes have no taint.
func (p Provisioner) Toleration() *Toleration {
	if !p.tainted {
		return nil
	}
	return &Toleration{Key: p.Key, Operator: "Equal", Value: p.Value, Effect: "NoSchedule"}
}

// provisioner is the row of the placement; nil where it names none.
func (p *Placement) provisioner() *Provisioner {
	i := slices.IndexFunc(Provisioners, func(row Provisioner) bool { return row.Name == p.Provisioner })
	if i < 0 {
		return nil
	}
	return &Provisioners[i]
}

// onSpot puts workers on nodes that may be taken back, in the words of who brings them.
func (p *Placement) onSpot() {
	row := p.provisioner()
	if !p.Spot || row == nil {
		return
	}
	if _, said := p.NodeSelector[row.Key]; !said {
		p.NodeSelector = maps.Clone(p.NodeSelector)
		if p.NodeSelector == nil {
			p.NodeSelector = map[string]string{}
		}
		p.NodeSelector[row.Key] = row.Value
	}
	if t := row.Toleration(); t != nil && !slices.ContainsFunc(p.Tolerations, func(own Toleration) bool {
		return own.Key == "" || own.Key == t.Key
	}) {
		p.Tolerations = append(slices.Clip(p.Tolerations), *t)
	}
}

// spot asks for a provisioner, whose labels say which nodes those are.
func (r *validation) spot() {
	p := &r.Spec.Placement
	if !p.Spot {
		return
	}
	row := p.provisioner()
	if row == nil {
		r.fail("spec.placement.spot", "requires", "nothing says which nodes those are: set placement.provisioner, "+
			"here or in an Environment's defaults, or select the nodes by placement.nodeSelector")
		return
	}
	if own := p.NodeSelector[row.Key]; own != row.Value {
		r.fail("spec.placement.nodeSelector."+row.Key, "one-of", "%q asks for other nodes than placement.spot: leave "+
			"one of the two out", own)
	}
}

// besideOnSpot are the roles and groups beside the workers whose pods may get to spot nodes, and say nothing of it.
func (s *Spec) besideOnSpot(row *Provisioner) (others []string) {
	for _, name := range s.otherRoles() {
		if _, said := s.Role(name).NodeSelector[row.Key]; s.has(name) && !row.tainted && !said {
			others = append(others, name)
		}
	}
	return others
}

// placesOf names where the nodes of roles are chosen.
func (s *Spec) placesOf(roles []string) string {
	at := make([]string, len(roles))
	for i, name := range roles {
		at[i] = s.placeOf(name)
	}
	return strings.Join(at, ", ")
}

// spotNotes tell what is lost with a node that is taken back.
func (s *Spec) spotNotes() (notes []string) {
	row := s.Placement.provisioner()
	if !s.Placement.Spot || row == nil {
		return nil
	}
	if s.Checkpoint == nil {
		notes = append(notes, "spec.placement.spot: a node that is taken back ends its pods, and no checkpoint is "+
			"named: set checkpoint, or the training starts from the beginning")
	}
	if others := s.besideOnSpot(row); len(others) > 0 {
		notes = append(notes, fmt.Sprintf("spec.placement.spot: %s gives spot nodes no taint, so that they take the "+
			"pods of %s too: to keep those off, set nodeSelector: {%s: %s} at %s", row.Name,
			strings.Join(others, ", "), row.Key, row.lasting, s.placesOf(others)))
	}
	switch d := s.Disruption; {
	case row.asksPods && !d.SafeToEvict:
		notes = append(notes, "spec.disruption.safeToEvict: "+row.Name+" evicts no pod that is not to be disrupted, "+
			"not even from a spot node that is taken back: its pods get no SIGTERM. Set safeToEvict: true, and then "+
			"what disruption.budget allows is evicted")
	case row.evicts && d.Budget && s.Workers.Min == s.Workers.Replicas:
		notes = append(notes, fmt.Sprintf("spec.disruption.budget: it keeps all %d workers from being evicted, also "+
			"from a spot node that is taken back: its pods get no SIGTERM. Set workers.min below workers.replicas, or "+
			"disruption.budget: false", s.Workers.Replicas))
	}
	if grace := s.GracePeriod.Duration; grace > row.notice {
		notes = append(notes, fmt.Sprintf("spec.gracePeriod: a spot node of %s ends %s after it is announced, and "+
			"gracePeriod is %s: what takes longer is lost", row.Name, row.notice, grace))
	}
	return notes
}
