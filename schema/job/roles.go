package job

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Patched says whether any pods of the job have an escape hatch.
func (s *Spec) Patched() bool {
	return s.PodTemplate != nil ||
		slices.ContainsFunc(s.Roles.All(), func(p *RolePods) bool { return p.PodTemplate != nil }) ||
		slices.ContainsFunc(s.Groups, func(g Group) bool { return g.PodTemplate != nil })
}

// Names of the roles that a job may have beside its workers, as job.cue has them.
const (
	RoleWorker    = "worker"
	RoleServer    = "server"
	RoleScheduler = "scheduler"
	RoleLauncher  = "launcher"
	RoleEtcd      = "etcd"
	RoleCompanion = "companion"
	RoleHelper    = "helper"
)

// Roles mirrors #Roles.
type Roles struct {
	Server    Role     `json:"server"`
	Scheduler Role     `json:"scheduler"`
	Launcher  Role     `json:"launcher"`
	Etcd      RolePods `json:"etcd"`
	Companion RolePods `json:"companion"`
	Helper    RolePods `json:"helper"`
}

// All are the settings of every role.
func (r *Roles) All() (all []*RolePods) {
	for _, row := range RoleTable {
		all = append(all, row.Settings(r))
	}
	return all
}

// Role mirrors #Role: what an author says of pods that run his own images.
type Role struct {
	Image      string `json:"image,omitempty"`
	WorkingDir string `json:"workingDir,omitempty"`
	RolePods
}

// RolePods mirrors #RolePods.
type RolePods struct {
	Resources    Compute           `json:"resources"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []Toleration      `json:"tolerations,omitempty"`
	PodTemplate  json.RawMessage   `json:"podTemplate,omitempty"` // as Spec.PodTemplate
}

// Role is all that is said of a role, be it in spec itself, as of the workers, or below roles. An image and a directory
// that a role does not name are the workers'.
func (s *Spec) Role(name string) Role {
	i := slices.IndexFunc(RoleTable, func(row roleRow) bool { return row.Name == name })
	switch {
	case name == RoleWorker:
		return Role{
			s.Image, s.WorkingDir,
			RolePods{s.Resources.Compute, s.Placement.NodeSelector, s.Placement.Tolerations, s.PodTemplate},
		}
	case s.Group(name) != nil:
		return s.Group(name).role(s)
	case i < 0: // a target's own, of which nothing is said
		return Role{Image: s.Image, WorkingDir: s.WorkingDir}
	case RoleTable[i].Own == nil:
		return Role{RolePods: *RoleTable[i].pods(&s.Roles)}
	}
	own := *RoleTable[i].Own(&s.Roles)
	own.Image, own.WorkingDir = cmp.Or(own.Image, s.Image), cmp.Or(own.WorkingDir, s.WorkingDir)
	return own
}

// roleRow is what differs between the roles beside the workers.
type roleRow struct {
	Name      string
	ComesWith string             // what gives a job the role
	Fields    string             // of the spec that has reads
	has       func(s *Spec) bool // whether a job has it
	trains    bool               // its pods run what the author wrote
	Capped    bool               // an environment's caps lower its resources
	Image     string             // where its image stands
	pods      func(*Roles) *RolePods
	Own       func(*Roles) *Role // of those that may name an image; nil for the others
}

// RoleTable has them in the order of job.cue.
var RoleTable = []roleRow{
	{
		RoleServer, "mxnet.mode dist or bytescheduler.mode byteps",
		"framework mxnet.mode bytescheduler.mode", (*Spec).ParameterServers, true, true,
		"spec.roles.server.image", nil, func(r *Roles) *Role { return &r.Server },
	},
	{
		RoleScheduler, "mxnet.mode dist or bytescheduler.mode byteps",
		"framework mxnet.mode bytescheduler.mode", (*Spec).ParameterServers, true, true,
		"spec.roles.scheduler.image", nil, func(r *Roles) *Role { return &r.Scheduler },
	},
	{ // on other targets the first worker launches
		RoleLauncher, "target mpijob", "target", func(s *Spec) bool { return s.Target == TargetMPIJob }, true, false,
		"spec.roles.launcher.image", nil, func(r *Roles) *Role { return &r.Launcher },
	},
	{
		RoleEtcd, "rendezvous.store etcd", "rendezvous.store",
		func(s *Spec) bool { return s.Rendezvous.Store == StoreEtcd }, false, false,
		"spec.images.etcd or etcdV2", func(r *Roles) *RolePods { return &r.Etcd }, nil,
	},
	{
		RoleCompanion, "rendezvous.store companion", "rendezvous.store",
		func(s *Spec) bool { return s.Rendezvous.Store == StoreCompanion }, false, false,
		"spec.images.rendezvous", func(r *Roles) *RolePods { return &r.Companion }, nil,
	},
	{
		RoleHelper, "a dataset, or with keys that are made in the cluster",
		"framework target bytescheduler.mode mpi.launch ssh.server ssh.secret workers.max rendezvous.backend " +
			"rendezvous.store rendezvous.proxy rendezvous.etcd storage", (*Spec).prepares, false, false,
		"spec.images", func(r *Roles) *RolePods { return &r.Helper }, nil,
	},
}

// In says whether a job has the role.
func (row *roleRow) In(s *Spec) bool { return row.has(s) }

// Settings are what is said of a role.
func (row *roleRow) Settings(r *Roles) *RolePods {
	if row.Own != nil {
		return &row.Own(r).RolePods
	}
	return row.pods(r)
}

// RoleNames are all roles but the workers.
var RoleNames = func() (names []string) {
	for _, row := range RoleTable {
		names = append(names, row.Name)
	}
	return names
}()

// Has says whether the job has pods of a role beside its workers.
func (s *Spec) Has(role string) bool {
	return s.Group(role) != nil ||
		slices.ContainsFunc(RoleTable, func(row roleRow) bool { return row.Name == role && row.has(s) })
}

// Components are the roles whose pods train together, sorted, as the label of their component says.
func (s *Spec) Components() []string {
	names := append([]string{RoleWorker}, s.GroupNames()...)
	for _, row := range RoleTable {
		if row.trains && row.has(s) {
			names = append(names, row.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Trains says whether the pods of a role run what the author wrote, or prepare and serve those that do.
func Trains(role string) bool {
	return !slices.ContainsFunc(RoleTable, func(row roleRow) bool { return row.Name == role && !row.trains })
}

// prepares says whether something is made or fetched before training.
func (s *Spec) prepares() bool {
	return s.MakesKeys() || slices.ContainsFunc(s.Storage, func(v Storage) bool { return v.Dataset != nil })
}

// MakesKeys says whether keys are made in the cluster: a pair for ssh, or those of proxies and their store.
func (s *Spec) MakesKeys() bool {
	return s.OverSSH() && s.SSH.Secret == "" && s.Target == TargetJob || s.MakesCertificates()
}

// MakesCertificates says whether proxies and the rendered store verify each other by certificates that are made in the
// cluster. Access to a rendezvous is code execution in the workers, because torch unpickles what it reads there.
func (s *Spec) MakesCertificates() bool {
	z := &s.Rendezvous
	return s.Proxied() && (z.Store == StoreCompanion || z.Store == StoreEtcd && z.Etcd.TLS == nil)
}

// OthersWords says which roles the job has beside its workers.
func (s *Spec) OthersWords() string {
	var own []string
	for _, name := range RoleNames {
		if s.Has(name) {
			own = append(own, name)
		}
	}
	if len(own) == 0 {
		return "it has workers alone"
	}
	return "beside its workers it has: " + strings.Join(own, ", ")
}
