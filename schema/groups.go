package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// What a group waits for, and which groups make a job succeed.
const (
	WhenReady = "ready"
	WhenDone  = "done"
	WhenAll   = "all"
	WhenAny   = "any"
)

// Group mirrors #Group: pods beside the workers that run a program of the author's own.
type Group struct {
	Name         string            `json:"name"`
	Replicas     int32             `json:"replicas"`
	Image        string            `json:"image,omitempty"`
	Command      []string          `json:"command,omitempty"`
	Args         []string          `json:"args,omitempty"`
	WorkingDir   string            `json:"workingDir,omitempty"`
	Env          []Env             `json:"env,omitempty"`
	EnvFrom      []EnvFrom         `json:"envFrom,omitempty"`
	Resources    GroupResources    `json:"resources"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []Toleration      `json:"tolerations,omitempty"`
	After        []After           `json:"after,omitempty"`
	Failure      *GroupFailure     `json:"failure,omitempty"`
	PodTemplate  json.RawMessage   `json:"podTemplate,omitempty"` // as Spec.PodTemplate

	RuntimeClass string `json:"-"` // of an environment's accelerators
}

// GroupResources is what each pod of a group asks for.
type GroupResources struct {
	Compute
	GPU         int64  `json:"gpu"`
	GPUResource string `json:"gpuResource,omitempty"` // as that of the workers where nobody says anything
}

// After mirrors #After: a group that another one waits for.
type After struct {
	Group string `json:"group"`
	When  string `json:"when"`
}

// Success mirrors #Success.
type Success struct {
	Groups []string `json:"groups"`
	When   string   `json:"when"`
}

// Coordinator mirrors #Coordinator.
type Coordinator struct {
	Group string `json:"group"`
	Index int32  `json:"index"`
}

// Group returns the group of a name, nil where there is none: the workers are no group of this list.
func (s *Spec) Group(name string) *Group {
	i := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Groups[i]
}

// role is what is said of a group, as of any role. An image that it does not name is the workers'.
func (g *Group) role(s *Spec) Role {
	r := Role{g.Image, g.WorkingDir, RolePods{g.Resources.Compute, g.NodeSelector, g.Tolerations, g.PodTemplate}}
	if r.Image == "" {
		r.Image = s.Image
	}
	return r
}

// groupNames are the names of the groups, in the author's order.
func (s *Spec) groupNames() (names []string) {
	for i := range s.Groups {
		names = append(names, s.Groups[i].Name)
	}
	return names
}

// otherRoles are the roles that a job may have beside its workers, its groups among them.
func (s *Spec) otherRoles() []string { return append(slices.Clone(roleNames), s.groupNames()...) }

// EnvOf are the author's variables of a role: those of a group are its own, all others have the workers'. An sshd of
// the image's would hand on none.
func (s *Spec) EnvOf(role string) []Env {
	if g := s.Group(role); g != nil {
		return g.Env
	}
	if role == RoleWorker && s.ImageSSH() {
		return nil
	}
	return s.Env
}

// EnvFromOf is EnvOf for variables from all keys of Secrets and ConfigMaps.
func (s *Spec) EnvFromOf(role string) []EnvFrom {
	if g := s.Group(role); g != nil {
		return g.EnvFrom
	}
	if role == RoleWorker && s.ImageSSH() {
		return nil
	}
	return s.EnvFrom
}

// RuntimeClassOf is the handler of accelerators: of the workers, and of groups that have some.
func (s *Spec) RuntimeClassOf(role string) string {
	g := s.Group(role)
	switch {
	case role == RoleWorker:
		return s.Placement.RuntimeClass
	case g == nil || g.Resources.GPU == 0:
		return ""
	}
	return cmp.Or(s.Placement.RuntimeClass, g.RuntimeClass)
}

// HostVariable is the variable by which pods find the first pod of a group.
func HostVariable(group string) string {
	return "TEGEN_" + strings.ToUpper(strings.ReplaceAll(group, "-", "_")) + "_HOST"
}

// AfterOf are the groups that a group, or the workers, are started after.
func (s *Spec) AfterOf(name string) []After {
	if g := s.Group(name); g != nil {
		return g.After
	}
	return s.Workers.After
}

// Ordered says whether some pods are started after others.
func (s *Spec) Ordered() bool {
	return len(s.Workers.After) > 0 || slices.ContainsFunc(s.Groups, func(g Group) bool { return len(g.After) > 0 })
}

// StartOrder are the workers and the groups, each behind those that it is started after; else the workers come first,
// and the groups as the author lists them. What is in a circle, which a rule refuses, comes last.
func (s *Spec) StartOrder() []string {
	rest := append([]string{RoleWorker}, s.groupNames()...)
	var out []string
	for len(rest) > 0 {
		i := slices.IndexFunc(rest, func(name string) bool {
			return !slices.ContainsFunc(s.AfterOf(name), func(a After) bool { return slices.Contains(rest, a.Group) })
		})
		if i < 0 {
			return append(out, rest...)
		}
		out, rest = append(out, rest[i]), slices.Delete(rest, i, i+1)
	}
	return out
}

// ReplacesAlone says whether a failed pod is replaced while the others go on, before all are started anew.
func (f *Failure) ReplacesAlone() bool {
	return f.RestartAll == nil || f.RestartAllInPlace ||
		f.RestartsPerWorker != nil || f.Restarts.None || f.Restarts.Limit > 0
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

// groupItems are the groups of a job's tree that are mappings, with where they stand.
func groupItems(spec *structural.Node) map[int]*structural.Node {
	all := map[int]*structural.Node{}
	if list := spec.Below("groups"); list != nil {
		for i, item := range list.Items {
			if item.Kind == yamldoc.Map {
				all[i] = item
			}
		}
	}
	return all
}

// takesAccelerators says whether an environment leaves no accelerators to any job.
func (env *Environment) takesAccelerators() bool {
	gpu := env.root.Below("spec", "overrides", "resources", "gpu")
	return gpu != nil && gpu.Text == "0"
}

// applyToGroups gives groups what an environment gives or takes of workers: variables, accelerators, and what those
// need to land on their nodes.
func (env *Environment) applyToGroups(spec *Spec) {
	for i := range spec.Groups {
		g := &spec.Groups[i]
		for _, e := range env.Spec.Env {
			if !slices.ContainsFunc(g.Env, func(own Env) bool { return own.Name == e.Name }) {
				g.Env = append(g.Env, e)
			}
		}
		if env.takesAccelerators() {
			g.Resources.GPU = 0
		}
		p := Placement{NodeSelector: g.NodeSelector, Tolerations: g.Tolerations}
		if env.Spec.Anywhere {
			p = Placement{}
		}
		if a := env.Spec.Accelerator; a != nil && g.Resources.GPU > 0 {
			a.apply(&p)
			g.RuntimeClass = p.RuntimeClass
		}
		g.NodeSelector, g.Tolerations = p.NodeSelector, p.Tolerations
	}
}

// fillGroups gives groups what they have in common with the workers.
func (s *Spec) fillGroups() {
	for i := range s.Groups {
		if r := &s.Groups[i].Resources; r.GPUResource == "" {
			r.GPUResource = s.Resources.GPUResource
		}
	}
}

// placeOf is where a role's settings stand in a job.
func (s *Spec) placeOf(role string) string {
	if i := slices.Index(s.groupNames(), role); i >= 0 {
		return fmt.Sprintf("spec.groups[%d]", i)
	}
	return "spec.roles." + role
}

// orderOf is a feature that is used wherever pods are started after others are ready, or done.
func orderOf(name, doc, when string, shows ...string) Feature {
	used := func(j *Written) (paths []string) {
		add := func(at string, after []After) {
			for i, a := range after {
				if a.When == when {
					paths = append(paths, fmt.Sprintf("spec.%s[%d]", at, i))
				}
			}
		}
		add("workers.after", j.Spec.Workers.After)
		for i, g := range j.Spec.Groups {
			add(fmt.Sprintf("groups[%d].after", i), g.After)
		}
		return paths
	}
	return Feature{name, doc, shows, "workers.after groups", used}
}

// allOfSeveral are groups that must all succeed.
func allOfSeveral(j *Written) []string {
	s := j.Spec.Success
	return when(s != nil && len(s.Groups) > 1 && s.When == WhenAll, "success.when")
}
