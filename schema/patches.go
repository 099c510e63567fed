package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/podpatch"
)

// podPatch is what rules read of the escape hatch.
type podPatch struct {
	Metadata struct {
		Labels      map[string]any `json:"labels"`
		Annotations map[string]any `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		TerminationGracePeriodSeconds *int64             `json:"terminationGracePeriodSeconds"`
		ActiveDeadlineSeconds         *int64             `json:"activeDeadlineSeconds"`
		PriorityClassName             string             `json:"priorityClassName"`
		Containers                    []patchedContainer `json:"containers"`
		InitContainers                []patchedContainer `json:"initContainers"`
	} `json:"spec"`
}

type patchedContainer struct {
	Name      string          `json:"name"`
	Lifecycle json.RawMessage `json:"lifecycle"`
	Env       []struct {
		Name string `json:"name"`
	} `json:"env"`
	EnvFrom []any `json:"envFrom"`
}

// patch is the escape hatch of one role, and where it stands. The role's own container has its name there.
type patch struct {
	role, at string
	raw      json.RawMessage
	podPatch
}

// patches are the escape hatches of the workers and of all other roles that have one.
func (r *validation) patches() (all []patch) {
	if !r.Spec.Patched() {
		return nil
	}
	for _, name := range append([]string{RoleWorker}, r.Spec.otherRoles()...) {
		raw := r.Spec.Role(name).PodTemplate
		if raw == nil {
			continue
		}
		p := patch{role: name, at: r.Spec.placeOf(name) + ".podTemplate", raw: raw}
		if name == RoleWorker {
			p.at = "spec.podTemplate"
		}
		if json.Unmarshal(p.raw, &p.podPatch) != nil {
			p.podPatch = podPatch{} // podpatch.Validate says why
		}
		all = append(all, p)
	}
	return all
}

// Patched says whether any pods of the job have an escape hatch.
func (s *Spec) Patched() bool {
	return s.PodTemplate != nil ||
		slices.ContainsFunc(s.Roles.all(), func(p *RolePods) bool { return p.PodTemplate != nil }) ||
		slices.ContainsFunc(s.Groups, func(g Group) bool { return g.PodTemplate != nil })
}

// patch is the escape hatch of the workers.
func (r *validation) patch() podPatch {
	for _, p := range r.patches() {
		if p.role == RoleWorker {
			return p.podPatch
		}
	}
	return podPatch{}
}

// patchedContainers are the escape hatches' containers that are the training pods' own, by their paths.
func (r *validation) patchedContainers() map[string]patchedContainer {
	all := map[string]patchedContainer{}
	for _, p := range r.patches() {
		for i, c := range p.Spec.Containers {
			if c.Name == p.role && Trains(p.role) {
				all[fmt.Sprintf("%s.spec.containers[%d]", p.at, i)] = c
			}
		}
	}
	return all
}

// patchedEnv are the names of the variables that the escape hatches give training pods, by their paths.
func (r *validation) patchedEnv() map[string]string {
	all := map[string]string{}
	for at, c := range r.patchedContainers() {
		for i, e := range c.Env {
			all[fmt.Sprintf("%s.env[%d]", at, i)] = e.Name
		}
	}
	return all
}

// podTemplate asks the one package that knows pod templates what in the escape hatches is none of theirs.
func (r *validation) podTemplate() {
	for _, p := range r.patches() {
		image := "spec.image"
		if r.Spec.Group(p.role) != nil {
			image = r.Spec.placeOf(p.role) + ".image"
		}
		if i := slices.Index(roleNames, p.role); i >= 0 {
			image = roleTable[i].image
		}
		var sidecars []string
		for i := range r.Spec.Sidecars {
			if p.role == RoleWorker {
				sidecars = append(sidecars, r.Spec.Sidecars[i].Name)
			}
		}
		for _, m := range podpatch.Validate(p.raw, p.role, image, sidecars...) {
			at := p.at
			if m.Path != "" {
				at += "." + m.Path
			}
			r.fail(at, "pod-template", "%s", m.Msg)
		}
		if p.Spec.ActiveDeadlineSeconds != nil && r.Spec.Target == TargetPods {
			r.fail(p.at+".spec.activeDeadlineSeconds", "pod-template", "is set by tegen: use spec.failure.deadline, "+
				"which is the pods' own on target pods")
		}
		r.podKeys(p)
	}
}

// podKeys refuses labels that something finds pods by, and annotations of tegen's own. Other labels of
// app.kubernetes.io are the author's: nothing selects by them.
func (r *validation) podKeys(p patch) {
	for key := range p.Metadata.Labels {
		r.key(p.at+".metadata.labels", key)
		switch {
		case key == "worker" && r.Spec.Target != TargetPods,
			strings.HasPrefix(key, "app.kubernetes.io/") && key != names.LabelComponent && key != names.LabelManagedBy:
		case reservedKey("labels", key):
			r.failKey(p.at+".metadata.labels", key, "reserved", "tegen or a controller sets it, and Services, budgets "+
				"and policies find pods by it: choose another key")
		}
	}
	for key := range p.Metadata.Annotations {
		r.key(p.at+".metadata.annotations", key)
		if reservedKey("annotations", key) {
			r.failKey(p.at+".metadata.annotations", key, "reserved", "is set by tegen: choose another key")
		}
	}
}

// reservedKey says whether the definitions refuse a key of metadata because tegen or a controller sets it.
func reservedKey(field, key string) bool {
	return jobSchema().Field("metadata").Schema.Field(field).Schema.KeyRefusal(key) == "reserved"
}

// key refuses what no API server takes, in a mapping that the schema leaves open.
func (r *validation) key(mapping, key string) {
	if msgs := utilvalidation.IsQualifiedName(key); len(msgs) > 0 {
		r.failKey(mapping, key, "format",
			"is not a key: an optional domain and '/', then at most 63 letters, digits, '-', '_' and '.'")
	}
}
