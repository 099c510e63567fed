package note

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// accountNotes tell of bare pods whose account is rendered with them: Flux tries all objects before it applies any, and
// the API server refuses a pod whose account is not there yet.
func accountNotes(j *job.Job) []string {
	s := &j.Spec
	if !s.GitOps || s.Target != job.TargetPods || !s.OwnAccount() || s.Identity.ServiceAccount != "" {
		return nil
	}
	return []string{"spec.identity: Flux does not apply pods together with their ServiceAccount, unless its " +
		"kustomize-controller runs with --custom-apply-stage-kinds=/ServiceAccount; or name an account that exists " +
		"in identity.serviceAccount, or use target job"}
}

// unseen is how long the MPI operator may be away, for the start of another one at least: it takes a launcher's Job
// that is gone before it saw the Job end for one that was never made, and makes it (syncHandler in pkg/controller).
const unseen = time.Hour

// lifetimeNotes tell an author whose time to live is not rendered, or runs the training again.
func lifetimeNotes(j *job.Job) []string {
	ttl := &j.Spec.TTLAfterFinished
	switch {
	case !j.Origin.Asked.Lifetime:
		return nil
	case !j.Spec.GitOps && j.Spec.Target == job.TargetMPIJob && ttl.Duration.Duration < unseen:
		return []string{fmt.Sprintf("spec.ttlAfterFinished: %s deletes the launcher's Job, and where the MPI operator "+
			"has not seen its end by then, as when it was being replaced, it starts the training again: set 1h or more",
			job.Short(ttl.Duration))}
	case !j.Spec.GitOps:
		return nil
	}
	return []string{"spec.ttlAfterFinished: is not rendered for git, since a reconciler runs again what deleted " +
		"itself; gitops: false renders it for kubectl apply"}
}

// TakenNotes tell what an environment has left of what the author wrote: the job runs, as another one.
func TakenNotes(j *job.Job) (notes []string) {
	asked, res := &j.Origin.Asked, &j.Spec.Resources
	for _, role := range append([]string{job.RoleWorker}, j.Spec.OtherRoles()...) {
		var left []string
		if role == job.RoleWorker && asked.GPU > res.GPU {
			left = append(left, fmt.Sprintf("gpu %d of %d", res.GPU, asked.GPU))
		}
		if own, said := asked.Compute[role]; said {
			is := j.Spec.Role(role).Resources
			left = append(left, own.Taken(&is)...)
		}
		if len(left) == 0 || role != job.RoleWorker && !j.Spec.Has(role) {
			continue
		}
		at := "spec.resources"
		if role != job.RoleWorker {
			at = j.Spec.PlaceOf(role) + ".resources"
		}
		note := at + ": the Environment leaves " + strings.Join(left, ", ") + " to each " + role
		if role == job.RoleWorker && asked.GPU > 0 && res.GPU == 0 {
			note += fmt.Sprintf(", which runs with workers.processes %s: a script that needs an accelerator fails here",
				&j.Spec.Workers.Processes)
		}
		notes = append(notes, note)
	}
	return notes
}

// changeNotes tell a reconciler's users what becomes of a new image or command where no hash in a name makes a new
// object of it.
func changeNotes(j *job.Job) []string {
	t := target.For(&j.Spec)
	if !j.Spec.GitOps || j.Spec.HashedNames || t == nil {
		return nil
	}
	switch {
	case t.Carries("hashedNames"):
		return []string{"spec.hashedNames: without it the API server refuses a new image or command as long as the " +
			"old " + t.Workload() + " is there, and a reconciler tries for ever: delete that one first"}
	case j.Spec.Target == job.TargetPods:
		return []string{"spec.target: the API server refuses a new command for pods that are there, and puts a new " +
			"image into them as they run: delete the pods first"}
	}
	return []string{"spec.target: a new image or command reaches only pods that are made from then on: delete the " +
		t.Workload() + " for all to have it"}
}

// runNotes tell who meets the run before: where pods bring nothing that is new with each run, its name is that of a run
// of the same content, and a store that outlives the job remembers that it has ended.
func runNotes(j *job.Job) []string {
	z := &j.Spec.Rendezvous
	kept := z.Store == job.StoreEtcd || z.Store == job.StoreExternal // a companion forgets closed runs, also in an etcd
	named := slices.Contains([]string{job.TargetPods, job.TargetElasticJob, job.TargetPyTorchJob}, j.Spec.Target)
	// the keys of proxies go with the last of them
	if j.Spec.Framework != job.FrameworkTorchelastic || !kept || !named || j.Spec.Proxied() {
		return nil
	}
	long := "for two hours" // torch's CONST_RUNID_SUBROOT_TTL, and the time to live of etcd-v2's state
	if z.Backend == job.BackendC10d {
		long = "as long as it runs"
	}
	remedy := "set another id"
	if j.Spec.Target == job.TargetElasticJob { // its controller names the run after the job
		remedy = "give the job another name"
	}
	return []string{fmt.Sprintf("spec.rendezvous.id: applied again as it is, workers meet the run that has ended, "+
		"which the store remembers %s, and end at once: %s for a second run, or use target job, whose pods bring one "+
		"of their own", long, remedy)}
}

// scriptNotes tell of a path that is started as a program: whether it can be is the image's business.
func scriptNotes(s *job.Spec) []string {
	if len(s.Command) == 0 || !strings.Contains(s.Command[0], "/") || !strings.HasSuffix(s.Command[0], ".py") {
		return nil
	}
	return []string{fmt.Sprintf("spec.command[0]: %s is started as a program: it must be executable and name Python "+
		"in a first line of #!, or write [python, %s]", s.Command[0], s.Command[0])}
}

// Images of Docker Hub that lack what is started in them, each by what its own Dockerfile installs.
var (
	// Bare systems and interpreters: no package of Python is in them.
	bareImages = []string{"alpine", "busybox", "debian", "nvidia/cuda", "python", "ubuntu"}
	// torch and what belongs to it, neither Horovod nor DLRover nor ssh (pytorch/pytorch, Dockerfile).
	torchImages = []string{"pytorch/pytorch"}
	// horovod/horovod and horovod/horovod-cpu install openssh-server, since Horovod 0.16 and earlier; this one does not
	// (horovod/horovod, docker/horovod-ray/Dockerfile of v0.28.1).
	withoutSSHD = []string{"horovod/horovod-ray"}
)

// hubName is the name of an image of Docker Hub without its tag, "" for another registry's.
func hubName(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name = name[:i]
	}
	name = strings.TrimPrefix(strings.TrimPrefix(name, "index."), "docker.io/")
	if host, _, ok := strings.Cut(name, "/"); ok && strings.ContainsAny(host, ".:") {
		return ""
	}
	return strings.TrimPrefix(name, "library/")
}

// imageNotes tell of an image that is known to lack what is started in it. One that was built on it under the same name
// would have it, so that this is no error.
func imageNotes(s *job.Spec) (notes []string) {
	name, launcher := hubName(s.Image), s.LaunchedBy()
	if l := s.Launch(); launcher == "" && l != nil && l.Program != "" {
		launcher = path.Base(l.Program)
	}
	lacks := ""
	switch {
	case launcher == "":
	case slices.Contains(bareImages, name):
		lacks = launcher
	case slices.Contains(torchImages, name) && launcher != job.LauncherTorchrun &&
		!strings.HasPrefix(launcher, "torch."):
		lacks = launcher
	case slices.Contains(withoutSSHD, name) && s.OverSSH():
		lacks = "sshd"
	}
	if lacks == "" {
		return nil
	}
	return []string{fmt.Sprintf("spec.image: %s comes without %s: build an image on it that has it (docs/images.md)",
		s.Image, lacks)}
}

// autoscaleNotes tell who else writes the number of workers.
func autoscaleNotes(j *job.Job) []string {
	if j.Spec.Workers.Autoscale == nil || !j.Spec.GitOps {
		return nil
	}
	return []string{fmt.Sprintf("spec.workers.autoscale: the autoscaler writes the number of workers, and a "+
		"reconciler writes %d back: have it ignore /spec/pytorchReplicaSpecs/Worker/replicas", j.Spec.Workers.Replicas)}
}
