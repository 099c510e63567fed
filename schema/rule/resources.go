package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/machine"
)

// deviceClaims refuses claims that no API server takes, and accelerators that would be asked for in two ways.
func (r *Validation) deviceClaims() {
	const at = "spec.resources.deviceClass"
	res := &r.Spec.Resources
	for i, text := range res.DeviceSelectors {
		if len(text) > 10<<10 { // resource.k8s.io/v1, CELSelectorExpressionMaxLength
			r.fail(fmt.Sprintf("spec.resources.deviceSelectors[%d]", i), "range", "%d bytes: an API server takes "+
				"10240 at most", len(text))
		}
	}
	if res.DeviceClass == "" {
		if len(res.DeviceSelectors) > 0 {
			r.fail("spec.resources.deviceSelectors", "requires", "selects devices of spec.resources.deviceClass, "+
				"which is missing")
		}
		return
	}
	resource := r.Root.Below("spec", "resources", "gpuResource")
	switch {
	case res.GPU == 0 && r.Origin.Asked.GPU == 0 && !r.Root.Below("spec", "resources", "deviceClass").Merged:
		r.fail(at, "requires", "write how many devices a worker claims, in spec.resources.gpu")
	case res.GPU > 32: // resource.k8s.io/v1, AllocationResultsMaxSize
		r.fail("spec.resources.gpu", "range", "a claim has at most 32 devices, and not %d", res.GPU)
	case r.IsSet("spec.resources.gpuResource") && resource != nil && !resource.Merged:
		r.fail("spec.resources.gpuResource", "one-of", "the accelerators are those of deviceClass %s, and not a "+
			"device plugin's: leave one of the two out", res.DeviceClass)
	}
	for i := range r.Spec.Groups {
		own := fmt.Sprintf("spec.groups[%d].resources.gpuResource", i)
		if r.Spec.Groups[i].Resources.GPU > 0 && !r.IsSet(own) {
			r.fail(own, "requires", "a group claims no devices: write the resource name of its accelerators, such as "+
				"deviceclass.resource.kubernetes.io/%s, by which Kubernetes 1.36 takes them of the same class",
				res.DeviceClass)
		}
	}
}

// nearestMachine is the name that an unknown one was most likely meant to be, "" where none is near.
func nearestMachine(name string, machines []job.Machine) string {
	var names []string
	for _, m := range append(slices.Clone(machines), machine.All()...) {
		if strings.EqualFold(m.Name, name) {
			return m.Name
		}
		names = append(names, m.Name)
	}
	return spelling.Nearest(name, names)
}

var autoscaleRules = []oldRule{
	{(*Validation).autoscale, "workers resources.cpu resources.requests.cpu launcher rendezvous"},
}

// autoscale refuses an autoscaler that could not change anything, or would not know what to compare. Its operator makes
// one of the bounds and metrics of an elastic policy (training-operator v1.9.4, pkg/controller.v1/pytorch/hpa.go).
func (r *Validation) autoscale() {
	const at = "spec.workers.autoscale"
	w, s := &r.Spec.Workers, &r.Spec
	asksCPU := s.Resources.Amount(s.Resources.Requests, job.ResourceCPU) != nil
	switch {
	case w.Autoscale == nil:
	case w.Min == w.Max:
		r.fail(at, "requires", "there are always %d workers: set workers.min below workers.max, or leave it out", w.Min)
	case s.WithoutRendezvous():
		r.fail(at, "requires", "its operator makes an autoscaler for jobs with a rendezvous alone: leave it out")
	case !asksCPU:
		r.fail(at, "requires", "a percentage is one of the CPU that workers request, and they request none: set "+
			"resources.cpu")
	}
}

var resourcesRules = []oldRule{
	{
		(*Validation).resources,
		"resources.shm resources.tmp resources.memory resources.ephemeralStorage resources.limits storage",
	},
	{(*Validation).accelerators, "resources.gpu resources.cpu resources.memory resources.requests resources.limits"},
	{
		(*Validation).requests,
		"resources.cpu resources.memory resources.ephemeralStorage resources.requests resources.limits roles groups " +
			"sidecars",
	},
}

// resources holds what is in memory and on the local disk against the limits of both.
func (r *Validation) resources() {
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
func (r *Validation) accelerators() {
	res := &r.Spec.Resources
	missing := r.unsaid("spec.resources", r.Root.Below("spec", "resources"))
	if res.GPU == 0 || len(missing) == 0 || res.Machine != "" && r.Origin.Machine == nil { // which machineType refuses
		return
	}
	r.fail("spec.resources.gpu", "requires",
		"%d of %s without %s: write how much a worker needs, or none for no limit; or name the machine type, "+
			"in spec.resources.machine, for a share of it; an Environment may say it for each accelerator, in "+
			"accelerator.each",
		res.GPU, res.GPUResource, strings.Join(missing, " and "))
}

// unsaid are those of CPU and memory of which some pods' resources say nothing.
func (r *Validation) unsaid(at string, said *structural.Node) (missing []string) {
	for _, name := range []string{"cpu", "memory"} {
		request := said.Below("requests", name)
		if said := request != nil && request.Text != job.None; !said && !r.IsSet(at+"."+name) &&
			!r.IsSet(at+".limits."+name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// requests refuses what an API server refuses: more asked for than the limit allows.
func (r *Validation) requests() {
	r.requestsOf("spec.resources", &r.Spec.Resources.Compute)
	for _, name := range r.Spec.OtherRoles() {
		role := r.Spec.Role(name)
		r.requestsOf(r.Spec.PlaceOf(name)+".resources", &role.Resources)
	}
	for i := range r.Spec.Sidecars {
		r.requestsOf(fmt.Sprintf("spec.sidecars[%d].resources", i), &r.Spec.Sidecars[i].Resources)
	}
}

func (r *Validation) requestsOf(at string, c *job.Compute) {
	for _, name := range job.ResourceNames {
		q, limit := c.Chosen(c.Requests, name), c.Chosen(c.Limits, name)
		if !q.Is() || !limit.Is() || q.Cmp(limit.Quantity) <= 0 {
			continue
		}
		own := name // of the field
		if name == job.ResourceDisk {
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

var slicesRules = []oldRule{
	{(*Validation).slices, "workers.slices workers.replicas workers.min workers.max"},
	{(*Validation).slicesEnvironment, "framework workers.slices env podTemplate roles"},
	{
		(*Validation).slicesProgram,
		"framework workers.slices command script resources.gpu resources.gpuResource",
	},
}

// slices holds their number against the workers.
func (r *Validation) slices() {
	const at = "spec.workers.slices"
	w := &r.Spec.Workers
	switch {
	case w.Slices < 2 || w.Replicas == 0:
	case w.Replicas%w.Slices != 0:
		r.fail(at, "order", "%d does not divide spec.workers.replicas %d: every slice must be whole", w.Slices,
			w.Replicas)
	case w.Min != w.Max:
		r.fail(at, "requires", "an elastic job (min %d, max %d) has one slice, since its workers come and go: leave "+
			"it out, or make them equal", w.Min, w.Max)
	}
}

// slicesEnvironment refuses variables that tegen sets.
func (r *Validation) slicesEnvironment() {
	if !r.Spec.Sliced() {
		return
	}
	check := func(at, name string) {
		if slices.Contains(job.SliceVariables, name) && (r.Spec.RanksBySlice() || name != job.SliceVariables[2]) {
			r.fail(at, "reserved", "%s is set by tegen: see spec.workers.slices", name)
		}
	}
	for i, e := range r.Spec.Env {
		check(fmt.Sprintf("spec.env[%d].name", i), e.Name)
	}
	for at, name := range r.patchedEnv() {
		check(at+".name", name)
	}
}

// slicesProgram needs a program where a shell starts it: it does not know the image's own.
func (r *Validation) slicesProgram() {
	if r.Spec.RanksBySlice() && len(r.Spec.Command) == 0 && r.Spec.Script == nil {
		r.fail("spec", "requires", "nothing to run, and of several slices a shell starts the program, which does not "+
			"know the image's entrypoint: give a command or a script")
	}
}

// spot asks for a provisioner, whose labels say which nodes those are.
func (r *Validation) spot() {
	p := &r.Spec.Placement
	if !p.Spot {
		return
	}
	row := p.SpotProvisioner()
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
