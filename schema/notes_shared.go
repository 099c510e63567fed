package schema

import "strings"

// sharedNotes are what becomes of processes that meet on one GPU. NCCL refuses two of them on one since 2.5
// (nccl#103), however they came there: NVIDIA's device plugin gives replicas of a time-sliced GPU and instances of MIG
// to any pod, those of one GPU to workers of one job too. A process sees the first of several MIG instances alone
// (NVIDIA's MIG User Guide, "CUDA Device Enumeration").
func (s *Spec) sharedNotes() (notes []string) {
	r := &s.Resources
	const field = "spec.resources.gpuResource: "
	mig, sliced := strings.HasPrefix(r.GPUResource, "nvidia.com/mig-"), strings.HasSuffix(r.GPUResource, ".shared")
	if !mig && !sliced || r.GPU == 0 || r.DeviceClass != "" {
		return nil
	}
	if r.GPU > 1 && mig {
		notes = append(notes, field+"a process sees one MIG instance alone, whatever its worker has: set gpu to 1, "+
			"and more workers")
	}
	if r.GPU > 1 && sliced {
		notes = append(notes, field+"several shares of a time-sliced GPU are no more of it than one, and may be of "+
			"the same GPU: set gpu to 1")
	}
	several, collective := s.Workers.Max > 1 || r.GPU > 1, s.Network.Collective
	if several && collective != "gloo" && collective != "mpi" {
		notes = append(notes, field+"NCCL refuses two processes on one GPU, and nothing keeps two of this job from "+
			"parts of the same: use gloo, or whole GPUs")
	}
	return notes
}
