package schema

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// asked is what an author's own file says, before an environment has a say.
type asked struct {
	gpu         int64
	cpu, memory resource.Quantity
	companion   bool // settings of one
}

// askedOf reads it as far as it can be read: what cannot is reported elsewhere.
func askedOf(root *node) (a asked) {
	text := func(n *node, path ...string) string {
		for _, name := range path {
			if n == nil {
				return ""
			}
			n = n.field(name)
		}
		if n == nil {
			return ""
		}
		return n.text
	}
	a.gpu, _ = strconv.ParseInt(text(root, "spec", "resources", "gpu"), 10, 64)
	for name, q := range map[string]*resource.Quantity{"cpu": &a.cpu, "memory": &a.memory} {
		if parsed, err := resource.ParseQuantity(text(root, "spec", "resources", name)); err == nil {
			*q = parsed
		}
	}
	a.companion = root.given("spec.rendezvous.companion")
	return a
}

// settle fills in the defaults that depend on more than another field: on what the target can carry, and on what the
// environment has left of the job.
func settle(job *Job, hashing bool) {
	s := &job.Spec
	if p := &s.Workers.Processes; *p == (intstr.IntOrString{}) {
		*p = intstr.FromInt32(s.defaultProcesses())
	}
	if s.Rendezvous.Store == "" {
		s.Rendezvous.Store = s.defaultStore(job.asked.companion)
	}
	if !hashing {
		s.HashedNames = job.hashesByDefault()
	}
}

// defaultProcesses is one for each accelerator: with fewer the rest would be paid for and idle. MXNet uses all of a
// worker's in one process.
func (s *Spec) defaultProcesses() int32 {
	if s.Resources.GPU < 1 || s.Framework == FrameworkMXNet {
		return 1
	}
	return int32(s.Resources.GPU)
}

// defaultStore is the store of a job that names none. A store in worker 0 ends the run with that pod, so that it is the
// companion wherever its image is named and workers have somebody to meet, or where the author says how the companion
// is to be. worker 0 needs no image but the job's own.
func (s *Spec) defaultStore(asked bool) string {
	t := rowOf(s)
	alone := s.Workers.Max == 1 && s.Rendezvous.Backend == BackendC10d && !asked // the other backends need a store in any case
	if alone || s.Images.Rendezvous == "" || s.Rendezvous.Backend == BackendEtcdV3 || t == nil || !t.Carries("rendezvous") || s.Workers.Master {
		return StoreWorker
	}
	return StoreCompanion
}

// hashesByDefault: a reconciler tries for ever to apply a change that no API server accepts, so that in its bundles a
// changed template is a new object, wherever the target can do it and the names have room for the hash.
func (j *Job) hashesByDefault() bool {
	t := rowOf(&j.Spec)
	return j.Spec.GitOps && t != nil && t.Carries("hashedNames") && j.hashFits()
}
