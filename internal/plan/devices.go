//go:build !js

package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// deviceID is the name of a device.
type deviceID = structured.DeviceID

// devices are those of dynamic resource allocation: what drivers offer, and what of it is taken. Which of them a claim
// gets on a node is decided by the code of kube-scheduler.
type devices struct {
	pools     map[types.NamespacedName][]*resourcev1.ResourceSlice // by driver and pool
	of        map[string][]types.NamespacedName                    // pools of a node, by its name
	anywhere  []types.NamespacedName                               // pools that no slice ties to one node
	classes   classes
	templates map[string]*resourcev1.ResourceClaimSpec // by namespace/name
	claims    map[string]*resourcev1.ResourceClaim     // by namespace/name
	taken     sets.Set[structured.DeviceID]
	cache     *cel.Cache
}

func newDevices() *devices {
	return &devices{
		pools: map[types.NamespacedName][]*resourcev1.ResourceSlice{}, of: map[string][]types.NamespacedName{},
		classes: classes{}, templates: map[string]*resourcev1.ResourceClaimSpec{},
		claims: map[string]*resourcev1.ResourceClaim{}, taken: sets.New[structured.DeviceID](),
		cache: cel.NewCache(100, cel.Features{}),
	}
}

// known says whether the inventory has devices: without, their claims are left out of all counts.
func (ds *devices) known() bool { return ds != nil && len(ds.pools)+len(ds.classes) > 0 }

// classes are by name.
type classes map[string]*resourcev1.DeviceClass

func (c classes) List() (all []*resourcev1.DeviceClass, err error) {
	for _, class := range c {
		all = append(all, class)
	}
	return all, nil
}

func (c classes) Get(name string) (*resourcev1.DeviceClass, error) {
	if c[name] == nil {
		return nil, fmt.Errorf("no DeviceClass %s in the inventory", name)
	}
	return c[name], nil
}

func (ds *devices) addSlice(s *resourcev1.ResourceSlice) {
	pool := types.NamespacedName{Namespace: s.Spec.Driver, Name: s.Spec.Pool.Name}
	ds.pools[pool] = append(ds.pools[pool], s)
	list := &ds.anywhere
	if name := s.Spec.NodeName; name != nil {
		own := ds.of[*name]
		list = &own
		defer func() { ds.of[*name] = own }()
	}
	if !slices.Contains(*list, pool) {
		*list = append(*list, pool)
	}
}

// addClaim takes the devices of a claim that has some.
func (ds *devices) addClaim(c *resourcev1.ResourceClaim) {
	ds.claims[c.Namespace+"/"+c.Name] = c
	if c.Status.Allocation != nil {
		ds.take(idsOf(*c.Status.Allocation))
	}
}

func (ds *devices) take(ids []structured.DeviceID)    { ds.taken.Insert(ids...) }
func (ds *devices) release(ids []structured.DeviceID) { ds.taken.Delete(ids...) }

// idsOf are the devices that nobody else has while an allocation lasts.
func idsOf(a resourcev1.AllocationResult) (ids []structured.DeviceID) {
	for _, r := range a.Devices.Results {
		if r.AdminAccess == nil || !*r.AdminAccess {
			ids = append(ids, structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
		}
	}
	return ids
}

// allocate finds devices for all claims of one pod on a node.
func (ds *devices) allocate(n *corev1.Node, claims []*resourcev1.ResourceClaim) ([]structured.DeviceID, bool, error) {
	var offered []*resourcev1.ResourceSlice
	for _, pool := range slices.Concat(ds.of[n.Name], ds.anywhere) {
		offered = append(offered, ds.pools[pool]...)
	}
	allocator, err := structured.NewAllocator(context.Background(), structured.Features{
		AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, DeviceTaints: true,
	}, structured.AllocatedState{
		AllocatedDevices: ds.taken, AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}, ds.classes, offered, ds.cache)
	if err != nil {
		return nil, false, fmt.Errorf("looking for devices: %w", err)
	}
	results, err := allocator.Allocate(context.Background(), n, claims)
	if err != nil || results == nil {
		return nil, false, err
	}
	var ids []structured.DeviceID
	for _, r := range results {
		ids = append(ids, idsOf(r)...)
	}
	return ids, true, nil
}

// room is how many pods with these claims a node has devices for, up to so many, and why not one where it has none.
func (ds *devices) room(n *corev1.Node, claims []*resourcev1.ResourceClaim, most int64) (count int64, why []string) {
	var given []structured.DeviceID
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
	var given []structured.DeviceID
	defer func() { ds.release(given) }()
	for _, c := range claims {
		for _, r := range c.Spec.Devices.Requests {
			if r.Exactly == nil || r.Exactly.AllocationMode != resourcev1.DeviceAllocationModeExactCount {
				continue
			}
			one := r.DeepCopy()
			one.Exactly.Count = 1
			single := &resourcev1.ResourceClaim{ObjectMeta: c.ObjectMeta}
			single.Spec.Devices.Requests = []resourcev1.DeviceRequest{*one}
			free := int64(0)
			for free < r.Exactly.Count {
				ids, ok, err := ds.allocate(n, []*resourcev1.ResourceClaim{single})
				if err != nil || !ok {
					break
				}
				ds.take(ids)
				given, free = append(given, ids...), free+1
			}
			if free < r.Exactly.Count {
				why = append(why, fmt.Sprintf("insufficient devices of class %s%s: %d asked, %d free",
					r.Exactly.DeviceClassName, bySelectors(r.Exactly.Selectors), r.Exactly.Count, free))
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
