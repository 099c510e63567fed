package schema

import (
	"encoding/json"
	"fmt"
	"strings"
)

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

func (s *Spec) rights() (r rights) {
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

// acceleratorNotes tell what accelerators of others than NVIDIA need beside their resource.
func (j *Job) acceleratorNotes() (notes []string) {
	s := &j.Spec
	if s.Resources.GPU == 0 {
		return nil
	}
	own := s.rights()
	// AMD's device plugin gives the devices and no group (ROCm/k8s-device-plugin#39).
	if u := s.Security.RunAsUser; s.Resources.GPUResource == gpuAMD && u.Number != nil && !u.Is(0) &&
		len(own.Spec.SecurityContext.SupplementalGroups) == 0 {
		notes = append(notes, fmt.Sprintf("spec.security.runAsUser: /dev/kfd and /dev/dri of AMD's nodes are for root "+
			"and their groups video and render, of which user %d is neither: write the groups' ids, in "+
			"podTemplate.spec.securityContext.supplementalGroups, or runAsUser: 0", *u.Number))
	}
	if s.Resources.GPUResource == neuronDevice && j.machine == nil &&
		int64(s.Workers.Processes.IntVal) == s.Resources.GPU {
		notes = append(notes, fmt.Sprintf("spec.workers.processes: %d, one a device, and a device of Neuron has two "+
			"cores or more, each for a process: name the machine type, in resources.machine, or write how many",
			s.Resources.GPU))
	}
	if s.TPU() {
		notes = append(notes, s.tpuNotes(&own)...)
	}
	return notes
}

// tpuNotes are of pods for GKE's TPUs. JobSet's example of slices of TPUs and AI-Hypercomputer/xpk run privileged
// containers, and the former keeps each Job on a node pool of its own (jobset, site/content/en/docs/tasks/
// tpu_multislice.md); a slice that is one host has no others to be kept from.
func (s *Spec) tpuNotes(own *rights) (notes []string) {
	if s.Security.Restricted && !own.privileged() {
		notes = append(notes, "spec.security.restricted: the library of TPUs pins more memory than a node lets a "+
			"process: set security: {runAsUser: image, restricted: false} and privileged: true of the container "+
			"worker in podTemplate, as Google's own manifests do")
	}
	topology := s.Placement.NodeSelector[tpuTopologyLabel]
	if topology == "" && (s.Gang == nil || s.Gang.Queue == "") {
		notes = append(notes, fmt.Sprintf("spec.placement.nodeSelector: GKE has nodes of TPUs by two labels, and %s "+
			"is not here: write the sides of the slice in chips, such as 4x4", tpuTopologyLabel))
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
