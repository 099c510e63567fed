package schema

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// The defaults that depend on another field are in this file; all others are in defaults.cue. They are filled in at
// four times: before an environment and defaults.cue have their say (besides), between the two (followUser), before an
// environment changes what is decoded (fill), and after that (finalize).

// asked is what an author's own file says, before an environment has a say where nothing else is written below.
type asked struct {
	gpu       int64
	compute   map[string]Compute // of the workers and of roles
	companion bool               // settings of one
	lifetime  bool               // after the end, other than for ever
	gitops    bool               // either value, also by the environment
	onDelete  map[int]bool       // of volumes that say it, also by the environment
	grace     bool               // the author's own gracePeriod
	fabric    bool               // network.fabric, also by the environment
	replaced  []replaced         // claims in whose place an environment has others
	overrides []string           // notes about fields that the author's own podTemplate overrides
	nodes     map[string]string  // labels that an environment without the machine asks of nodes with accelerators
}

// askedOf reads it as far as it can be read: what cannot is reported elsewhere.
func askedOf(root *structural.Node, env *Environment) asked {
	a := asked{companion: root.IsSet("spec.rendezvous.companion"), grace: root.IsSet("spec.gracePeriod")}
	a.overrides = overridden(root.Field("spec"), "spec")
	if ttl := root.Below("spec", "ttlAfterFinished"); ttl != nil {
		a.lifetime = ttl.Text != None
	}
	if gpu := root.Below("spec", "resources", "gpu"); gpu != nil {
		a.gpu, _ = strconv.ParseInt(gpu.Text, 10, 64)
	}
	if env == nil { // nobody else has a say
		return a
	}
	a.compute = map[string]Compute{}
	for role, n := range computes(root.Field("spec")) {
		var c Compute
		if n.Decode(&c) == nil {
			a.compute[role] = c
		}
	}
	return a
}

// volumes notes which of them say what becomes of them, after the environment's say.
func (a *asked) volumes(root *structural.Node) {
	a.onDelete = map[int]bool{}
	if list := root.Below("spec", "storage"); list != nil {
		for i, item := range list.Items {
			a.onDelete[i] = item.Field("onDelete") != nil
		}
	}
}

// computes are the resources that a spec says something of, by role.
func computes(spec *structural.Node) map[string]*structural.Node {
	all := map[string]*structural.Node{}
	add := func(role string, n *structural.Node) {
		if n != nil && n.Kind == yamldoc.Map {
			all[role] = n
		}
	}
	add(RoleWorker, spec.Below("resources"))
	for _, item := range groupItems(spec) {
		if name := item.Field("name"); name != nil {
			add(name.Text, item.Field("resources"))
		}
	}
	for _, role := range roleNames {
		add(role, spec.Below("roles", role, "resources"))
	}
	return all
}

// besides sets an amount to none where only its request or its limit is said: the other's default is nobody's wish. A
// request alone then has no limit, and a limit alone is what Kubernetes takes for the request. A side that is none
// leaves the default to the other one.
func besides(spec *structural.Node) {
	all := slices.Collect(maps.Values(computes(spec)))
	if list := spec.Field("sidecars"); list != nil {
		for _, item := range list.Items {
			if n := item.Field("resources"); n != nil && n.Kind == yamldoc.Map {
				all = append(all, n)
			}
		}
	}
	for _, n := range all {
		for _, side := range []*structural.Node{n.Field("requests"), n.Field("limits")} {
			if side == nil || side.Kind != yamldoc.Map {
				continue
			}
			for _, e := range side.Fields {
				if e.Value.Text != None && n.Entry(e.Key) == nil && amountsSchema().Field(e.Key) != nil {
					n.Add(e.Key, structural.Position{}, &structural.Node{Kind: yamldoc.String, Text: None})
				}
			}
		}
	}
}

func amountsSchema() *structural.Schema {
	return jobSchema().Field("spec").Schema.Field("resources").Schema.Field("limits").Schema
}

// followUser leaves groups to the image where the user is left to it and nobody says more.
func followUser(root *structural.Node) {
	security := root.Below("spec", "security")
	if user := security.Below("runAsUser"); user == nil || user.Text != imageUser {
		return
	}
	for field, value := range map[string]string{"runAsGroup": imageUser, "fsGroup": None} {
		if security.Field(field) == nil {
			security.Add(field, structural.Position{}, &structural.Node{Kind: yamldoc.String, Text: value})
		}
	}
}

// fill gives volumes without a source the default one, which an environment may replace.
func fill(s *Spec) {
	s.fillGroups()
	for i := range s.Storage {
		if v := &s.Storage[i]; v.VolumeSource == (VolumeSource{}) {
			v.Dynamic = &Dynamic{}
			defaultsOfVolume("dynamic", v.Dynamic)
		}
	}
}

// fillImage gives a job that asks for tegen-rendezvous and names no image the one of this release. Nothing else follows
// from which build renders: a job that only might use it renders the same in all.
func (j *Job) fillImage() {
	s := &j.Spec
	if s.Images.Rendezvous == "" && (s.Rendezvous.Store == StoreCompanion || s.Proxied()) {
		s.Images.Rendezvous = names.ReleasedRendezvous
		j.released = names.ReleasedRendezvous != ""
	}
}

// defaultsOfVolume fills in what defaults.cue says of a part of a volume.
func defaultsOfVolume(part string, into any, below ...string) {
	n, s := &structural.Node{Kind: yamldoc.Map},
		jobSchema().Field("spec").Schema.Field("storage").Schema.Elem.Field(part).Schema
	for _, name := range below {
		s = s.Field(name).Schema
	}
	structural.CompleteIn(n, s, n)
	if errs := decode(n, into); errs != nil {
		panic(errs) // the schema's own defaults; TestDefaults decodes them
	}
}

// finalize fills in what depends on what the target can carry, and on what the environment has left of the job.
func finalize(job *Job, root *structural.Node, hashing bool) {
	s := &job.Spec
	if p := &s.Workers.Processes; *p == (intstr.IntOrString{}) {
		*p = intstr.FromInt32(s.defaultProcesses() * job.coresEach())
	}
	if s.Rendezvous.Store == "" {
		s.Rendezvous.Store = s.defaultStore(job.asked.companion)
	}
	s.proxies(root)
	if f := &s.Failure; f.InPlace && !root.IsSet("spec.failure.ignoreDisruptions") {
		f.IgnoreDisruptions = false
	}
	if !hashing {
		s.HashedNames = job.hashesByDefault()
	}
	s.fitShm(root)
	s.sliceTopology()
	s.graceToSave(root)
	s.Placement.onSpot()
	job.makeAccessPoints()
}

// defaultProcesses is one for each accelerator: with fewer the rest would be paid for and idle. MXNet and JAX use all
// of a worker's in one process. With a Master it is the pods that are processes: the operator multiplies them by this,
// and they wait for as many, which only an author's own torchrun starts.
func (s *Spec) defaultProcesses() int32 {
	if s.Resources.GPU < 1 || s.Framework == FrameworkMXNet || s.Framework == FrameworkJAX || s.Unlaunched() {
		return 1
	}
	if l := s.Launch(); s.Workers.Master && (l == nil || l.Program == "") {
		return 1
	}
	return int32(s.Resources.GPU)
}

// defaultStore is the store of a job that names none. A store in worker 0 ends the run with that pod, so that it is the
// companion wherever its image is named and there is more than one worker, or where the author says how the companion
// is to be. worker 0 needs no image but the job's own.
func (s *Spec) defaultStore(asked bool) string {
	t := rowOf(s)
	// the other backends need a store in any case
	alone := s.Workers.Max == 1 && s.Rendezvous.Backend == BackendC10d && !asked
	if alone || s.Images.Rendezvous == "" || t == nil || !t.Carries("rendezvous") || s.WithoutRendezvous() {
		return StoreWorker
	}
	return StoreCompanion
}

// proxies has torchrun start behind a proxy wherever the companion keeps the data of c10d; an environment's word is for
// the jobs of several workers that c10d serves.
func (s *Spec) proxies(root *structural.Node) {
	z, t := &s.Rendezvous, rowOf(s)
	said := root.Below("spec", "rendezvous", "proxy")
	if said != nil && !said.Merged {
		return
	}
	able := t != nil && t.Carries("rendezvous.proxy") && z.Backend == BackendC10d && !s.WithoutRendezvous()
	if said != nil {
		z.Proxy = z.Proxy && able &&
			(z.Store != StoreWorker || s.Workers.Max > 1 || root.IsSet("spec.rendezvous.store"))
		return
	}
	z.Proxy = able && z.Store == StoreCompanion && (z.Companion.Storage != nil || z.Companion.Etcd != nil)
}

// hashesByDefault: a reconciler tries for ever to apply a change that no API server accepts, so that in its bundles a
// changed template is a new object, wherever the target can do it and the names have room for the hash.
func (j *Job) hashesByDefault() bool {
	t := rowOf(&j.Spec)
	return j.Spec.GitOps && t != nil && t.Carries("hashedNames") && j.hashFits()
}

// fitShm keeps shared memory that the author did not ask for within the memory that it counts against.
func (s *Spec) fitShm(root *structural.Node) {
	memory, shm := s.Resources.MemoryLimit(), root.Below("spec", "resources", "shm")
	if memory == nil || shm != nil && shm.At.Line > 0 && !shm.Merged {
		return
	}
	for i := range s.Storage {
		if e := s.Storage[i].EmptyDir; e != nil && e.Medium != "" && e.Size != nil {
			memory.Sub(*e.Size)
		}
	}
	if memory.Value() >= 1<<20 { // or the rule tells what else is in memory
		lower(&s.Resources.Shm.Quantity, memory)
	}
}

// makeAccessPoints gives a volume of EFS that a dataset is fetched into an access point, where the job says nothing of
// the directory. The root of a file system belongs to root, whom the pods are not, and nothing that was there before is
// missed: what the job wants of the volume, the dataset brings. A volume without one is the whole file system, since
// somebody has put there what the job reads.
func (j *Job) makeAccessPoints() {
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
			e.Provision = &EFSProvision{}
			defaultsOfVolume("efs", e.Provision, "provision")
		}
	}
}
