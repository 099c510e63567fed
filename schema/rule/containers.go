package rule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/podpatch"
	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/target"
)

// containerNames refuses a second container of a name: the names of a pod's containers are unique.
func (r *Validation) containerNames() {
	for _, p := range r.patches() {
		fail := func(list string, i int, name, remedy string) {
			why := "is the name of the " + p.role + "'s own container"
			switch {
			case p.role == job.RoleWorker:
				why = "is what target " + r.Spec.Target + " calls the workers' container"
			case job.Trains(p.role):
				why = "is what target " + r.Spec.Target + " calls the " + p.role + "'s container"
			}
			r.fail(fmt.Sprintf("%s.spec.%s[%d].name", p.at, list, i), "reserved", "%s %s: %schoose another name", name,
				why, remedy)
		}
		taken := r.Spec.TakenNames(p.role)
		for i, c := range p.Spec.Containers {
			if slices.Contains(taken, c.Name) && c.Name != p.role {
				fail("containers", i, c.Name, "name it "+p.role+" to change that one, or ")
			}
		}
		for i, c := range p.Spec.InitContainers {
			if slices.Contains(taken, c.Name) {
				fail("initContainers", i, c.Name, "")
			}
		}
	}
}

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
var patches = part.OfSpec("podTemplate roles groups", func(s *job.Spec) (all []patch) {
	if !s.Patched() {
		return nil
	}
	for _, name := range append([]string{job.RoleWorker}, s.OtherRoles()...) {
		raw := s.Role(name).PodTemplate
		if raw == nil {
			continue
		}
		p := patch{role: name, at: s.PlaceOf(name) + ".podTemplate", raw: raw}
		if name == job.RoleWorker {
			p.at = "spec.podTemplate"
		}
		if json.Unmarshal(p.raw, &p.podPatch) != nil {
			p.podPatch = podPatch{} // podpatch.Validate says why
		}
		all = append(all, p)
	}
	return all
})

func (r *Validation) patches() []patch { return patches.Of(r.Job) }

// patch is the escape hatch of the workers.
func (r *Validation) patch() podPatch {
	for _, p := range r.patches() {
		if p.role == job.RoleWorker {
			return p.podPatch
		}
	}
	return podPatch{}
}

// patchedContainers are the escape hatches' containers that are the training pods' own, by their paths.
var patchedContainers = part.New("podTemplate roles groups", func(j *job.Job) map[string]patchedContainer {
	all := map[string]patchedContainer{}
	for _, p := range patches.Of(j) {
		for i, c := range p.Spec.Containers {
			if c.Name == p.role && job.Trains(p.role) {
				all[fmt.Sprintf("%s.spec.containers[%d]", p.at, i)] = c
			}
		}
	}
	return all
})

func (r *Validation) patchedContainers() map[string]patchedContainer {
	return patchedContainers.Of(r.Job)
}

// patchedEnv are the names of the variables that the escape hatches give training pods, by their paths.
var patchedEnv = part.New("podTemplate roles groups", func(j *job.Job) map[string]string {
	all := map[string]string{}
	for at, c := range patchedContainers.Of(j) {
		for i, e := range c.Env {
			all[fmt.Sprintf("%s.env[%d]", at, i)] = e.Name
		}
	}
	return all
})

func (r *Validation) patchedEnv() map[string]string { return patchedEnv.Of(r.Job) }

// variables are the names of those that the author gives training pods, in env and in escape hatches, by the paths of
// the names.
var variables = part.New("env podTemplate roles groups", func(j *job.Job) map[string]string {
	all := map[string]string{}
	for i, e := range j.Spec.Env {
		all[fmt.Sprintf("spec.env[%d].name", i)] = e.Name
	}
	for at, name := range patchedEnv.Of(j) {
		all[at+".name"] = name
	}
	return all
})

// podTemplate asks the one package that knows pod templates what in the escape hatches is none of theirs.
func (r *Validation) podTemplate() {
	for _, p := range r.patches() {
		image := "spec.image"
		if r.Spec.Group(p.role) != nil {
			image = r.Spec.PlaceOf(p.role) + ".image"
		}
		if i := slices.Index(job.RoleNames, p.role); i >= 0 {
			image = job.RoleTable[i].Image
		}
		var sidecars []string
		for i := range r.Spec.Sidecars {
			if p.role == job.RoleWorker {
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
		if p.Spec.ActiveDeadlineSeconds != nil && r.Spec.Target == job.TargetPods {
			r.fail(p.at+".spec.activeDeadlineSeconds", "pod-template", "is set by tegen: use spec.failure.deadline, "+
				"which is the pods' own on target pods")
		}
		r.podKeys(p)
	}
}

// podKeys refuses labels that something finds pods by, and annotations of tegen's own. Other labels of
// app.kubernetes.io are the author's: nothing selects by them.
func (r *Validation) podKeys(p patch) {
	for key := range p.Metadata.Labels {
		r.key(p.at+".metadata.labels", key)
		switch {
		case key == "worker" && r.Spec.Target != job.TargetPods,
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
	return definition.Job().Field("metadata").Schema.Field(field).Schema.KeyRefusal(key) == "reserved"
}

// key refuses what no API server takes, in a mapping that the schema leaves open.
func (r *Validation) key(mapping, key string) {
	if msgs := utilvalidation.IsQualifiedName(key); len(msgs) > 0 {
		r.failKey(mapping, key, "format",
			"is not a key: an optional domain and '/', then at most 63 letters, digits, '-', '_' and '.'")
	}
}

// podFields refuses fields of the escape hatch that the target's controller would lose.
func (r *Validation) podFields() {
	release, old := target.PodReleases[[2]string{r.Spec.Framework, r.Spec.Target}]
	for _, p := range r.patches() {
		if old && job.Trains(p.role) { // the others' pods are made by no controller of the target's
			r.lostOf(p, release)
		}
	}
}

func (r *Validation) lostOf(p patch, release target.PodRelease) {
	var patch struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if json.Unmarshal(p.raw, &patch) != nil { // podTemplate says what is wrong
		return
	}
	at := p.at + ".spec"
	r.lost(at, patch.Spec, release.Pod, release.Version)
	r.lost(at+".securityContext", target.FieldsOf(patch.Spec["securityContext"]), release.PodContext, release.Version)
	for _, list := range []string{"containers", "initContainers"} {
		var containers []map[string]json.RawMessage
		if json.Unmarshal(patch.Spec[list], &containers) != nil {
			continue
		}
		for i, c := range containers {
			item := fmt.Sprintf("%s.%s[%d]", at, list, i)
			r.lost(item, c, release.Container, release.Version)
			r.lost(item+".securityContext", target.FieldsOf(c["securityContext"]), release.ContContext, release.Version)
		}
	}
}

func (r *Validation) lost(at string, fields map[string]json.RawMessage, known, version string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(strings.Fields(known), name) {
			r.fail(at+"."+name, "target",
				"target %s of framework %s cannot carry this: its controller makes pods of Kubernetes %s, which had "+
					"no such field", r.Spec.Target, r.Spec.Framework, version)
		}
	}
}

// roles refuses settings of pods that the job does not have. Those of an environment are for the jobs that have them.
func (r *Validation) roles() {
	for _, row := range job.RoleTable {
		at := "spec.roles." + row.Name
		if n := r.Root.Below("spec", "roles", row.Name); r.IsSet(at) && !n.Merged && !r.Spec.Has(row.Name) &&
			r.Row != nil && r.Row.Carries("roles."+row.Name) {
			r.fail(at, "requires", "this job has no %s, which comes with %s; %s", row.Name, row.ComesWith,
				r.Spec.OthersWords())
		}
	}
}

// nodes checks the node selector and the tolerations of each role.
func (r *Validation) nodes() {
	r.tolerations("spec.placement", r.Spec.Placement.Tolerations)
	for _, name := range r.Spec.OtherRoles() {
		role := r.Spec.Role(name)
		r.tolerations(r.Spec.PlaceOf(name), role.Tolerations)
	}
}

func (r *Validation) tolerations(section string, tolerations []job.Toleration) {
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

var envRules = []oldRule{
	{(*Validation).environmentSources, "envFrom framework launcher"},
}

// environmentSources refuses what would stand in for variables that tegen sets, and what adds nothing.
func (r *Validation) environmentSources() {
	for i, e := range r.Spec.EnvFrom {
		at := fmt.Sprintf("spec.envFrom[%d]", i)
		if strings.HasPrefix(e.Prefix, "PET_") && !r.Spec.Unlaunched() {
			r.fail(at+".prefix", "reserved", "%s starts the names of torchrun's own settings, which tegen sets: see "+
				"spec.rendezvous and spec.workers", e.Prefix)
		}
	}
	r.twiceFrom("spec.envFrom", r.Spec.EnvFrom)
}

// twiceFrom refuses a source that brings nothing that is not there.
func (r *Validation) twiceFrom(at string, sources []job.EnvFrom) {
	for i, e := range sources {
		same := func(other job.EnvFrom) bool {
			return e.Secret == other.Secret && e.ConfigMap == other.ConfigMap && e.Prefix == other.Prefix
		}
		if first := slices.IndexFunc(sources, same); first < i {
			r.fail(fmt.Sprintf("%s[%d]", at, i), "duplicate", "is %s[%d] again: leave it out", at, first)
		}
	}
}

var sidecarRules = []oldRule{
	{(*Validation).sidecarNames, "framework target sidecars podTemplate"},
	{(*Validation).sidecarMounts, "sidecars storage resources.tmp"},
	{(*Validation).sidecarEnvironment, "sidecars"},
	{
		(*Validation).workerPorts,
		"sidecars metrics framework target launcher bytescheduler ssh jax mpi rendezvous.store rendezvous.port " +
			"workers.master",
	},
}

// sidecarNames refuses a second container of a name in one pod.
func (r *Validation) sidecarNames() {
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
		case s.Name != job.RoleWorker && s.Name == r.Spec.Container():
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
func (r *Validation) sidecarMounts() {
	volumes := map[string]string{}
	var known []string
	for i := range r.Spec.Storage {
		v := &r.Spec.Storage[i]
		volumes[v.Name], known = v.MountPath, append(known, v.Name)
	}
	if !r.Spec.Resources.Tmp.None {
		volumes[job.VolumeTmp], known = "/tmp", append(known, job.VolumeTmp)
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
func (r *Validation) sidecarEnvironment() {
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
func (r *Validation) workerPorts() {
	taken := map[int32]string{}
	for _, p := range r.Spec.OwnPorts() {
		taken[p.Number] = p.Field
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
