package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// offer is a device of a pool that a node can reach.
type offer struct {
	*resourcev1.Device
	id       deviceID
	used     bool // by a claim, or by a choice of the search
	consumes []consumption
	kind     string // describes all that the search depends on: devices of the same kind can replace each other
}

// consumption is what a device needs of a counter that the partitions of a device share.
type consumption struct {
	free   *resource.Quantity // of the counter, less what the used devices consume
	amount resource.Quantity
}

// request is a request of a claim, or one alternative of it.
type request struct {
	resourcev1.ExactDeviceRequest
	claim  *resourcev1.ResourceClaim
	name   string   // of the request
	option string   // name of the alternative, "" without alternatives
	later  int64    // fewest devices that the later requests of the claim need
	offers []*offer // that match the selectors and are free
}

// choice is a device that a search gave to a request.
type choice struct {
	*offer
	by *request
}

// search tries devices for requests until all constraints are satisfied.
type search struct {
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
		list, err := ds.wanted(c, offers, complete)
		if err != nil {
			return nil, false, err
		}
		wanted = append(wanted, list...)
	}
	s := &search{}
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

// wanted are the requests of a claim, each with its alternatives. A claim that needs more devices than the API allows
// is an error here, because a search would try all combinations in vain.
func (ds *devices) wanted(c *resourcev1.ResourceClaim, offers []*offer, complete bool) ([][]*request, error) {
	requests := c.Spec.Devices.Requests
	all := make([][]*request, len(requests))
	var least int64
	for i := len(requests) - 1; i >= 0; i-- {
		all[i] = alternatives(c, &requests[i])
		fewest := int64(resourcev1.AllocationResultsMaxSize + 1) // larger counts could overflow the sum
		for _, r := range all[i] {
			if err := ds.match(r, offers, complete); err != nil {
				return nil, fmt.Errorf("claim %s/%s, request %s: %w", c.Namespace, c.Name, r.name, err)
			}
			r.later = least
			fewest = min(fewest, r.Count)
		}
		least += fewest
	}
	if least > resourcev1.AllocationResultsMaxSize {
		return nil, fmt.Errorf("claim %s/%s: its requests need more than %d devices, the limit of a claim; use "+
			"several claims", c.Namespace, c.Name, resourcev1.AllocationResultsMaxSize)
	}
	return all, nil
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
		free := p.counters()
		for _, s := range p.slices {
			for i := range s.Spec.Devices {
				o := ds.offer(&s.Spec, &s.Spec.Devices[i], free)
				if ok, err := reaches(n, &s.Spec, o.Device); err != nil {
					return nil, false, fmt.Errorf("ResourceSlice %s: %w", s.Name, err)
				} else if ok && len(o.BindingConditions) == 0 {
					all = append(all, o)
				}
			}
		}
	}
	return all, complete, nil
}

// counters are what partitions share, by the names of the set and of the counter.
type counters map[[2]string]*resource.Quantity

func (p *pool) counters() counters {
	all := counters{}
	for _, s := range p.slices {
		for _, set := range s.Spec.SharedCounters {
			for name, counter := range set.Counters {
				all[[2]string{set.Name, name}] = new(counter.Value.DeepCopy())
			}
		}
	}
	return all
}

// offer makes an offer of a device, and takes what it consumes from the counters if a claim has it already.
func (ds *devices) offer(s *resourcev1.ResourceSliceSpec, d *resourcev1.Device, shared counters) *offer {
	o := &offer{Device: d, id: deviceID{s.Driver, s.Pool.Name, d.Name}}
	for _, set := range d.ConsumesCounters {
		for name, counter := range set.Counters {
			free := shared[[2]string{set.CounterSet, name}]
			if free == nil {
				free = &resource.Quantity{} // of a counter that does not exist
			}
			o.consumes = append(o.consumes, consumption{free, counter.Value})
		}
	}
	if o.consumes != nil {
		o.kind = fmt.Sprint(s.Driver, s.Pool.Name, d.ConsumesCounters)
	}
	if o.used = ds.taken[o.id]; o.used {
		o.consume()
	}
	return o
}

// consume takes what a device needs from the counters, and reports whether they suffice.
func (o *offer) consume() bool {
	ok := true
	for _, c := range o.consumes {
		c.free.Sub(c.amount)
		ok = ok && c.free.Sign() >= 0
	}
	return ok
}

// restore undoes consume.
func (o *offer) restore() {
	for _, c := range o.consumes {
		c.free.Add(c.amount)
	}
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
	if r.AllocationMode == resourcev1.DeviceAllocationModeAll {
		r.Count = max(1, int64(len(r.offers)))
		if !complete {
			r.offers = nil
		}
	}
	if r.Count < 1 {
		return fmt.Errorf("the count %d is less than 1; use 1 or more", r.Count)
	}
	blocks := func(taint resourcev1.DeviceTaint) bool { return !toleratesDevice(r.Tolerations, &taint) }
	r.offers = slices.DeleteFunc(slices.Clone(r.offers), func(o *offer) bool {
		return o.used && !r.admin() || slices.ContainsFunc(o.Taints, blocks)
	})
	for _, o := range r.offers {
		o.kind += fmt.Sprintf("; %p", r)
		for i := range r.claim.Spec.Devices.Constraints {
			value, _ := matched(&r.claim.Spec.Devices.Constraints[i], o)
			o.kind += fmt.Sprintf(" %T %#v", value, value)
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
		left := resourcev1.AllocationResultsMaxSize - r.later
		for _, c := range s.chosen {
			if c.by.claim == r.claim {
				left--
			}
		}
		if r.Count <= left && s.some(r, r.Count, r.offers, wanted[1:]) {
			return true
		}
	}
	return false
}

// some gives count of the offers to a request, and then devices to the other requests.
func (s *search) some(r *request, count int64, offers []*offer, others [][]*request) bool {
	if count == 0 {
		return s.all(others)
	}
	for int64(len(offers)) >= count {
		o := offers[0]
		offers = offers[1:]
		if o.used && !r.admin() {
			continue
		}
		if s.steps++; s.steps > maxSteps {
			return false
		}
		if s.choose(r, o) {
			if s.some(r, count-1, offers, others) {
				return true
			}
			s.undo()
		}
		// Devices of the same kind would fail as well: in a solution with one of them, this device could replace it.
		same := func(other *offer) bool { return other.kind == o.kind }
		if slices.ContainsFunc(offers, same) {
			offers = slices.DeleteFunc(slices.Clone(offers), same)
		}
	}
	return false
}

// choose gives a device to a request, if the request can have it beside those that were chosen before.
func (s *search) choose(r *request, o *offer) bool {
	for i := range r.claim.Spec.Devices.Constraints {
		if !s.satisfies(&r.claim.Spec.Devices.Constraints[i], r, o) {
			return false
		}
	}
	if !r.admin() {
		if !o.consume() {
			o.restore()
			return false
		}
		o.used = true
	}
	s.chosen = append(s.chosen, choice{o, r})
	return true
}

// undo takes back the last choice.
func (s *search) undo() {
	last := s.chosen[len(s.chosen)-1]
	s.chosen = s.chosen[:len(s.chosen)-1]
	if !last.by.admin() {
		last.used = false
		last.restore()
	}
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
	value, ok := matched(c, o)
	for _, other := range s.chosen {
		if other.by.claim == r.claim && concerns(c, other.by) { // then all chosen before have its value
			has, _ := matched(c, other.offer)
			return ok && has == value
		}
	}
	return ok
}

// matched is the value that a constraint compares.
func matched(c *resourcev1.DeviceConstraint, o *offer) (any, bool) {
	domain, id, _ := strings.Cut(string(*c.MatchAttribute), "/")
	return attribute(o, domain, id)
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
		list := alternatives(nil, &spec.Devices.Requests[i])
		if len(list) == 0 {
			return "a request that is neither exactly nor firstAvailable"
		}
		for _, r := range list {
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
