package schema

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/environment"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/target"
)

// completion is a default that depends on other fields.
type completion struct {
	field string // that it is the default of
	of    string // the fields that it is made of, if a mistake in one of them is to count as a mistake in the default
	fill  func(*completing)
}

// completing is a job with its environment, which may be nil, and what was written of it.
type completing struct {
	*job.Job
	root *structural.Node
	env  *environment.Environment
}

// absent says whether nobody wrote a field.
func (c *completing) absent(field string) bool { return !c.root.IsSet("spec." + field) }

// completions are the defaults that depend on other fields, in the order in which they are filled in: once, after
// defaults.cue and the Environment. A row can read what the rows above it fill in. Rows without a function are filled
// in by the row above, or by Environment.Furnish, which merges the share of a machine as an Environment's own values
// are merged. Two things happen before, on the tree, because CUE would fill in a default otherwise: Furnish, and
// noneBeside, which sets an amount to none if only its request or its limit is written.
var completions = []completion{
	{"images.rendezvous", "", (*completing).rendezvousImage},
	{"groups", "", func(c *completing) { c.Spec.FillGroups() }},
	{"storage", "", (*completing).sources},
	{"network.fabric", "resources.machine resources.gpu workers.max", (*completing).machine},
	{"resources.devices", "resources.machine resources.gpu network.fabric workers.max", nil},
	{"resources.gpuResource", "resources.machine", nil},
	{"resources.cpu", "resources.machine resources.gpu", nil},
	{"resources.memory", "resources.machine resources.gpu", nil},
	{"workers.processes", "resources.gpu framework workers.master launcher", (*completing).processes},
	{
		"rendezvous.store",
		"framework target launcher workers.max workers.master rendezvous.backend rendezvous.companion " +
			"images.rendezvous",
		(*completing).store,
	},
	{
		"rendezvous.proxy",
		"framework target launcher workers.max workers.master rendezvous.backend rendezvous.store rendezvous.companion",
		(*completing).proxies,
	},
	{"failure.restarts", "failure.restartAll", (*completing).restarts},
	{"failure.ignoreDisruptions", "failure.inPlace", (*completing).disruptions},
	{"security.runAsGroup", "security.runAsUser", (*completing).groupsOfUser},
	{"security.fsGroup", "security.runAsUser", nil},
	{"hashedNames", "gitops framework target", (*completing).hashes},
	{"resources.shm", "", (*completing).shm},
	{"gang.topology.slice", "", func(c *completing) { c.Spec.SliceTopology() }},
	{"gracePeriod", "checkpoint", func(c *completing) { c.Spec.GraceToSave(c.root) }},
	{"placement.nodeSelector", "", func(c *completing) { c.Spec.Placement.OnSpot() }},
	{"storage.efs.provision", "", func(c *completing) { makeAccessPoints(c.Job) }},
}

// complete fills in all of them.
func complete(j *job.Job, root *structural.Node, env *environment.Environment) {
	c := &completing{j, root, env}
	for _, row := range completions {
		if row.fill != nil {
			row.fill(c)
		}
	}
}

// derivedParts are the fields whose defaults are made of others, those that defaults.cue says to equal another among
// them, and the fields that they are made of.
var derivedParts = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for _, row := range completions {
		if row.of != "" {
			all[row.field] = strings.Fields(row.of)
		}
	}
	for _, section := range definition.Job().Field("spec").Schema.Fields {
		for _, f := range section.Schema.Fields {
			if len(f.Same) > 0 && f.Same[0] == "spec" {
				all[section.Name+"."+f.Name] = []string{strings.Join(f.Same[1:], ".")}
			}
		}
	}
	return all
})

// derive adds the parts that nobody has set and whose default comes from an invalid part: it is not known either.
func derive(p part.Set, root *structural.Node) {
	for more := true; more && len(p) > 0; {
		more = false
		for part, sources := range derivedParts() {
			if !p.Touch(part) && !root.IsSet("spec."+part) && slices.ContainsFunc(sources, p.Touch) {
				p[part], more = true, true
			}
		}
	}
}

// rendezvousImage gives a job that asks for tegen-rendezvous and names no image the one of this release. Nothing else
// follows from which build renders: a job that only might use it renders the same in all.
func (c *completing) rendezvousImage() {
	s := &c.Spec
	if s.Images.Rendezvous == "" && (s.Rendezvous.Store == job.StoreCompanion || s.Proxied()) {
		c.Origin.Released = names.ReleasedRendezvous != ""
		s.Images.Rendezvous = c.env.Rewrite(names.ReleasedRendezvous)
	}
}

// sources gives volumes without a source the default one, where an environment has not put another there.
func (c *completing) sources() {
	for i := range c.Spec.Storage {
		if v := &c.Spec.Storage[i]; v.VolumeSource == (job.VolumeSource{}) {
			v.Dynamic = &job.Dynamic{}
			defaultsOfVolume("dynamic", v.Dynamic)
		}
	}
}

// defaultsOfVolume fills in what defaults.cue says of a part of a volume.
func defaultsOfVolume(part string, into any, below ...string) {
	n, s := &structural.Node{Kind: yamldoc.Map},
		definition.Job().Field("spec").Schema.Field("storage").Schema.Elem.Field(part).Schema
	for _, name := range below {
		s = s.Field(name).Schema
	}
	structural.CompleteIn(n, s, n)
	if errs := decode(n, into); errs != nil {
		panic(errs) // the schema's own defaults; TestDefaults decodes them
	}
}

func (c *completing) processes() {
	if p := &c.Spec.Workers.Processes; *p == (intstr.IntOrString{}) {
		*p = intstr.FromInt32(c.Spec.DefaultProcesses() * c.CoresEach())
	}
}

// store is that of a job that names none. A store in worker 0 ends the run with that pod, so that it is the
// companion wherever its image is named and there is more than one worker, or where the author says how the companion
// is to be. worker 0 needs no image but the job's own.
func (c *completing) store() {
	s := &c.Spec
	if s.Rendezvous.Store != "" {
		return
	}
	t := target.For(s)
	// the other backends need a store in any case
	alone := s.Workers.Max == 1 && s.Rendezvous.Backend == job.BackendC10d && !c.Origin.Asked.Companion
	if alone || s.Images.Rendezvous == "" || t == nil || !t.Carries("rendezvous") || s.WithoutRendezvous() {
		s.Rendezvous.Store = job.StoreWorker
		return
	}
	s.Rendezvous.Store = job.StoreCompanion
}

// proxies has torchrun start behind a proxy wherever the companion keeps the data of c10d; an environment's word is for
// the jobs of several workers that c10d serves.
func (c *completing) proxies() {
	s, root := &c.Spec, c.root
	z, t := &s.Rendezvous, target.For(s)
	said := root.Below("spec", "rendezvous", "proxy")
	if said != nil && !said.Merged {
		return
	}
	able := t != nil && t.Carries("rendezvous.proxy") && z.Backend == job.BackendC10d && !s.WithoutRendezvous()
	if said != nil {
		z.Proxy = z.Proxy && able &&
			(z.Store != job.StoreWorker || s.Workers.Max > 1 || root.IsSet("spec.rendezvous.store"))
		return
	}
	z.Proxy = able && z.Store == job.StoreCompanion && (z.Companion.Storage != nil || z.Companion.Etcd != nil)
}

// restarts has the first failed pod start all anew, where nobody says how many may be replaced alone before.
func (c *completing) restarts() {
	f := &c.Spec.Failure
	if f.RestartAll != nil && f.RestartsPerWorker == nil && c.absent("failure.restarts") {
		f.Restarts = job.Restarts{}
	}
}

func (c *completing) disruptions() {
	if f := &c.Spec.Failure; f.InPlace && c.absent("failure.ignoreDisruptions") {
		f.IgnoreDisruptions = false
	}
}

// groupsOfUser leaves groups to the image where the user is left to it and nobody says more.
func (c *completing) groupsOfUser() {
	s := &c.Spec.Security
	if s.RunAsUser.Number != nil {
		return
	}
	if c.absent("security.runAsGroup") {
		s.RunAsGroup = job.ID{}
	}
	if c.absent("security.fsGroup") {
		s.FSGroup = job.ID{}
	}
}

// hashes: a reconciler tries for ever to apply a change that no API server accepts, so that in its bundles a changed
// template is a new object, wherever the target can do it and the names have room for the hash.
func (c *completing) hashes() {
	if t := target.For(&c.Spec); c.absent("hashedNames") {
		c.Spec.HashedNames = c.Spec.GitOps && t != nil && t.Carries("hashedNames") && c.HashFits()
	}
}

// shm keeps shared memory that the author did not ask for within the memory that it counts against.
func (c *completing) shm() {
	s := &c.Spec
	memory, shm := s.Resources.MemoryLimit(), c.root.Below("spec", "resources", "shm")
	if memory == nil || shm != nil && shm.At.Line > 0 && !shm.Merged {
		return
	}
	for i := range s.Storage {
		if e := s.Storage[i].EmptyDir; e != nil && e.Medium != "" && e.Size != nil {
			memory.Sub(*e.Size)
		}
	}
	if memory.Value() >= 1<<20 { // or the rule tells what else is in memory
		environment.Lower(&s.Resources.Shm.Quantity, memory)
	}
}

// makeAccessPoints gives a volume of EFS that a dataset is fetched into an access point, where the job says nothing of
// the directory. The root of a file system belongs to root, whom the pods are not, and nothing that was there before is
// missed: what the job wants of the volume, the dataset brings. A volume without one is the whole file system, since
// somebody has put there what the job reads.
func makeAccessPoints(j *job.Job) {
	fetched := map[string]bool{} // by claim: two volumes may be mounts of one
	for i := range j.Spec.Storage {
		if v := &j.Spec.Storage[i]; v.Dataset != nil && v.EFS != nil {
			fetched[v.ClaimName(j)] = true
		}
	}
	for i := range j.Spec.Storage {
		v := &j.Spec.Storage[i]
		e := v.EFS
		if e != nil && fetched[v.ClaimName(j)] && e.AccessPoint == "" && e.Path == "" && e.Volume == "" &&
			e.Provision == nil {
			e.Provision = &job.EFSProvision{}
			defaultsOfVolume("efs", e.Provision, "provision")
		}
	}
}
