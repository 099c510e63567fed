package job

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// GroupNames are the names of the groups, in the author's order.
func (s *Spec) GroupNames() (names []string) {
	for i := range s.Groups {
		names = append(names, s.Groups[i].Name)
	}
	return names
}

// OtherRoles are the roles that a job may have beside its workers, its groups among them.
func (s *Spec) OtherRoles() []string { return append(slices.Clone(RoleNames), s.GroupNames()...) }

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
	rest := append([]string{RoleWorker}, s.GroupNames()...)
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

// FillGroups gives groups what they have in common with the workers.
func (s *Spec) FillGroups() {
	for i := range s.Groups {
		if r := &s.Groups[i].Resources; r.GPUResource == "" {
			r.GPUResource = s.Resources.GPUResource
		}
	}
}

// PlaceOf is where a role's settings stand in a job.
func (s *Spec) PlaceOf(role string) string {
	if i := slices.Index(s.GroupNames(), role); i >= 0 {
		return fmt.Sprintf("spec.groups[%d]", i)
	}
	return "spec.roles." + role
}
