package note

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

// workingDirNote is about where ByteScheduler's own images start (bytescheduler/docker on its branch of
// bytedance/byteps). All users of Horovod's may enter theirs, /horovod/examples, and /examples before.
func workingDirNote(s *job.Spec) string {
	if s.Framework != job.FrameworkByteScheduler || !s.Horovodrun() || s.Security.RunAsUser.Number == nil ||
		s.Security.RunAsUser.Is(0) {
		return ""
	}
	return fmt.Sprintf("ByteScheduler's own Dockerfiles end in a working directory under /root, which user %d cannot "+
		"enter, and the one for PyTorch installs a Horovod that has no horovodrun: docs/images.md says what to change",
		*s.Security.RunAsUser.Number)
}

// jaxNotes tell what jax.distributed.initialize() does not find by itself (jax 0.10.2, jax/_src/distributed.py): it
// asks Kubernetes for it, for which these pods have neither a token nor rights.
func jaxNotes(s *job.Spec) []string {
	if s.Framework != job.FrameworkJAX || s.TPU() || s.Workers.Replicas < 2 {
		return nil
	}
	return []string{"spec.framework: jax.distributed.initialize() reads the coordinator's address alone: give it " +
		"num_processes=int(os.environ[\"JAX_NUM_PROCESSES\"]) and process_id=int(os.environ[\"JAX_PROCESS_ID\"])"}
}

// waits finds words by which a launcher's line waits for its workers.
var waits = lazy.Regexp(`\b(sleep|until|while|wait)\b`)

// openMPIs are variables of Open MPI's own.
var openMPIs = lazy.Regexp(`^(OMPI|PRTE|PMIX)_`)

// ImageSSHNotes tell what an image's own sshd and a launcher that is the author's do otherwise than tegen's.
func ImageSSHNotes(s *job.Spec) (notes []string) {
	if s.Framework != job.FrameworkMPI || !s.ImageSSH() {
		return nil
	}
	line := strings.Join(slices.Concat(s.Command, s.Args), " ")
	if s.MPI.LauncherStart == job.LauncherTogether && !s.Gang.Active() && !waits().MatchString(line) {
		notes = append(notes, "spec.mpi.launcherStart: the launcher may start minutes before its workers, "+
			"whose images are pulled, and each mpirun that reaches none counts against failure.restarts: set ready")
	}
	if s.MPI.Implementation != job.MPIOpen { // hydra hands all on
		return notes
	}
	for _, e := range s.Env {
		if !strings.Contains(line, e.Name) && !openMPIs().MatchString(e.Name) {
			return append(notes, fmt.Sprintf("spec.env: %s is the launcher's: Open MPI hands on to the processes "+
				"what mpirun's -x names, and what starts with OMPI_", e.Name))
		}
	}
	return notes
}

// taintNote is what an author of a cluster whose nodes all have a taint should know. Taints of nodes with accelerators
// are none of the other pods' business, but of groups that take some.
func taintNote(j *job.Job) string {
	s := &j.Spec
	own := slices.DeleteFunc(slices.Clone(s.Placement.Tolerations),
		func(t job.Toleration) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })
	if len(own) == 0 {
		return ""
	}
	shared := slices.ContainsFunc(own,
		func(t job.Toleration) bool { return t.Key != "" && !ofAccelerators().MatchString(t.Key) })
	var bare []string
	for _, name := range s.OtherRoles() {
		role, g := s.Role(name), s.Group(name)
		if !s.Has(name) || len(role.Tolerations) > 0 || len(role.PodTemplate) > 0 {
			continue
		}
		switch {
		case g != nil && g.Resources.GPU > 0 && j.Origin.Machine != nil: // machineNotes tell of it
		case s.Resources.GPU == 0, g != nil && (shared || g.Resources.GPU > 0):
			bare = append(bare, s.PlaceOf(name)+".tolerations")
		}
	}
	if len(bare) == 0 {
		return ""
	}
	return "they are the workers' alone: where every node has such a taint, set " +
		strings.Join(bare, ", ") + " too"
}

// ofAccelerators are the keys of taints that keep pods off nodes that cost more, or are taken back.
var ofAccelerators = lazy.Regexp(`gpu|tpu|neuron|gaudi|accelerator|spot|scalesetpriority|capacity`)

// EnvNotes tell what variables have no value of their own, or another's.
func EnvNotes(s *job.Spec) (notes []string) {
	for i, e := range s.Env {
		if e.Resource == "" {
			continue
		}
		kind, name, _ := strings.Cut(e.Resource, ".")
		_, set := s.Resources.Limited()[name]
		if kind == "requests" {
			_, set = s.Resources.Requested()[name]
		}
		if !set {
			notes = append(notes, fmt.Sprintf("spec.env[%d].resource: a worker has no %s, so that %s holds what "+
				"Kubernetes puts there: all that the node has for a limit, 0 for a request", i, e.Resource, e.Name))
		}
	}
	prefixes := map[string]int{}
	for i, e := range s.EnvFrom {
		first, again := prefixes[e.Prefix]
		if !again {
			prefixes[e.Prefix] = i
			continue
		}
		notes = append(notes, fmt.Sprintf("spec.envFrom[%d]: of a key that spec.envFrom[%d] has too, this one counts, "+
			"and nothing tells of it: set a prefix to keep both", i, first))
	}
	return notes
}

// AloneNotes tell of what launchedAlone refuses, where a shell starts it or the author wants no rendezvous: a script
// may well have one pod start it.
func AloneNotes(s *job.Spec) []string {
	words := slices.Concat(s.Command, s.Args)
	if s.Framework != job.FrameworkTorchelastic || s.LaunchedBy() != "" || s.Workers.Max < 2 || len(s.Command) == 0 ||
		s.Volcano.Plugins.MPI != nil || s.Volcano.Plugins.SSH != nil { // which name the others' hosts, with keys
		return nil
	}
	at, m := job.LaunchIn(words)
	if m == nil {
		return nil
	}
	name := strings.Join(strings.Fields(m[1]+m[2]), " ")
	text := strings.Join(words, " ")
	alone := job.StartsHosts(name) || oneHost().MatchString(name) && !namesHosts().MatchString(text) ||
		s.Unlaunched() && s.LaunchesAlone()
	if !alone || strings.Contains(text, "JOB_COMPLETION_INDEX") {
		return nil
	}
	note := fmt.Sprintf("%s: each of %d workers starts %s for itself, which knows nothing of the others",
		job.WordPath(s.Command, at), s.Workers.Max, name)
	switch {
	case job.OwnersOf[name] != "":
		note += "; for one training of all of them, " + job.LeaveTo(name)
	case oneHost().MatchString(name):
		note += fmt.Sprintf("; for one training of all of them, set launcher: torchrun, and leave %s and its options "+
			"out", name)
	default: // torchrun itself
		note += "; for one training of all of them, set launcher: entrypoint"
	}
	return []string{note}
}

// oneHost matches launchers of PyTorch's programs that start the processes of their own host, unless an option names
// the other hosts.
var oneHost = lazy.Regexp(`^(deepspeed|deepspeed\.launcher\.runner|accelerate launch|` +
	`accelerate\.commands\.launch|colossalai run|composer)$`)

// namesHosts matches their options by which each host learns of the others. A configuration file may hold them.
var namesHosts = lazy.Regexp(`(^|\s)--(machine[-_]rank|main[-_]process[-_]ip|config[-_]file|node[-_]rank)\b`)

// probeNotes tell of a liveness probe that asks before there is anybody to answer.
func probeNotes(s *job.Spec) []string {
	if s.Probes == nil || s.Probes.Liveness == nil || s.Probes.Startup != nil {
		return nil
	}
	p, period, delay := s.Probes.Liveness, 10*time.Second, time.Duration(0)
	if p.Period != nil {
		period = p.Period.Duration
	}
	if p.Delay != nil {
		delay = p.Delay.Duration
	}
	after := metav1.Duration{Duration: delay + period*time.Duration(cmp.Or(p.Failures, 3))}
	return []string{fmt.Sprintf("spec.probes.liveness: a worker that does not answer within about %s of its start is "+
		"ended, also while it loads its model or waits for the others: set probes.startup, with failures times period "+
		"longer than that takes", job.Short(after))}
}
