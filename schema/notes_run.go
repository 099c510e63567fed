package schema

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
)

// takenNotes tell what an environment has left of what the author wrote: the job runs, as another one.
func (j *Job) takenNotes() (notes []string) {
	asked, res := &j.asked, &j.Spec.Resources
	for _, role := range append([]string{RoleWorker}, j.Spec.otherRoles()...) {
		var left []string
		if role == RoleWorker && asked.gpu > res.GPU {
			left = append(left, fmt.Sprintf("gpu %d of %d", res.GPU, asked.gpu))
		}
		if own, said := asked.compute[role]; said {
			is := j.Spec.Role(role).Resources
			left = append(left, own.taken(&is)...)
		}
		if len(left) == 0 || role != RoleWorker && !j.Spec.has(role) {
			continue
		}
		at := "spec.resources"
		if role != RoleWorker {
			at = j.Spec.placeOf(role) + ".resources"
		}
		note := at + ": the Environment leaves " + strings.Join(left, ", ") + " to each " + role
		if role == RoleWorker && asked.gpu > 0 && res.GPU == 0 {
			note += fmt.Sprintf(", which runs with workers.processes %s: a script that needs an accelerator fails here",
				&j.Spec.Workers.Processes)
		}
		notes = append(notes, note)
	}
	return notes
}

// changeNotes tell a reconciler's users what becomes of a new image or command where no hash in a name makes a new
// object of it.
func (j *Job) changeNotes() []string {
	t := rowOf(&j.Spec)
	if !j.Spec.GitOps || j.Spec.HashedNames || t == nil {
		return nil
	}
	switch {
	case t.Carries("hashedNames"):
		return []string{"spec.hashedNames: without it the API server refuses a new image or command as long as the " +
			"old " + t.workload() + " is there, and a reconciler tries for ever: delete that one first"}
	case j.Spec.Target == TargetPods:
		return []string{"spec.target: the API server refuses a new command for pods that are there, and puts a new " +
			"image into them as they run: delete the pods first"}
	}
	return []string{"spec.target: a new image or command reaches only pods that are made from then on: delete the " +
		t.workload() + " for all to have it"}
}

// runNotes tell who meets the run before: where pods bring nothing that is new with each run, its name is that of a run
// of the same content, and a store that outlives the job remembers that it has ended.
func (j *Job) runNotes() []string {
	z := &j.Spec.Rendezvous
	kept := z.Store == StoreEtcd || z.Store == StoreExternal // a companion forgets closed runs, also in an etcd
	named := slices.Contains([]string{TargetPods, TargetElasticJob, TargetPyTorchJob}, j.Spec.Target)
	// the keys of proxies go with the last of them
	if j.Spec.Framework != FrameworkTorchelastic || !kept || !named || j.Spec.Proxied() {
		return nil
	}
	long := "for two hours" // torch's CONST_RUNID_SUBROOT_TTL, and the time to live of etcd-v2's state
	if z.Backend == BackendC10d {
		long = "as long as it runs"
	}
	remedy := "set another id"
	if j.Spec.Target == TargetElasticJob { // its controller names the run after the job
		remedy = "give the job another name"
	}
	return []string{fmt.Sprintf("spec.rendezvous.id: applied again as it is, workers meet the run that has ended, "+
		"which the store remembers %s, and end at once: %s for a second run, or use target job, whose pods bring one "+
		"of their own", long, remedy)}
}

// workload is the kind that the workers become.
func (t *Target) workload() string {
	words := strings.Fields(t.API)
	i := slices.IndexFunc(words, func(w string) bool { return unicode.IsUpper(rune(w[0])) })
	return strings.TrimRight(words[i], "s,")
}

// scriptNotes tell of a path that is started as a program: whether it can be is the image's business.
func (s *Spec) scriptNotes() []string {
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
func (s *Spec) imageNotes() (notes []string) {
	name, launcher := hubName(s.Image), s.LaunchedBy()
	if l := s.Launch(); launcher == "" && l != nil && l.Program != "" {
		launcher = path.Base(l.Program)
	}
	lacks := ""
	switch {
	case launcher == "":
	case slices.Contains(bareImages, name):
		lacks = launcher
	case slices.Contains(torchImages, name) && launcher != LauncherTorchrun && !strings.HasPrefix(launcher, "torch."):
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
