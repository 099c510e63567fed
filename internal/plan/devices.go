package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// deviceID identifies a device of the inventory.
type deviceID struct{ driver, pool, device string }

// devices are those of dynamic resource allocation: what drivers offer, and what of it is allocated.
type devices struct {
	pools     map[types.NamespacedName]*pool // by driver and name
	of        map[string][]*pool             // by the name of the node
	anywhere  []*pool                        // with a slice that is not tied to one node
	classes   map[string]*resourcev1.DeviceClass
	templates map[string]*resourcev1.ResourceClaimSpec // by namespace/name
	claims    map[string]*resourcev1.ResourceClaim     // by namespace/name
	taken     map[deviceID]bool
}

// pool has the slices of its newest generation.
type pool struct{ slices []*resourcev1.ResourceSlice }

func newDevices() *devices {
	return &devices{
		pools: map[types.NamespacedName]*pool{}, of: map[string][]*pool{},
		classes: map[string]*resourcev1.DeviceClass{}, templates: map[string]*resourcev1.ResourceClaimSpec{},
		claims: map[string]*resourcev1.ResourceClaim{}, taken: map[deviceID]bool{},
	}
}

// known says whether the inventory has devices: without, their claims are left out of all counts.
func (ds *devices) known() bool { return ds != nil && len(ds.pools)+len(ds.classes) > 0 }

func (ds *devices) addSlice(s *resourcev1.ResourceSlice) {
	name := types.NamespacedName{Namespace: s.Spec.Driver, Name: s.Spec.Pool.Name}
	p := ds.pools[name]
	if p == nil {
		p = &pool{}
		ds.pools[name] = p
	}
	switch generation := s.Spec.Pool.Generation; {
	case len(p.slices) > 0 && generation < p.slices[0].Spec.Pool.Generation:
		return
	case len(p.slices) > 0 && generation > p.slices[0].Spec.Pool.Generation:
		p.slices = nil
	}
	p.slices = append(p.slices, s)
	if node := s.Spec.NodeName; node == nil {
		ds.anywhere = append(ds.anywhere, p)
	} else {
		ds.of[*node] = append(ds.of[*node], p)
	}
}

// addClaim takes the devices of a claim that has some.
func (ds *devices) addClaim(c *resourcev1.ResourceClaim) {
	ds.claims[c.Namespace+"/"+c.Name] = c
	if c.Status.Allocation == nil {
		return
	}
	for _, r := range c.Status.Allocation.Devices.Results {
		if r.AdminAccess == nil || !*r.AdminAccess { // which shares devices with others
			ds.taken[deviceID{r.Driver, r.Pool, r.Device}] = true
		}
	}
}

func (ds *devices) take(ids []deviceID) {
	for _, id := range ids {
		ds.taken[id] = true
	}
}

func (ds *devices) release(ids []deviceID) {
	for _, id := range ids {
		delete(ds.taken, id)
	}
}

// room is how many pods with these claims a node has devices for, up to so many, and why not one where it has none.
func (ds *devices) room(n *corev1.Node, claims []*resourcev1.ResourceClaim, most int64) (count int64, why []string) {
	var given []deviceID
	defer func() { ds.release(given) }()
	for count < most {
		ids, ok, err := ds.allocate(n, claims)
		switch {
		case err != nil:
			return count, []string{err.Error()}
		case !ok && count == 0:
			return 0, ds.lacking(n, claims)
		case !ok:
			return count, nil
		case len(ids) == 0: // it takes none
			return most, nil
		}
		ds.take(ids)
		given, count = append(given, ids...), count+1
	}
	return count, nil
}

// lacking says of which class there are too few free devices on a node, for one request after another.
func (ds *devices) lacking(n *corev1.Node, claims []*resourcev1.ResourceClaim) (why []string) {
	var given []deviceID
	defer func() { ds.release(given) }()
	for _, c := range claims {
		for i := range c.Spec.Devices.Requests {
			r := c.Spec.Devices.Requests[i].Exactly
			if r == nil || r.AllocationMode != resourcev1.DeviceAllocationModeExactCount {
				continue
			}
			one := c.Spec.Devices.Requests[i].DeepCopy()
			one.Exactly.Count = 1
			single := &resourcev1.ResourceClaim{ObjectMeta: c.ObjectMeta}
			single.Spec.Devices.Requests = []resourcev1.DeviceRequest{*one}
			free := int64(0)
			for free < r.Count {
				ids, ok, err := ds.allocate(n, []*resourcev1.ResourceClaim{single})
				if err != nil || !ok {
					break
				}
				ds.take(ids)
				given, free = append(given, ids...), free+1
			}
			if free < r.Count {
				why = append(why, fmt.Sprintf("insufficient devices of class %s%s: %d asked, %d free",
					r.DeviceClassName, bySelectors(r.Selectors), r.Count, free))
			}
		}
	}
	slices.Sort(why)
	why = slices.Compact(why)
	if why == nil {
		why = []string{"no free devices suit all requests of its claims together"}
	}
	return why
}

func bySelectors(list []resourcev1.DeviceSelector) string {
	var all []string
	for _, s := range list {
		if s.CEL != nil {
			all = append(all, s.CEL.Expression)
		}
	}
	if all == nil {
		return ""
	}
	return " where " + strings.Join(all, " and ")
}

// claimed are the claims that pods of a set will have, which nobody has yet, and the nodes to which others bind them.
type claimed struct {
	own   []*resourcev1.ResourceClaim
	bound []*resourcev1.ResourceClaim
	notes []string // of those that are not looked at
}

// claimsOf finds the claims of a pod that is to come.
func (ds *devices) claimsOf(pod *corev1.Pod, rendered map[string]*resourcev1.ResourceClaimSpec) (out claimed) {
	for _, c := range pod.Spec.ResourceClaims {
		switch {
		case c.ResourceClaimTemplateName != nil:
			key := pod.Namespace + "/" + *c.ResourceClaimTemplateName
			spec := rendered[key]
			if spec == nil {
				spec = ds.templates[key]
			}
			if spec == nil {
				out.notes = append(out.notes, fmt.Sprintf("ResourceClaimTemplate %s is not in the inventory: its "+
					"devices are not counted", *c.ResourceClaimTemplateName))
				continue
			}
			if why := ds.unsupported(spec); why != "" {
				out.notes = append(out.notes, fmt.Sprintf("ResourceClaimTemplate %s has %s, which plan does not "+
					"evaluate: its devices are not counted", *c.ResourceClaimTemplateName, why))
				continue
			}
			claim := &resourcev1.ResourceClaim{Spec: *spec}
			claim.Name, claim.Namespace, claim.UID = c.Name, pod.Namespace, types.UID(key+"/"+c.Name)
			out.own = append(out.own, claim)
		case c.ResourceClaimName != nil:
			claim := ds.claims[pod.Namespace+"/"+*c.ResourceClaimName]
			if claim == nil || claim.Status.Allocation == nil {
				out.notes = append(out.notes, fmt.Sprintf("ResourceClaim %s, which pods share, has no devices in the "+
					"inventory yet: it is not counted", *c.ResourceClaimName))
				continue
			}
			out.bound = append(out.bound, claim)
		}
	}
	return out
}

// refuses explains why a node takes no pod with claims that have their devices already, "" where it would.
func (c claimed) refuses(n *corev1.Node) string {
	for _, claim := range c.bound {
		selector := claim.Status.Allocation.NodeSelector
		if selector == nil {
			continue
		}
		s, err := nodeaffinity.NewNodeSelector(selector)
		if err != nil || !s.Match(n) {
			return "the devices of ResourceClaim " + claim.Name + " are on other nodes"
		}
	}
	return ""
}
