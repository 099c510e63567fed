package schema

import (
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
)

var resourcesRules = []rule{
	{
		(*validation).resources,
		"resources.shm resources.tmp resources.memory resources.ephemeralStorage resources.limits storage",
	},
	{(*validation).accelerators, "resources.gpu resources.cpu resources.memory resources.requests resources.limits"},
	{
		(*validation).requests,
		"resources.cpu resources.memory resources.ephemeralStorage resources.requests resources.limits roles groups " +
			"sidecars",
	},
}

// resources holds what is in memory and on the local disk against the limits of both.
func (r *validation) resources() {
	res := &r.Spec.Resources
	memory, disk, inMemory := res.MemoryLimit(), res.DiskLimit(), res.Shm.DeepCopy()
	if memory != nil && inMemory.Cmp(*memory) > 0 {
		r.fail("spec.resources.shm", "order",
			"%s is above memory %s, which it counts against: lower it, or raise memory", inMemory.String(),
			memory.String())
	}
	if disk != nil && res.Tmp.Cmp(*disk) > 0 {
		r.fail("spec.resources.tmp", "order",
			"%s is above ephemeralStorage %s, at which the pod is evicted: lower it, or raise ephemeralStorage",
			res.Tmp.String(), disk.String())
	}
	for i := range r.Spec.Storage {
		e := r.Spec.Storage[i].EmptyDir
		if e == nil || e.Size == nil {
			continue
		}
		at := fmt.Sprintf("spec.storage[%d].emptyDir.size", i)
		if e.Medium == "" {
			if disk != nil && e.Size.Cmp(*disk) > 0 {
				r.fail(at, "order",
					"%s is above spec.resources.ephemeralStorage %s, at which the pod is evicted: lower it, or raise "+
						"that",
					e.Size.String(), disk.String())
			}
			continue
		}
		if inMemory.Add(*e.Size); memory != nil && inMemory.Cmp(*memory) > 0 {
			r.fail(at, "order", "%s and shared memory are above memory %s, which they count against", e.Size.String(),
				memory.String())
		}
	}
}

// accelerators refuses workers whose accelerators would wait for a CPU and memory that nobody has thought of.
func (r *validation) accelerators() {
	res := &r.Spec.Resources
	missing := r.unsaid("spec.resources", r.Root.Below("spec", "resources"))
	if res.GPU == 0 || len(missing) == 0 || res.Machine != "" && r.machine == nil { // which machineType refuses
		return
	}
	r.fail("spec.resources.gpu", "requires",
		"%d of %s without %s: write how much a worker needs, or none for no limit; or name the machine type, "+
			"in spec.resources.machine, for a share of it; an Environment may say it for each accelerator, in "+
			"accelerator.each",
		res.GPU, res.GPUResource, strings.Join(missing, " and "))
}

// unsaid are those of CPU and memory of which some pods' resources say nothing.
func (r *validation) unsaid(at string, said *structural.Node) (missing []string) {
	for _, name := range []string{"cpu", "memory"} {
		request := said.Below("requests", name)
		if said := request != nil && request.Text != None; !said && !r.IsSet(at+"."+name) &&
			!r.IsSet(at+".limits."+name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// requests refuses what an API server refuses: more asked for than the limit allows.
func (r *validation) requests() {
	r.requestsOf("spec.resources", &r.Spec.Resources.Compute)
	for _, name := range r.Spec.otherRoles() {
		role := r.Spec.Role(name)
		r.requestsOf(r.Spec.placeOf(name)+".resources", &role.Resources)
	}
	for i := range r.Spec.Sidecars {
		r.requestsOf(fmt.Sprintf("spec.sidecars[%d].resources", i), &r.Spec.Sidecars[i].Resources)
	}
}

func (r *validation) requestsOf(at string, c *Compute) {
	for _, name := range resourceNames {
		q, limit := c.chosen(c.Requests, name), c.chosen(c.Limits, name)
		if !q.is() || !limit.is() || q.Cmp(limit.Quantity) <= 0 {
			continue
		}
		own := name // of the field
		if name == resourceDisk {
			own = "ephemeralStorage"
		}
		field := at + ".requests." + own
		if !r.IsSet(field) {
			field = at + ".limits." + own
		}
		r.fail(field, "order", "%s are requested, and the limit is %s: no pod may ask for more than its limit",
			q.String(), limit.String())
	}
}
