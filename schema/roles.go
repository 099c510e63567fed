package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

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

// all are the settings of every role.
func (r *Roles) all() (all []*RolePods) {
	for _, row := range roleTable {
		all = append(all, row.settings(r))
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
	i := slices.IndexFunc(roleTable, func(row roleRow) bool { return row.name == name })
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
	case roleTable[i].own == nil:
		return Role{RolePods: *roleTable[i].pods(&s.Roles)}
	}
	own := *roleTable[i].own(&s.Roles)
	own.Image, own.WorkingDir = cmp.Or(own.Image, s.Image), cmp.Or(own.WorkingDir, s.WorkingDir)
	return own
}

// roleRow is what differs between the roles beside the workers.
type roleRow struct {
	name      string
	comesWith string             // what gives a job the role
	has       func(s *Spec) bool // whether a job has it
	trains    bool               // its pods run what the author wrote
	capped    bool               // an environment's caps lower its resources
	image     string             // where its image stands
	pods      func(*Roles) *RolePods
	own       func(*Roles) *Role // of those that may name an image; nil for the others
}

// roleTable has them in the order of job.cue.
var roleTable = []roleRow{
	{
		RoleServer, "mxnet.mode dist or bytescheduler.mode byteps", (*Spec).ParameterServers, true, true,
		"spec.roles.server.image", nil, func(r *Roles) *Role { return &r.Server },
	},
	{
		RoleScheduler, "mxnet.mode dist or bytescheduler.mode byteps", (*Spec).ParameterServers, true, true,
		"spec.roles.scheduler.image", nil, func(r *Roles) *Role { return &r.Scheduler },
	},
	{ // on other targets the first worker launches
		RoleLauncher, "target mpijob", func(s *Spec) bool { return s.Target == TargetMPIJob }, true, false,
		"spec.roles.launcher.image", nil, func(r *Roles) *Role { return &r.Launcher },
	},
	{
		RoleEtcd, "rendezvous.store etcd", func(s *Spec) bool { return s.Rendezvous.Store == StoreEtcd }, false, false,
		"spec.images.etcd or etcdV2", func(r *Roles) *RolePods { return &r.Etcd }, nil,
	},
	{
		RoleCompanion, "rendezvous.store companion", func(s *Spec) bool { return s.Rendezvous.Store == StoreCompanion },
		false, false,
		"spec.images.rendezvous", func(r *Roles) *RolePods { return &r.Companion }, nil,
	},
	{
		RoleHelper, "a dataset, or with keys that are made in the cluster", (*Spec).prepares, false, false,
		"spec.images", func(r *Roles) *RolePods { return &r.Helper }, nil,
	},
}

// settings are what is said of a role.
func (row *roleRow) settings(r *Roles) *RolePods {
	if row.own != nil {
		return &row.own(r).RolePods
	}
	return row.pods(r)
}

// RoleNames are the roles that a job may have, the workers first.
func RoleNames() []string { return append([]string{RoleWorker}, roleNames...) }

var roleNames = func() (names []string) {
	for _, row := range roleTable {
		names = append(names, row.name)
	}
	return names
}()

// has says whether the job has pods of a role beside its workers.
func (s *Spec) has(role string) bool {
	return s.Group(role) != nil ||
		slices.ContainsFunc(roleTable, func(row roleRow) bool { return row.name == role && row.has(s) })
}

// Components are the roles whose pods train together, sorted, as the label of their component says.
func (s *Spec) Components() []string {
	names := append([]string{RoleWorker}, s.groupNames()...)
	for _, row := range roleTable {
		if row.trains && row.has(s) {
			names = append(names, row.name)
		}
	}
	slices.Sort(names)
	return names
}

// Trains says whether the pods of a role run what the author wrote, or prepare and serve those that do.
func Trains(role string) bool {
	return !slices.ContainsFunc(roleTable, func(row roleRow) bool { return row.name == role && !row.trains })
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

// roles refuses settings of pods that the job does not have. Those of an environment are for the jobs that have them.
func (r *validation) roles() {
	for _, row := range roleTable {
		at := "spec.roles." + row.name
		if n := r.Root.Below("spec", "roles", row.name); r.IsSet(at) && !n.Merged && !r.Spec.has(row.name) &&
			r.Row != nil && r.Row.Carries("roles."+row.name) {
			r.fail(at, "requires", "this job has no %s, which comes with %s; %s", row.name, row.comesWith,
				r.Spec.othersWords())
		}
	}
}

// othersWords says which roles the job has beside its workers.
func (s *Spec) othersWords() string {
	var own []string
	for _, name := range roleNames {
		if s.has(name) {
			own = append(own, name)
		}
	}
	if len(own) == 0 {
		return "it has workers alone"
	}
	return "beside its workers it has: " + strings.Join(own, ", ")
}

// nodes checks the node selector and the tolerations of each role.
func (r *validation) nodes() {
	r.tolerations("spec.placement", r.Spec.Placement.Tolerations)
	for _, name := range r.Spec.otherRoles() {
		role := r.Spec.Role(name)
		r.tolerations(r.Spec.placeOf(name), role.Tolerations)
	}
}

func (r *validation) tolerations(section string, tolerations []Toleration) {
	for i, t := range tolerations {
		at := fmt.Sprintf("%s.tolerations[%d]", section, i)
		switch {
		case t.Operator == "Exists" && t.Value != "":
			r.fail(at+".value", "requires", "operator Exists takes no value")
		case t.Key == "" && t.Operator != "Exists":
			r.fail(at, "requires", "a toleration without a key tolerates every taint and needs operator: Exists")
		case t.Seconds != nil && t.Effect != "NoExecute":
			r.fail(at+".seconds", "requires", "only effect NoExecute has a time")
		}
	}
}

// taintNote is what an author of a cluster whose nodes all have a taint should know. Taints of nodes with accelerators
// are none of the other pods' business, but of groups that take some.
func (j *Job) taintNote() string {
	s := &j.Spec
	own := slices.DeleteFunc(slices.Clone(s.Placement.Tolerations),
		func(t Toleration) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })
	if len(own) == 0 {
		return ""
	}
	shared := slices.ContainsFunc(own,
		func(t Toleration) bool { return t.Key != "" && !ofAccelerators().MatchString(t.Key) })
	var bare []string
	for _, name := range s.otherRoles() {
		role, g := s.Role(name), s.Group(name)
		if !s.has(name) || len(role.Tolerations) > 0 || len(role.PodTemplate) > 0 {
			continue
		}
		switch {
		case g != nil && g.Resources.GPU > 0 && j.machine != nil: // machineNotes tell of it
		case s.Resources.GPU == 0, g != nil && (shared || g.Resources.GPU > 0):
			bare = append(bare, s.placeOf(name)+".tolerations")
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
