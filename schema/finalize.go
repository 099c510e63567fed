package schema

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/environment"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/rule"
	"github.com/tegen-dev/tegen/schema/target"
)

// The defaults that depend on another field are in this file; all others are in defaults.cue. They are filled in at
// four times: before an environment and defaults.cue have their say (besides), between the two (followUser), before an
// environment changes what is decoded (fill), and after that (finalize).

// Asked is what is asked for and what the limits are.
func Asked[Name ~string](c *job.Compute) (requests, limits map[Name]resource.Quantity) {
	return job.But[Name](c, c.Requests), job.But[Name](c, c.Limits)
}

// imageUser is an author's word for the user of the image.
const imageUser = "image"

// askedOf reads it as far as it can be read: what cannot is reported elsewhere.
func askedOf(root *structural.Node, env *environment.Environment) job.AskedFor {
	a := job.AskedFor{Companion: root.IsSet("spec.rendezvous.companion"), Grace: root.IsSet("spec.gracePeriod")}
	a.Overrides = environment.Overridden(root.Field("spec"), "spec")
	if ttl := root.Below("spec", "ttlAfterFinished"); ttl != nil {
		a.Lifetime = ttl.Text != job.None
	}
	if gpu := root.Below("spec", "resources", "gpu"); gpu != nil {
		a.GPU, _ = strconv.ParseInt(gpu.Text, 10, 64)
	}
	if env == nil { // nobody else has a say
		return a
	}
	a.Compute = map[string]job.Compute{}
	for role, n := range computes(root.Field("spec")) {
		var c job.Compute
		if n.Decode(&c) == nil {
			a.Compute[role] = c
		}
	}
	return a
}

// computes are the resources that a spec says something of, by role.
func computes(spec *structural.Node) map[string]*structural.Node {
	all := map[string]*structural.Node{}
	add := func(role string, n *structural.Node) {
		if n != nil && n.Kind == yamldoc.Map {
			all[role] = n
		}
	}
	add(job.RoleWorker, spec.Below("resources"))
	for _, item := range rule.GroupItems(spec) {
		if name := item.Field("name"); name != nil {
			add(name.Text, item.Field("resources"))
		}
	}
	for _, role := range job.RoleNames {
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
				if e.Value.Text != job.None && n.Entry(e.Key) == nil && amountsSchema().Field(e.Key) != nil {
					n.Add(e.Key, structural.Position{}, &structural.Node{Kind: yamldoc.String, Text: job.None})
				}
			}
		}
	}
}

func amountsSchema() *structural.Schema {
	return definition.Job().Field("spec").Schema.Field("resources").Schema.Field("limits").Schema
}

// followUser leaves groups to the image where the user is left to it and nobody says more.
func followUser(root *structural.Node) {
	security := root.Below("spec", "security")
	if user := security.Below("runAsUser"); user == nil || user.Text != imageUser {
		return
	}
	for field, value := range map[string]string{"runAsGroup": imageUser, "fsGroup": job.None} {
		if security.Field(field) == nil {
			security.Add(field, structural.Position{}, &structural.Node{Kind: yamldoc.String, Text: value})
		}
	}
}

// fill gives volumes without a source the default one, which an environment may replace.
func fill(s *job.Spec) {
	s.FillGroups()
	for i := range s.Storage {
		if v := &s.Storage[i]; v.VolumeSource == (job.VolumeSource{}) {
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

// finalize fills in what depends on what the target can carry, and on what the environment has left of the job.
func finalize(j *job.Job, root *structural.Node, hashing bool) {
	s := &j.Spec
	if p := &s.Workers.Processes; *p == (intstr.IntOrString{}) {
		*p = intstr.FromInt32(s.DefaultProcesses() * j.CoresEach())
	}
	if s.Rendezvous.Store == "" {
		s.Rendezvous.Store = defaultStore(s, j.Origin.Asked.Companion)
	}
	proxies(s, root)
	if f := &s.Failure; f.InPlace && !root.IsSet("spec.failure.ignoreDisruptions") {
		f.IgnoreDisruptions = false
	}
	if !hashing {
		s.HashedNames = hashesByDefault(j)
	}
	fitShm(s, root)
	s.SliceTopology()
	s.GraceToSave(root)
	s.Placement.OnSpot()
	makeAccessPoints(j)
}

// defaultStore is the store of a job that names none. A store in worker 0 ends the run with that pod, so that it is the
// companion wherever its image is named and there is more than one worker, or where the author says how the companion
// is to be. worker 0 needs no image but the job's own.
func defaultStore(s *job.Spec, asked bool) string {
	t := target.For(s)
	// the other backends need a store in any case
	alone := s.Workers.Max == 1 && s.Rendezvous.Backend == job.BackendC10d && !asked
	if alone || s.Images.Rendezvous == "" || t == nil || !t.Carries("rendezvous") || s.WithoutRendezvous() {
		return job.StoreWorker
	}
	return job.StoreCompanion
}

// proxies has torchrun start behind a proxy wherever the companion keeps the data of c10d; an environment's word is for
// the jobs of several workers that c10d serves.
func proxies(s *job.Spec, root *structural.Node) {
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

// hashesByDefault: a reconciler tries for ever to apply a change that no API server accepts, so that in its bundles a
// changed template is a new object, wherever the target can do it and the names have room for the hash.
func hashesByDefault(j *job.Job) bool {
	t := target.For(&j.Spec)
	return j.Spec.GitOps && t != nil && t.Carries("hashedNames") && j.HashFits()
}

// fitShm keeps shared memory that the author did not ask for within the memory that it counts against.
func fitShm(s *job.Spec, root *structural.Node) {
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

// followRestartAll has the first failed pod start all anew, where nobody says how many may be replaced alone before.
func followRestartAll(root *structural.Node) {
	failure := root.Below("spec", "failure")
	if failure.Below("restartAll") == nil || failure.Field("restarts") != nil ||
		failure.Field("restartsPerWorker") != nil {
		return
	}
	failure.Add("restarts", structural.Position{}, &structural.Node{Kind: yamldoc.Int, Text: "0"})
}

// RoleNames are the roles that a job may have, the workers first.
func RoleNames() []string { return append([]string{job.RoleWorker}, job.RoleNames...) }
