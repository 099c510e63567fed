package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// offer is a device of a pool that a node can reach.
type offer struct {
	*resourcev1.Device
	id   deviceID
	pool *pool
}

// request is a request of a claim, or one alternative of it.
type request struct {
	resourcev1.ExactDeviceRequest
	claim  *resourcev1.ResourceClaim
	name   string // of the request
	option string // name of the alternative, "" without alternatives
	count  int
	offers []*offer // that match the selectors
}

// choice is a device that a search gave to a request.
type choice struct {
	*offer
	by *request
}

// search tries devices for requests until all constraints are satisfied.
type search struct {
	*devices
	chosen []choice
	steps  int
}

// maxSteps bounds a search: the number of combinations grows exponentially with the number of devices.
const maxSteps = 1_000_000

// allocate finds devices for all claims of one pod on a node, as kube-scheduler does: an exhaustive search, whose first
// result counts.
func (ds *devices) allocate(n *corev1.Node, claims []*resourcev1.ResourceClaim) ([]deviceID, bool, error) {
	offers, complete, err := ds.offered(n)
	if err != nil {
		return nil, false, err
	}
	var wanted [][]*request
	for _, c := range claims {
		for i := range c.Spec.Devices.Requests {
			list := alternatives(c, &c.Spec.Devices.Requests[i])
			for _, r := range list {
				if err := ds.match(r, offers, complete); err != nil {
					return nil, false, fmt.Errorf("claim %s/%s, request %s: %w", c.Namespace, c.Name, r.name, err)
				}
			}
			wanted = append(wanted, list)
		}
	}
	s := &search{devices: ds}
	ok := s.all(wanted)
	if s.steps > maxSteps {
		return nil, false, errors.New("its claims allow too many combinations of devices to try them all")
	}
	var ids []deviceID
	for _, c := range s.chosen {
		if !c.by.admin() {
			ids = append(ids, c.id)
		}
	}
	return ids, ok, nil
}

// offered lists the devices that a node can reach. It is not complete if a pool lacks slices: a driver is changing it.
func (ds *devices) offered(n *corev1.Node) (all []*offer, complete bool, err error) {
	complete = true
	seen := map[*pool]bool{}
	for _, p := range slices.Concat(ds.of[n.Name], ds.anywhere) {
		if seen[p] {
			continue
		}
		seen[p] = true
		if int64(len(p.slices)) != p.slices[0].Spec.Pool.ResourceSliceCount {
			complete = false
			continue
		}
		for _, s := range p.slices {
			for i := range s.Spec.Devices {
				d := &s.Spec.Devices[i]
				if ok, err := reaches(n, &s.Spec, d); err != nil {
					return nil, false, fmt.Errorf("ResourceSlice %s: %w", s.Name, err)
				} else if ok && len(d.BindingConditions) == 0 {
					all = append(all, &offer{d, deviceID{s.Spec.Driver, s.Spec.Pool.Name, d.Name}, p})
				}
			}
		}
	}
	return all, complete, nil
}

// reaches reports whether a node has access to a device of a slice.
func reaches(n *corev1.Node, s *resourcev1.ResourceSliceSpec, d *resourcev1.Device) (bool, error) {
	name, everywhere, selector := s.NodeName, s.AllNodes, s.NodeSelector
	if s.PerDeviceNodeSelection != nil && *s.PerDeviceNodeSelection {
		name, everywhere, selector = d.NodeName, d.AllNodes, d.NodeSelector
	}
	switch {
	case name != nil && *name != "":
		return *name == n.Name, nil
	case everywhere != nil && *everywhere:
		return true, nil
	case selector != nil:
		parsed, err := nodeaffinity.NewNodeSelector(selector)
		return err == nil && parsed.Match(n), err
	}
	return false, nil
}

// alternatives are what can satisfy a request, in the order of preference, with the API server's defaults.
func alternatives(c *resourcev1.ResourceClaim, r *resourcev1.DeviceRequest) (list []*request) {
	if r.Exactly != nil {
		list = append(list, &request{ExactDeviceRequest: *r.Exactly, claim: c, name: r.Name})
	}
	for _, o := range r.FirstAvailable {
		list = append(list, &request{claim: c, name: r.Name, option: o.Name, ExactDeviceRequest: exactly(&o)})
	}
	for _, r := range list {
		setDefaults(&r.ExactDeviceRequest)
	}
	return list
}

func exactly(o *resourcev1.DeviceSubRequest) resourcev1.ExactDeviceRequest {
	return resourcev1.ExactDeviceRequest{
		DeviceClassName: o.DeviceClassName, Selectors: o.Selectors, AllocationMode: o.AllocationMode,
		Count: o.Count, Tolerations: o.Tolerations, Capacity: o.Capacity,
	}
}

// setDefaults does what the API server does.
func setDefaults(r *resourcev1.ExactDeviceRequest) {
	if r.AllocationMode == "" {
		r.AllocationMode = resourcev1.DeviceAllocationModeExactCount
	}
	if r.AllocationMode == resourcev1.DeviceAllocationModeExactCount && r.Count == 0 {
		r.Count = 1
	}
}

func (r *request) admin() bool { return r.AdminAccess != nil && *r.AdminAccess }

// match finds the devices that a request may have, and how many it needs.
func (ds *devices) match(r *request, offers []*offer, complete bool) error {
	class := ds.classes[r.DeviceClassName]
	if class == nil {
		return fmt.Errorf("could not retrieve device class %[1]s: no DeviceClass %[1]s in the inventory",
			r.DeviceClassName)
	}
	var err error
	if r.offers, err = selected(slices.Concat(class.Spec.Selectors, r.Selectors), offers); err != nil {
		return err
	}
	r.count = int(r.Count)
	if r.AllocationMode == resourcev1.DeviceAllocationModeAll {
		r.count = max(1, len(r.offers))
		if !complete {
			r.offers = nil
		}
	}
	return nil
}

// all gives devices to requests, one after another.
func (s *search) all(wanted [][]*request) bool {
	if len(wanted) == 0 {
		return true
	}
	for _, r := range wanted[0] {
		if s.some(r, r.count, r.offers, wanted[1:]) {
			return true
		}
	}
	return false
}

// some gives count of the offers to a request, and then devices to the other requests.
func (s *search) some(r *request, count int, offers []*offer, others [][]*request) bool {
	if count == 0 {
		return s.all(others)
	}
	for i, o := range offers {
		s.steps++
		if s.steps > maxSteps || len(offers)-i < count {
			return false
		}
		if !s.allows(r, o) {
			continue
		}
		s.chosen = append(s.chosen, choice{o, r})
		if s.some(r, count-1, offers[i+1:], others) {
			return true
		}
		s.chosen = s.chosen[:len(s.chosen)-1]
	}
	return false
}

// allows reports whether a request can have a device beside those that were chosen before.
func (s *search) allows(r *request, o *offer) bool {
	if !r.admin() && (s.used(o.id) || !s.countersSuffice(o)) {
		return false
	}
	for i := range o.Taints {
		if !toleratesDevice(r.Tolerations, &o.Taints[i]) {
			return false
		}
	}
	size := 0
	for _, c := range s.chosen {
		if c.by.claim == r.claim {
			size++
		}
	}
	return size < resourcev1.AllocationResultsMaxSize &&
		!slices.ContainsFunc(r.claim.Spec.Devices.Constraints, func(c resourcev1.DeviceConstraint) bool {
			return !s.satisfies(&c, r, o)
		})
}

// used reports whether a device belongs to a claim.
func (s *search) used(id deviceID) bool {
	return s.taken[id] || slices.ContainsFunc(s.chosen, func(c choice) bool { return c.id == id && !c.by.admin() })
}

// countersSuffice reports whether the counters that partitions of a device share allow one more partition.
func (s *search) countersSuffice(o *offer) bool {
	for _, set := range o.ConsumesCounters {
		for name, counter := range set.Counters {
			free := counter.Value.DeepCopy()
			free.Neg()
			for _, slice := range o.pool.slices {
				for _, shared := range slice.Spec.SharedCounters {
					if shared.Name == set.CounterSet {
						free.Add(shared.Counters[name].Value)
					}
				}
				for _, d := range slice.Spec.Devices {
					if !s.used(deviceID{slice.Spec.Driver, slice.Spec.Pool.Name, d.Name}) {
						continue
					}
					for _, consumed := range d.ConsumesCounters {
						if consumed.CounterSet == set.CounterSet {
							free.Sub(consumed.Counters[name].Value)
						}
					}
				}
			}
			if free.Sign() < 0 {
				return false
			}
		}
	}
	return true
}

func toleratesDevice(tolerations []resourcev1.DeviceToleration, taint *resourcev1.DeviceTaint) bool {
	if taint.Effect != resourcev1.DeviceTaintEffectNoSchedule && taint.Effect != resourcev1.DeviceTaintEffectNoExecute {
		return true
	}
	return slices.ContainsFunc(tolerations, func(t resourcev1.DeviceToleration) bool {
		return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" || t.Key == taint.Key) &&
			(t.Operator == resourcev1.DeviceTolerationOpExists || t.Value == taint.Value)
	})
}

// satisfies reports whether a device and those that were chosen before satisfy a constraint of their claim.
func (s *search) satisfies(c *resourcev1.DeviceConstraint, r *request, o *offer) bool {
	if !concerns(c, r) {
		return true
	}
	domain, id, _ := strings.Cut(string(*c.MatchAttribute), "/")
	value, ok := attribute(o, domain, id)
	if !ok {
		return false
	}
	for _, other := range s.chosen {
		if other.by.claim != r.claim || !concerns(c, other.by) {
			continue
		}
		if has, _ := attribute(other.offer, domain, id); has != value {
			return false
		}
	}
	return true
}

// concerns reports whether a constraint lists a request, or none and so concerns all.
func concerns(c *resourcev1.DeviceConstraint, r *request) bool {
	return len(c.Requests) == 0 || slices.Contains(c.Requests, r.name) ||
		r.option != "" && slices.Contains(c.Requests, r.name+"/"+r.option)
}

// unsupported is what a claim has that is not evaluated here, "" if it has nothing of the kind.
func (ds *devices) unsupported(spec *resourcev1.ResourceClaimSpec) string {
	for _, c := range spec.Devices.Constraints {
		if c.MatchAttribute == nil {
			return "a constraint without matchAttribute"
		}
	}
	for i := range spec.Devices.Requests {
		for _, r := range alternatives(nil, &spec.Devices.Requests[i]) {
			selectors := r.Selectors
			if class := ds.classes[r.DeviceClassName]; class != nil {
				selectors = slices.Concat(selectors, class.Spec.Selectors)
			}
			for _, selector := range selectors {
				if selector.CEL == nil {
					return "a selector without CEL"
				}
				if _, err := parseSelector(selector.CEL.Expression); err != nil {
					return fmt.Sprintf("the selector %s (%v)", selector.CEL.Expression, err)
				}
			}
			if r.Capacity != nil {
				return "a request for a share of a device's capacity"
			}
			if m := r.AllocationMode; m != resourcev1.DeviceAllocationModeExactCount &&
				m != resourcev1.DeviceAllocationModeAll {
				return "the allocation mode " + string(m)
			}
		}
	}
	return ""
}
