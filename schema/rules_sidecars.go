package schema

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/names"
)

var sidecarRules = []rule{
	{(*validation).sidecarNames, "framework target sidecars podTemplate"},
	{(*validation).sidecarMounts, "sidecars storage resources.tmp"},
	{(*validation).sidecarEnvironment, "sidecars"},
	{
		(*validation).workerPorts,
		"sidecars metrics framework target launcher bytescheduler ssh jax mpi rendezvous.store rendezvous.port " +
			"workers.master",
	},
}

// sidecarNames refuses a second container of a name in one pod.
func (r *validation) sidecarNames() {
	patched := map[string]bool{}
	for _, c := range r.patch().Spec.Containers {
		patched[c.Name] = true
	}
	seen := map[string]int{}
	for i, s := range r.Spec.Sidecars {
		at := fmt.Sprintf("spec.sidecars[%d].name", i)
		first, twice := seen[s.Name]
		switch {
		case twice:
			r.fail(at, "duplicate", "%s is the name of spec.sidecars[%d] already: choose another name", s.Name, first)
		case s.Name != RoleWorker && s.Name == r.Spec.Container():
			r.fail(at, "reserved", "%s is the name of the workers' own container: choose another name", s.Name)
		case patched[s.Name]:
			r.fail(at, "duplicate", "%s is a container of spec.podTemplate already, which holds up the end of the "+
				"job: leave it out there", s.Name)
		default:
			seen[s.Name] = i
		}
	}
}

// sidecarMounts refuses volumes that the workers do not have, and two at one place.
func (r *validation) sidecarMounts() {
	volumes := map[string]string{}
	var known []string
	for i := range r.Spec.Storage {
		v := &r.Spec.Storage[i]
		volumes[v.Name], known = v.MountPath, append(known, v.Name)
	}
	if !r.Spec.Resources.Tmp.None {
		volumes[VolumeTmp], known = "/tmp", append(known, VolumeTmp)
	}
	for i, s := range r.Spec.Sidecars {
		taken := map[string]string{}
		for k, m := range s.Mounts {
			at := fmt.Sprintf("spec.sidecars[%d].mounts[%d]", i, k)
			worker, ok := volumes[m.Volume]
			if !ok {
				r.fail(at+".volume", "requires", "the job has no volume %s: one of %s", m.Volume,
					cmp.Or(strings.Join(known, ", "), "none"))
				continue
			}
			where := path.Clean(cmp.Or(m.Path, worker))
			if where == "/" {
				r.fail(at+".path", "requires", "hides the whole image: name a directory")
			}
			if other, twice := taken[where]; twice {
				r.fail(at, "duplicate", "is at %s, where %s is already: set path", where, other)
			}
			taken[where] = m.Volume
		}
	}
}

// sidecarEnvironment refuses variables and sources that stand twice in one container.
func (r *validation) sidecarEnvironment() {
	for i, s := range r.Spec.Sidecars {
		seen := map[string]bool{}
		for k, e := range s.Env {
			if seen[e.Name] {
				r.fail(fmt.Sprintf("spec.sidecars[%d].env[%d].name", i, k), "duplicate", "%s is set twice", e.Name)
			}
			seen[e.Name] = true
		}
		r.twiceFrom(fmt.Sprintf("spec.sidecars[%d].envFrom", i), s.EnvFrom)
	}
}

// workerPorts refuses two listeners on one port of a worker's pod, whose containers share one network.
func (r *validation) workerPorts() {
	taken := map[int32]string{}
	for _, p := range r.Spec.ownPorts() {
		taken[p.number] = p.field
	}
	if m := r.Spec.Metrics; m != nil {
		if owner, twice := taken[m.Port]; twice {
			r.fail("spec.metrics.port", "duplicate", "%d is the port of %s in the same pod: choose another", m.Port,
				owner)
		}
		taken[m.Port] = "spec.metrics.port"
	}
	for i, s := range r.Spec.Sidecars {
		for _, name := range slices.Sorted(maps.Keys(s.Ports)) {
			at, port := fmt.Sprintf("spec.sidecars[%d].ports", i), s.Ports[name]
			if owner, twice := taken[port]; twice {
				r.fail(at+"."+name, "duplicate", "%d is the port of %s in the same pod: choose another", port, owner)
			}
			taken[port] = fmt.Sprintf("spec.sidecars[%d]", i)
		}
	}
}

// ownPort is a port of a worker's pod, and what says so.
type ownPort struct {
	number int32
	field  string
}

// ownPorts are the ports on which a worker's own program listens, as far as the job says so.
func (s *Spec) ownPorts() (all []ownPort) {
	numbers, fields := s.listening()
	for i := range numbers {
		all = append(all, ownPort{numbers[i], fields[i]})
	}
	if s.Framework == FrameworkTorchelastic && s.Rendezvous.Store == StoreWorker && !s.Workers.Master {
		all = append(all, ownPort{cmp.Or(s.Rendezvous.Port, names.C10dPort), "spec.rendezvous.port"})
	}
	return all
}

// probeNotes tell of a liveness probe that asks before there is anybody to answer.
func (s *Spec) probeNotes() []string {
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
		"longer than that takes", short(after))}
}
