package note

import (
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// SharedNotes are what becomes of processes that meet on one GPU. NCCL refuses two of them on one since 2.5
// (nccl#103), however they came there: NVIDIA's device plugin gives replicas of a time-sliced GPU and instances of MIG
// to any pod, those of one GPU to workers of one job too. A process sees the first of several MIG instances alone
// (NVIDIA's MIG User Guide, "CUDA Device Enumeration").
func SharedNotes(s *job.Spec) (notes []string) {
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

// networkNotes tell of a store that others reach, and of an identity whose provider is out of reach.
func networkNotes(s *job.Spec) (notes []string) {
	n := &s.Network
	if t := target.For(s); t != nil && t.Carries("rendezvous") && !s.WithoutRendezvous() {
		for _, note := range []string{s.OpenStore(), s.HostStore()} {
			if note != "" {
				notes = append(notes, "spec.network: "+note)
			}
		}
		notes = append(notes, s.VisitedStores()...)
	}
	if !n.Policy || !n.Limits() || s.Identity == nil || s.Identity.IRSA == nil || n.Web() {
		return notes
	}
	return append(notes, fmt.Sprintf("spec.network.egress: with %s no pod reaches STS, which turns the token of "+
		"identity.irsa into credentials: add the addresses of its endpoint to allowTo, with port 443", n.Egress))
}

// proxyNotes are about keep-alives, which proxies replace, and about a command that shows no torchrun: what it starts
// goes through the proxy only by torch's variables.
func proxyNotes(s *job.Spec) (notes []string) {
	if s.Proxied() && !s.Rendezvous.KeepsAliveByDefault() {
		notes = append(notes, "spec.rendezvous.keepAlive: proxies remove a worker's node after 8s of silence, "+
			"whatever keepAlive and keepAliveAttempts allow; remove both fields")
	}
	if !s.Proxied() || s.Launcher != job.LauncherEntrypoint || len(s.Command) == 0 || s.Launch() != nil {
		return notes
	}
	return append(notes, "spec.rendezvous.proxy: the command shows no torchrun: one that it starts finds the proxy in "+
		"torch's variables, and must have none of --rdzv-endpoint, --rdzv-backend and --rdzv-conf")
}

// namespaceNotes reports a Namespace that lets all its pods do what the job needs.
func namespaceNotes(j *job.Job) []string {
	if j.EnforcedPodSecurity() != job.PodSecurityPrivileged {
		return nil
	}
	return []string{"spec.createNamespace: the pods need host access, so the namespace gets Pod Security level " +
		"privileged, for all pods in it; use a namespace for this job alone"}
}
