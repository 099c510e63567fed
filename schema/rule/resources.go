package rule

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/machine"
	"github.com/tegen-dev/tegen/schema/part"
)

var resourcesRules = []Rule{
	part.Of2(deviceSelectors, deviceClass, selectors),
	part.Of3(claimedDevices, deviceClass, part.GPU, part.AskedGPU),
	part.Of2(groupDevices, deviceClass, part.Groups),
	part.Of4(autoscale, autoscaler, part.Counts, part.WithoutRendezvous, requestsCPU),
	part.Of3(sharedMemory, sharedSize, memoryLimit, part.Storage),
	part.Of3(localDisk, tmpSize, diskLimit, part.Storage),
	part.Of4(accelerators, part.GPU, part.GPUResource.Optional(), part.MachineType, part.Machine),
	part.Of1(requests, computes),
	part.Of2(wholeSlices, workerSlices, part.Counts),
	part.Of3(slicesProgram, ranksBySlice, part.Command, part.Script),
	part.Of1(spot, part.Placement),
}

var (
	deviceClass = part.OfSpec("resources.deviceClass", func(s *job.Spec) string { return s.Resources.DeviceClass })
	selectors   = part.OfSpec("resources.deviceSelectors", func(s *job.Spec) []string {
		return s.Resources.DeviceSelectors
	})
	autoscaler   = part.OfSpec("workers.autoscale", func(s *job.Spec) *job.Autoscale { return s.Workers.Autoscale })
	sharedSize   = part.OfSpec("resources.shm", func(s *job.Spec) job.Amount { return s.Resources.Shm })
	tmpSize      = part.OfSpec("resources.tmp", func(s *job.Spec) job.Amount { return s.Resources.Tmp })
	workerSlices = part.OfSpec("workers.slices", func(s *job.Spec) int32 { return s.Workers.Slices })
	ranksBySlice = part.OfSpec("framework workers.slices resources.gpu resources.gpuResource", (*job.Spec).RanksBySlice)
	requestsCPU  = part.OfSpec("resources.cpu resources.requests.cpu", func(s *job.Spec) bool {
		return s.Resources.Amount(s.Resources.Requests, job.ResourceCPU) != nil
	})
	memoryLimit = part.OfSpec("resources.memory resources.limits.memory",
		func(s *job.Spec) *resource.Quantity { return s.Resources.MemoryLimit() })
	diskLimit = part.OfSpec("resources.ephemeralStorage resources.limits.ephemeralStorage",
		func(s *job.Spec) *resource.Quantity { return s.Resources.DiskLimit() })
)

// computes is what containers request and are limited to, by the paths of these settings.
var computes = part.OfSpec("resources.cpu resources.memory resources.ephemeralStorage resources.requests "+
	"resources.limits roles groups sidecars", func(s *job.Spec) map[string]job.Compute {
	all := map[string]job.Compute{"spec.resources": s.Resources.Compute}
	for _, name := range s.OtherRoles() {
		all[s.PlaceOf(name)+".resources"] = s.Role(name).Resources
	}
	for i := range s.Sidecars {
		all[fmt.Sprintf("spec.sidecars[%d].resources", i)] = s.Sidecars[i].Resources
	}
	return all
})

// deviceSelectors refuses selectors that no API server takes, or that have no class to select from.
func deviceSelectors(p *Problems, class string, selectors []string) {
	const at = "spec.resources.deviceSelectors"
	for i, text := range selectors {
		if len(text) > 10<<10 { // resource.k8s.io/v1, CELSelectorExpressionMaxLength
			p.fail(fmt.Sprintf("%s[%d]", at, i), "range", "%d bytes: an API server takes 10240 at most", len(text))
		}
	}
	if class == "" && len(selectors) > 0 {
		p.fail(at, "requires", "selects devices of spec.resources.deviceClass, which is missing")
	}
}

// claimedDevices refuses claims that no API server takes, and accelerators that would be asked for in two ways.
func claimedDevices(p *Problems, class string, gpu, asked int64) {
	const at, resourceAt = "spec.resources.deviceClass", "spec.resources.gpuResource"
	switch {
	case class == "":
	case gpu == 0 && asked == 0 && !p.Merged(at):
		p.fail(at, "requires", "write how many devices a worker claims, in spec.resources.gpu")
	case gpu > 32: // resource.k8s.io/v1, AllocationResultsMaxSize
		p.fail("spec.resources.gpu", "range", "a claim has at most 32 devices, and not %d", gpu)
	case p.IsSet(resourceAt) && !p.Merged(resourceAt):
		p.fail(resourceAt, "one-of", "the accelerators are those of deviceClass %s, and not a device plugin's: leave "+
			"one of the two out", class)
	}
}

// groupDevices asks for a resource name in groups, which claim no devices.
func groupDevices(p *Problems, class string, groups []job.Group) {
	for i := range groups {
		own := fmt.Sprintf("spec.groups[%d].resources.gpuResource", i)
		if class != "" && groups[i].Resources.GPU > 0 && !p.IsSet(own) {
			p.fail(own, "requires", "a group claims no devices: write the resource name of its accelerators, such as "+
				"deviceclass.resource.kubernetes.io/%s, by which Kubernetes 1.36 takes them of the same class", class)
		}
	}
}

// nearestMachine is the name that an unknown one was most likely meant to be, "" where none is near.
func nearestMachine(name string) string {
	var names []string
	for _, m := range machine.All() {
		if strings.EqualFold(m.Name, name) {
			return m.Name
		}
		names = append(names, m.Name)
	}
	return spelling.Nearest(name, names)
}

// autoscale refuses an autoscaler that could not change anything, or would not know what to compare. Its operator makes
// one of the bounds and metrics of an elastic policy (training-operator v1.9.4, pkg/controller.v1/pytorch/hpa.go).
func autoscale(p *Problems, a *job.Autoscale, w part.Count, withoutRendezvous, requestsCPU bool) {
	const at = "spec.workers.autoscale"
	switch {
	case a == nil:
	case w.Min == w.Max:
		p.fail(at, "requires", "there are always %d workers: set workers.min below workers.max, or leave it out", w.Min)
	case withoutRendezvous:
		p.fail(at, "requires", "its operator makes an autoscaler for jobs with a rendezvous alone: leave it out")
	case !requestsCPU:
		p.fail(at, "requires", "a percentage is one of the CPU that workers request, and they request none: set "+
			"resources.cpu")
	}
}

// sharedMemory checks what is in memory against its limit.
func sharedMemory(p *Problems, shm job.Amount, limit *resource.Quantity, storage []job.Storage) {
	if limit == nil {
		return
	}
	used := shm.DeepCopy()
	if used.Cmp(*limit) > 0 {
		p.fail("spec.resources.shm", "order", "%s is above memory %s, which it counts against: lower it, or raise "+
			"memory", &used, limit)
	}
	for i := range storage {
		e := storage[i].EmptyDir
		if e == nil || e.Size == nil || e.Medium == "" {
			continue
		}
		if used.Add(*e.Size); used.Cmp(*limit) > 0 {
			p.fail(fmt.Sprintf("spec.storage[%d].emptyDir.size", i), "order",
				"%s and shared memory are above memory %s, which they count against", e.Size, limit)
		}
	}
}

// localDisk checks what is on the local disk against its limit.
func localDisk(p *Problems, tmp job.Amount, limit *resource.Quantity, storage []job.Storage) {
	if limit == nil {
		return
	}
	if tmp.Cmp(*limit) > 0 {
		p.fail("spec.resources.tmp", "order", "%s is above ephemeralStorage %s, at which the pod is evicted: lower "+
			"it, or raise ephemeralStorage", &tmp.Quantity, limit)
	}
	for i := range storage {
		e := storage[i].EmptyDir
		if e != nil && e.Size != nil && e.Medium == "" && e.Size.Cmp(*limit) > 0 {
			p.fail(fmt.Sprintf("spec.storage[%d].emptyDir.size", i), "order", "%s is above "+
				"spec.resources.ephemeralStorage %s, at which the pod is evicted: lower it, or raise that", e.Size,
				limit)
		}
	}
}

// accelerators refuses workers whose accelerators would wait for a CPU and memory that nobody has thought of.
func accelerators(p *Problems, gpu int64, gpuResource, machineType string, m *job.Machine) {
	if gpu == 0 || machineType != "" && m == nil { // which knownMachine refuses
		return
	}
	if missing := unsaid(p, "spec.resources"); len(missing) > 0 {
		all := fmt.Sprintf("%d accelerators", gpu)
		if p.Knows(part.GPUResource) {
			all = fmt.Sprintf("%d of %s", gpu, gpuResource)
		}
		p.fail("spec.resources.gpu", "requires", "%s without %s: write how much a worker needs, or none for no "+
			"limit; or name the machine type, in spec.resources.machine, for a share of it; an Environment may say it "+
			"for each accelerator, in accelerator.each", all, strings.Join(missing, " and "))
	}
}

// unsaid are those of CPU and memory of which some pods' resources say nothing.
func unsaid(p *Problems, at string) (missing []string) {
	for _, name := range []string{"cpu", "memory"} {
		request := p.Node(at + ".requests." + name)
		if said := request != nil && request.Text != job.None; !said && !p.IsSet(at+"."+name) &&
			!p.IsSet(at+".limits."+name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// requests refuses what an API server refuses: more asked for than the limit allows.
func requests(p *Problems, all map[string]job.Compute) {
	for at, c := range all {
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
			if !p.IsSet(field) {
				field = at + ".limits." + own
			}
			p.fail(field, "order", "%s are requested, and the limit is %s: no pod may ask for more than its limit",
				&q.Quantity, &limit.Quantity)
		}
	}
}

// wholeSlices checks the number of slices against the workers.
func wholeSlices(p *Problems, n int32, w part.Count) {
	const at = "spec.workers.slices"
	switch {
	case n < 2 || w.Replicas == 0:
	case w.Replicas%n != 0:
		p.fail(at, "order", "%d does not divide spec.workers.replicas %d: every slice must be whole", n, w.Replicas)
	case w.Min != w.Max:
		p.fail(at, "requires", "an elastic job (min %d, max %d) has one slice, since its workers come and go: leave "+
			"it out, or make them equal", w.Min, w.Max)
	}
}

// slicesEnvironment refuses variables that tegen sets.
func slicesEnvironment(p *Problems, n int32, ranksBySlice bool, variables map[string]string) {
	for at, name := range variables {
		if n > 1 && slices.Contains(job.SliceVariables, name) && (ranksBySlice || name != job.SliceVariables[2]) {
			p.fail(at, "reserved", "%s is set by tegen: see spec.workers.slices", name)
		}
	}
}

// slicesProgram needs a program where a shell starts it: it does not know the image's own.
func slicesProgram(p *Problems, ranksBySlice bool, command []string, script *job.Script) {
	if ranksBySlice && len(command) == 0 && script == nil {
		p.fail("spec", "requires", "nothing to run, and of several slices a shell starts the program, which does not "+
			"know the image's entrypoint: give a command or a script")
	}
}

// spot asks for a provisioner, whose labels say which nodes those are.
func spot(p *Problems, place *job.Placement) {
	if !place.Spot {
		return
	}
	row := place.SpotProvisioner()
	if row == nil {
		p.fail("spec.placement.spot", "requires", "nothing says which nodes those are: set placement.provisioner, "+
			"here or in an Environment's defaults, or select the nodes by placement.nodeSelector")
		return
	}
	if own := place.NodeSelector[row.Key]; own != row.Value {
		p.fail("spec.placement.nodeSelector."+row.Key, "one-of", "%q asks for other nodes than placement.spot: leave "+
			"one of the two out", own)
	}
}
