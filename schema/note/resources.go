package note

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/machine"
)

// claimNotes are what must be set up for a claim to be allocated, where it is not by default.
func claimNotes(s *job.Spec) (notes []string) {
	if (s.Resources.DeviceClass == "" || s.Resources.GPU == 0) && len(s.Resources.Claims) == 0 {
		return nil
	}
	field := "spec.resources.deviceClass: "
	if s.Resources.DeviceClass == "" {
		field = "spec.resources.claims: "
	}
	if minor := s.Minor(); minor == 32 || minor == 33 {
		notes = append(notes, field+fmt.Sprintf("the feature gate DynamicResourceAllocation and the API "+
			"resource.k8s.io/%s are off by default in %s", s.ClaimsVersion(), s.KubernetesVersion))
	}
	if s.Gang.Is(job.GangKueue) {
		notes = append(notes, field+"Kueue counts claims since 0.18, and admits no job with a DeviceClass that "+
			"deviceClassMappings of its configuration do not name")
	}
	return notes
}

// CodeNotes tell of code that may change while a job runs.
func CodeNotes(s *job.Spec) []string {
	if s.Code == nil || s.Code.Git == nil || wholeCommit().MatchString(s.Code.Git.Ref) {
		return nil
	}
	ref := s.Code.Git.Ref
	if ref == "" {
		ref = "the default branch"
	}
	return []string{fmt.Sprintf("spec.code.git.ref: %s may be another commit when a pod is made again, and workers "+
		"then run different code: set a whole commit", ref)}
}

// wholeCommit is a full name of a commit.
var wholeCommit = lazy.Regexp("^([0-9a-f]{40}|[0-9a-f]{64})$")

// datasetNotes tell of a dataset that is another one when it is fetched for another volume.
func datasetNotes(s *job.Spec) (notes []string) {
	for i := range s.Storage {
		d := s.Storage[i].Dataset
		if d == nil || !d.FromHub() {
			continue
		}
		if _, _, revision := d.Repository(); !wholeCommit().MatchString(revision) {
			notes = append(notes, fmt.Sprintf("spec.storage[%d].dataset.url: without a whole commit behind '@' it is "+
				"fetched as it is at the time: another volume may get other files", i))
		}
	}
	return notes
}

// directoryNotes say of each volume that the job writes to what nobody does for it: its directory belongs to whoever
// made it, and on a fresh one that is root.
func directoryNotes(s *job.Spec) (notes []string) {
	if s.Security.RunAsUser.Is(0) {
		return nil
	}
	checkpoints := s.CheckpointVolume()
	for i := range s.Storage {
		v := &s.Storage[i]
		writes := "the dataset cannot be fetched"
		if v.Dataset == nil {
			writes = "no checkpoint can be written"
		}
		where, otherwise := v.Directory()
		if where == "" || v.Dataset == nil && v != checkpoints {
			continue
		}
		notes = append(notes, fmt.Sprintf("spec.storage[%d]: %s must exist and be writable for %s, or %s%s",
			i, where, s.User(), writes, otherwise))
	}
	return notes
}

// machineNotes are of workers that get none of their machine's cards, and of groups with accelerators beside workers of
// a machine, whose nodes those do not get.
func machineNotes(j *job.Job) (notes []string) {
	if m := j.Origin.Machine; j.Origin.Cardless != "" {
		notes = append(notes, fmt.Sprintf("spec.resources.machine: workers with %d of the %d accelerators of %s get "+
			"no fabric, since %s", j.Spec.Resources.GPU, m.GPU, m.Name, j.Origin.Cardless))
	}
	notes = append(notes, CardNotes(j)...)
	for i := range j.Spec.Groups {
		g := &j.Spec.Groups[i]
		if j.Origin.Machine != nil && g.Resources.GPU > 0 && len(g.Tolerations) == 0 &&
			len(j.Origin.Machine.Tolerations) > 0 {
			notes = append(notes, fmt.Sprintf("spec.groups[%d].resources.gpu: spec.resources.machine is the workers' "+
				"alone, and so are its nodes, taints and fabric: write nodeSelector and tolerations of this group", i))
		}
	}
	return notes
}

// CardNotes report the devices that a row of docs/machines.md adds to a worker. A node has them only if their device
// plugin runs there. A machine of the Environment, and network.fabric in so many words, describe the place.
func CardNotes(j *job.Job) (notes []string) {
	m := j.Origin.Machine
	if m == nil || j.Origin.Asked.Fabric || m.Fabric == nil || m.Fabric.Kind != j.Spec.Network.Fabric ||
		!slices.ContainsFunc(machine.All(), func(row job.Machine) bool {
			return row.Name == m.Name && row.Fabric == m.Fabric
		}) {
		return nil
	}
	for _, name := range j.Spec.Resources.Cards() {
		if _, ofMachine := m.Fabric.Devices[name]; ofMachine {
			q := j.Spec.Resources.Devices[name]
			notes = append(notes, fmt.Sprintf("spec.resources.machine: %s adds %s: %s to each worker, and the pods "+
				"stay pending on nodes without the device plugin of that resource; set network.fabric: none if yours "+
				"have none, or network.fabric: %s to confirm it", m.Name, name, q.String(), m.Fabric.Kind))
		}
	}
	return notes
}

// rights are what an author's podTemplate gives the workers, beside what a TrainingJob has fields for.
type rights struct {
	Spec struct {
		SecurityContext struct {
			SupplementalGroups []int64 `json:"supplementalGroups"`
		} `json:"securityContext"`
		Containers []struct {
			SecurityContext struct {
				Privileged bool `json:"privileged"`
			} `json:"securityContext"`
		} `json:"containers"`
	} `json:"spec"`
}

func rightsOf(s *job.Spec) (r rights) {
	// What is malformed is refused elsewhere.
	_ = json.Unmarshal(s.PodTemplate, &r)
	return r
}

func (r *rights) privileged() bool {
	for _, c := range r.Spec.Containers {
		if c.SecurityContext.Privileged {
			return true
		}
	}
	return false
}

// AcceleratorNotes tell what accelerators of others than NVIDIA need beside their resource.
func AcceleratorNotes(j *job.Job) (notes []string) {
	s := &j.Spec
	if s.Resources.GPU == 0 {
		return nil
	}
	own := rightsOf(s)
	// AMD's device plugin gives the devices and no group (ROCm/k8s-device-plugin#39).
	if u := s.Security.RunAsUser; s.Resources.GPUResource == machine.GpuAMD && u.Number != nil && !u.Is(0) &&
		len(own.Spec.SecurityContext.SupplementalGroups) == 0 {
		notes = append(notes, fmt.Sprintf("spec.security.runAsUser: /dev/kfd and /dev/dri of AMD's nodes are for root "+
			"and their groups video and render, of which user %d is neither: write the groups' ids, in "+
			"podTemplate.spec.securityContext.supplementalGroups, or runAsUser: 0", *u.Number))
	}
	if s.Resources.GPUResource == machine.NeuronDevice && j.Origin.Machine == nil &&
		int64(s.Workers.Processes.IntVal) == s.Resources.GPU {
		notes = append(notes, fmt.Sprintf("spec.workers.processes: %d, one a device, and a device of Neuron has two "+
			"cores or more, each for a process: name the machine type, in resources.machine, or write how many",
			s.Resources.GPU))
	}
	if s.TPU() {
		notes = append(notes, tpuNotes(s, &own)...)
	}
	return notes
}

// tpuNotes are of pods for GKE's TPUs. JobSet's example of slices of TPUs and AI-Hypercomputer/xpk run privileged
// containers, and the former keeps each Job on a node pool of its own (jobset, site/content/en/docs/tasks/
// tpu_multislice.md); a slice that is one host has no others to be kept from.
func tpuNotes(s *job.Spec, own *rights) (notes []string) {
	if s.Security.Restricted && !own.privileged() {
		notes = append(notes, "spec.security.restricted: the library of TPUs pins more memory than a node lets a "+
			"process: set security: {runAsUser: image, restricted: false} and privileged: true of the container "+
			"worker in podTemplate, as Google's own manifests do")
	}
	topology := s.Placement.NodeSelector[machine.TpuTopologyLabel]
	if topology == "" && (s.Gang == nil || s.Gang.Queue == "") {
		notes = append(notes, fmt.Sprintf("spec.placement.nodeSelector: GKE has nodes of TPUs by two labels, and %s "+
			"is not here: write the sides of the slice in chips, such as 4x4", machine.TpuTopologyLabel))
	}
	exclusive := s.Workload.Annotations["alpha.jobset.sigs.k8s.io/exclusive-topology"] != "" ||
		s.Gang != nil && s.Gang.Topology != nil
	if s.Workers.Slices > 1 && s.Workers.SliceSize() > 1 && !exclusive && strings.Contains(topology, "x") {
		notes = append(notes, "spec.workers.slices: nothing keeps two slices out of one node pool, which is one slice "+
			"of TPUs: set workload.annotations[\"alpha.jobset.sigs.k8s.io/exclusive-topology\"] to "+
			"cloud.google.com/gke-nodepool")
	}
	return notes
}

// SpotNotes tell what is lost with a node that is taken back.
func SpotNotes(s *job.Spec) (notes []string) {
	row := s.Placement.SpotProvisioner()
	if !s.Placement.Spot || row == nil {
		return nil
	}
	if s.Checkpoint == nil {
		notes = append(notes, "spec.placement.spot: a node that is taken back ends its pods, and no checkpoint is "+
			"named: set checkpoint, or the training starts from the beginning")
	}
	if others := s.BesideOnSpot(row); len(others) > 0 {
		notes = append(notes, fmt.Sprintf("spec.placement.spot: %s gives spot nodes no taint, so that they take the "+
			"pods of %s too: to keep those off, set nodeSelector: {%s: %s} at %s", row.Name,
			strings.Join(others, ", "), row.Key, row.Lasting, s.PlacesOf(others)))
	}
	switch d := s.Disruption; {
	case row.AsksPods && !d.SafeToEvict:
		notes = append(notes, "spec.disruption.safeToEvict: "+row.Name+" evicts no pod that is not to be disrupted, "+
			"not even from a spot node that is taken back: its pods get no SIGTERM. Set safeToEvict: true, and then "+
			"what disruption.budget allows is evicted")
	case row.Evicts && d.Budget && s.Workers.Min == s.Workers.Replicas:
		notes = append(notes, fmt.Sprintf("spec.disruption.budget: it keeps all %d workers from being evicted, also "+
			"from a spot node that is taken back: its pods get no SIGTERM. Set workers.min below workers.replicas, or "+
			"disruption.budget: false", s.Workers.Replicas))
	}
	if grace := s.GracePeriod.Duration; grace > row.Notice {
		notes = append(notes, fmt.Sprintf("spec.gracePeriod: a spot node of %s ends %s after it is announced, and "+
			"gracePeriod is %s: what takes longer is lost", row.Name, row.Notice, grace))
	}
	return notes
}
