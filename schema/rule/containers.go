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

var containerRules = slices.Concat(absentRoles(), each(patchLists, func(patches *part.Value[[]patch]) Rule {
	return part.Of3(containerNames, part.Target, patches, takenNames)
}), each(patchLists, func(patches *part.Value[[]patch]) Rule {
	return part.Of3(podTemplates, part.Target, part.Sidecars, patches)
}), each(patchLists, func(patches *part.Value[[]patch]) Rule {
	return part.Of3(podFields, part.Framework, part.Target, patches)
}), each(patchLists, func(patches *part.Value[[]patch]) Rule {
	return part.Of3(podHooks, part.GitOps, part.Target, patches)
}), each(patchLists, func(patches *part.Value[[]patch]) Rule {
	return part.Of2(gangPods, part.Gang, patches)
}), each(patchLists, func(patches *part.Value[[]patch]) Rule {
	return part.Of2(patchedGang, part.Gang, patches)
}), each(patchLists, func(patches *part.Value[[]patch]) Rule {
	return part.Of2(topologyKeys, part.Gang, patches)
}), []Rule{
	part.Of1(tolerationFields, tolerations),
	part.Of2(environmentSources, part.EnvFrom, part.Unlaunched),
	part.Of3(sidecarNames, part.Sidecars, part.Container, workerPatch),
	part.Of3(sidecarMounts, part.Sidecars, part.Storage, hasTmp),
	part.Of1(sidecarEnvironment, part.Sidecars),
	part.Of3(workerPorts, part.Sidecars, part.Metrics, ownPorts),
})

// takenNames are the names that containers of the workers and of roles have already; a group's has the group's name.
var takenNames = part.OfSpec("framework target", func(s *job.Spec) map[string][]string {
	taken := map[string][]string{}
	for _, role := range append(slices.Clone(job.RoleNames), job.RoleWorker) {
		taken[role] = s.TakenNames(role)
	}
	return taken
})

// containerNames refuses a second container of a name: the names of a pod's containers are unique.
func containerNames(p *Problems, target string, patches []patch, takenNames map[string][]string) {
	for _, patch := range patches {
		role, taken := patch.role, takenNames[patch.role]
		if taken == nil {
			taken = []string{role}
		}
		fail := func(list string, i int, name, remedy string) {
			why := "is the name of the " + role + "'s own container"
			switch {
			case role == job.RoleWorker:
				why = "is what target " + target + " calls the workers' container"
			case job.Trains(role):
				why = "is what target " + target + " calls the " + role + "'s container"
			}
			p.fail(fmt.Sprintf("%s.spec.%s[%d].name", patch.at, list, i), "reserved", "%s %s: %schoose another name",
				name, why, remedy)
		}
		for i, c := range patch.Spec.Containers {
			if slices.Contains(taken, c.Name) && c.Name != role {
				fail("containers", i, c.Name, "name it "+role+" to change that one, or ")
			}
		}
		for i, c := range patch.Spec.InitContainers {
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

// podPatchOf is nothing for what podpatch.Validate refuses, or where there is none.
func podPatchOf(raw json.RawMessage) (p podPatch) {
	if json.Unmarshal(raw, &p) != nil {
		return podPatch{}
	}
	return p
}

// patch is the escape hatch of one role, where it stands, and where the role's image does. The role's own container has
// its name there.
type patch struct {
	role, at, image string
	raw             json.RawMessage
	podPatch
}

// patchLists are the escape hatches: those of the workers, of roles and of groups.
var patchLists = []*part.Value[[]patch]{
	part.OfSpec("podTemplate", func(s *job.Spec) []patch {
		return appendPatch(nil, job.RoleWorker, "spec", "spec.image", s.PodTemplate)
	}),
	part.OfSpec("roles", func(s *job.Spec) (all []patch) {
		for i, row := range job.RoleTable {
			pods := job.RoleTable[i].Settings(&s.Roles)
			all = appendPatch(all, row.Name, "spec.roles."+row.Name, row.Image, pods.PodTemplate)
		}
		return all
	}),
	part.OfSpec("groups", func(s *job.Spec) (all []patch) {
		for i, g := range s.Groups {
			at := fmt.Sprintf("spec.groups[%d]", i)
			all = appendPatch(all, g.Name, at, at+".image", g.PodTemplate)
		}
		return all
	}),
}

func appendPatch(all []patch, role, at, image string, raw json.RawMessage) []patch {
	if raw == nil {
		return all
	}
	return append(all, patch{role, at + ".podTemplate", image, raw, podPatchOf(raw)})
}

// each makes a rule for each of some values, so that a mistake in the fields of one hides nothing of the others.
func each[T any](values []*part.Value[T], rule func(*part.Value[T]) Rule) (all []Rule) {
	for _, v := range values {
		all = append(all, rule(v))
	}
	return all
}

// workerPatch is the escape hatch of the workers.
var workerPatch = part.OfSpec("podTemplate", func(s *job.Spec) podPatch { return podPatchOf(s.PodTemplate) })

// patchedEnv are the names of the variables that the escape hatches give training pods, by the paths of the names.
var patchedEnv = func() (all []*part.Value[map[string]string]) {
	for _, list := range patchLists {
		all = append(all, part.New(strings.Join(list.Fields(), " "), func(j *job.Job) map[string]string {
			names := map[string]string{}
			for _, p := range list.Of(j) {
				for i, c := range p.Spec.Containers {
					for k, e := range c.Env {
						if c.Name == p.role && job.Trains(p.role) { // no container of the author's
							names[fmt.Sprintf("%s.spec.containers[%d].env[%d].name", p.at, i, k)] = e.Name
						}
					}
				}
			}
			return names
		}))
	}
	return all
}()

// variables are the names of those that the author gives training pods, in env and in escape hatches.
var variables = append(patchedEnv, part.OfSpec("env", func(s *job.Spec) map[string]string {
	names := map[string]string{}
	for i, e := range s.Env {
		names[fmt.Sprintf("spec.env[%d].name", i)] = e.Name
	}
	return names
}))

// podTemplates asks the one package that knows pod templates what in the escape hatches is none of theirs.
func podTemplates(p *Problems, target string, all []job.Sidecar, patches []patch) {
	for _, patch := range patches {
		var sidecars []string
		for i := range all {
			if patch.role == job.RoleWorker {
				sidecars = append(sidecars, all[i].Name)
			}
		}
		for _, m := range podpatch.Validate(patch.raw, patch.role, patch.image, sidecars...) {
			at := patch.at
			if m.Path != "" {
				at += "." + m.Path
			}
			p.fail(at, "pod-template", "%s", m.Msg)
		}
		if patch.Spec.ActiveDeadlineSeconds != nil && target == job.TargetPods {
			p.fail(patch.at+".spec.activeDeadlineSeconds", "pod-template", "is set by tegen: use "+
				"spec.failure.deadline, which is the pods' own on target pods")
		}
		podKeys(p, target, patch)
	}
}

// podKeys refuses labels that something finds pods by, and annotations of tegen's own. Other labels of
// app.kubernetes.io are the author's: nothing selects by them.
func podKeys(p *Problems, target string, patch patch) {
	labels, annotations := patch.at+".metadata.labels", patch.at+".metadata.annotations"
	for key := range patch.Metadata.Labels {
		qualifiedKey(p, labels, key)
		switch {
		case key == "worker" && target != job.TargetPods,
			strings.HasPrefix(key, "app.kubernetes.io/") && key != names.LabelComponent && key != names.LabelManagedBy:
		case reservedKey("labels", key):
			p.failKey(labels, key, "reserved", "tegen or a controller sets it, and Services, budgets and policies "+
				"find pods by it: choose another key")
		}
	}
	for key := range patch.Metadata.Annotations {
		qualifiedKey(p, annotations, key)
		if reservedKey("annotations", key) {
			p.failKey(annotations, key, "reserved", "is set by tegen: choose another key")
		}
	}
}

// reservedKey says whether the definitions refuse a key of metadata because tegen or a controller sets it.
func reservedKey(field, key string) bool {
	return definition.Job().Field("metadata").Schema.Field(field).Schema.KeyRefusal(key) == "reserved"
}

// qualifiedKey refuses what no API server takes, in a mapping that the schema leaves open.
func qualifiedKey(p *Problems, mapping, key string) {
	if msgs := utilvalidation.IsQualifiedName(key); len(msgs) > 0 {
		p.failKey(mapping, key, "format",
			"is not a key: an optional domain and '/', then at most 63 letters, digits, '-', '_' and '.'")
	}
}

// podFields refuses fields of the escape hatch that the target's controller would lose.
func podFields(p *Problems, framework, name string, patches []patch) {
	release, old := target.PodReleases[[2]string{framework, name}]
	for _, patch := range patches {
		if !old || !job.Trains(patch.role) { // the others' pods are made by no controller of the target's
			continue
		}
		for _, at := range lostFields(patch, release) {
			p.fail(at, "target",
				"target %s of framework %s cannot carry this: its controller makes pods of Kubernetes %s, which had "+
					"no such field", name, framework, release.Version)
		}
	}
}

// lostFields are the paths of those that came after a release.
func lostFields(patch patch, release target.PodRelease) (paths []string) {
	later := func(at string, fields map[string]json.RawMessage, known string) {
		for name := range fields {
			if !slices.Contains(strings.Fields(known), name) {
				paths = append(paths, at+"."+name)
			}
		}
	}
	at, pod := patch.at+".spec", target.FieldsOf(target.FieldsOf(patch.raw)["spec"])
	later(at, pod, release.Pod)
	later(at+".securityContext", target.FieldsOf(pod["securityContext"]), release.PodContext)
	for _, list := range []string{"containers", "initContainers"} {
		var containers []map[string]json.RawMessage
		if json.Unmarshal(pod[list], &containers) != nil { // podTemplates says what is wrong
			continue
		}
		for i, c := range containers {
			item := fmt.Sprintf("%s.%s[%d]", at, list, i)
			later(item, c, release.Container)
			later(item+".securityContext", target.FieldsOf(c["securityContext"]), release.ContContext)
		}
	}
	return paths
}

// others are the words for the roles that a job has beside its workers.
var others = part.OfSpec("framework target mxnet.mode bytescheduler.mode mpi.launch rendezvous.store "+
	"rendezvous.backend rendezvous.proxy rendezvous.etcd storage ssh.server ssh.secret workers.max groups",
	(*job.Spec).OthersWords)

// absentRoles refuse settings of pods that the job does not have, a rule a role. Those of an environment are for the
// jobs that have them.
func absentRoles() (all []Rule) {
	for _, role := range job.RoleTable {
		at := "spec.roles." + role.Name
		present := part.OfSpec(role.Fields, role.In)
		all = append(all, part.Of3(func(p *Problems, row *target.Target, present bool, words string) {
			if !p.IsSet(at) || p.Merged(at) || present || row == nil || !row.Carries("roles."+role.Name) {
				return
			}
			text := fmt.Sprintf("this job has no %s, which comes with %s", role.Name, role.ComesWith)
			if p.Knows(others) {
				text += "; " + words
			}
			p.fail(at, "requires", "%s", text)
		}, target.Row, present, others.Optional()))
	}
	return all
}

// tolerations are those of the workers and of each role that has some, by their paths.
var tolerations = part.OfSpec("placement.tolerations roles groups", func(s *job.Spec) map[string][]job.Toleration {
	all := map[string][]job.Toleration{"spec.placement.tolerations": s.Placement.Tolerations}
	for _, name := range s.OtherRoles() {
		all[s.PlaceOf(name)+".tolerations"] = s.Role(name).Tolerations
	}
	return all
})

// tolerationFields refuses tolerations that Kubernetes does not take.
func tolerationFields(p *Problems, tolerations map[string][]job.Toleration) {
	for list, all := range tolerations {
		for i, t := range all {
			at := fmt.Sprintf("%s[%d]", list, i)
			switch {
			case t.Operator == "Exists" && t.Value != "":
				p.fail(at+".value", "requires", "operator Exists takes no value")
			case t.Key == "" && t.Operator != "Exists":
				p.fail(at, "requires", "a toleration without a key tolerates every taint and needs operator: Exists")
			case t.Seconds != nil && t.Effect != "NoExecute":
				p.fail(at+".seconds", "requires", "only effect NoExecute has a time")
			}
		}
	}
}

// environmentSources refuses what would stand in for variables that tegen sets, and what adds nothing.
func environmentSources(p *Problems, sources []job.EnvFrom, unlaunched bool) {
	for i, e := range sources {
		if strings.HasPrefix(e.Prefix, "PET_") && !unlaunched {
			p.fail(fmt.Sprintf("spec.envFrom[%d].prefix", i), "reserved", "%s starts the names of torchrun's own "+
				"settings, which tegen sets: see spec.rendezvous and spec.workers", e.Prefix)
		}
	}
	sourcesTwice(p, "spec.envFrom", sources)
}

// sourcesTwice refuses a source that brings nothing that is not there.
func sourcesTwice(p *Problems, at string, sources []job.EnvFrom) {
	for i, e := range sources {
		same := func(other job.EnvFrom) bool {
			return e.Secret == other.Secret && e.ConfigMap == other.ConfigMap && e.Prefix == other.Prefix
		}
		if first := slices.IndexFunc(sources, same); first < i {
			p.fail(fmt.Sprintf("%s[%d]", at, i), "duplicate", "is %s[%d] again: leave it out", at, first)
		}
	}
}

// sidecarNames refuses a second container of a name in one pod. worker is what the target calls the workers' own.
func sidecarNames(p *Problems, sidecars []job.Sidecar, worker string, patch podPatch) {
	seen := map[string]int{}
	for i, s := range sidecars {
		at := fmt.Sprintf("spec.sidecars[%d].name", i)
		first, twice := seen[s.Name]
		switch {
		case twice:
			p.fail(at, "duplicate", "%s is the name of spec.sidecars[%d] already: choose another name", s.Name, first)
		case s.Name != job.RoleWorker && s.Name == worker:
			p.fail(at, "reserved", "%s is the name of the workers' own container: choose another name", s.Name)
		case slices.ContainsFunc(patch.Spec.Containers, func(c patchedContainer) bool { return c.Name == s.Name }):
			p.fail(at, "duplicate", "%s is a container of spec.podTemplate already, which holds up the end of the "+
				"job: leave it out there", s.Name)
		default:
			seen[s.Name] = i
		}
	}
}

// hasTmp says whether the workers have a scratch space at /tmp.
var hasTmp = part.OfSpec("resources.tmp", func(s *job.Spec) bool { return !s.Resources.Tmp.None })

// sidecarMounts refuses volumes that the workers do not have, and two at one place.
func sidecarMounts(p *Problems, sidecars []job.Sidecar, storage []job.Storage, tmp bool) {
	volumes := map[string]string{}
	var known []string
	for i := range storage {
		volumes[storage[i].Name], known = storage[i].MountPath, append(known, storage[i].Name)
	}
	if tmp {
		volumes[job.VolumeTmp], known = "/tmp", append(known, job.VolumeTmp)
	}
	for i, s := range sidecars {
		taken := map[string]string{}
		for k, m := range s.Mounts {
			at := fmt.Sprintf("spec.sidecars[%d].mounts[%d]", i, k)
			worker, ok := volumes[m.Volume]
			if !ok {
				p.fail(at+".volume", "requires", "the job has no volume %s: one of %s", m.Volume,
					cmp.Or(strings.Join(known, ", "), "none"))
				continue
			}
			where := path.Clean(cmp.Or(m.Path, worker))
			if where == "/" {
				p.fail(at+".path", "requires", "hides the whole image: name a directory")
			}
			if other, twice := taken[where]; twice {
				p.fail(at, "duplicate", "is at %s, where %s is already: set path", where, other)
			}
			taken[where] = m.Volume
		}
	}
}

// sidecarEnvironment refuses variables and sources that stand twice in one container.
func sidecarEnvironment(p *Problems, sidecars []job.Sidecar) {
	for i, s := range sidecars {
		seen := map[string]bool{}
		for k, e := range s.Env {
			if seen[e.Name] {
				p.fail(fmt.Sprintf("spec.sidecars[%d].env[%d].name", i, k), "duplicate", "%s is set twice", e.Name)
			}
			seen[e.Name] = true
		}
		sourcesTwice(p, fmt.Sprintf("spec.sidecars[%d].envFrom", i), s.EnvFrom)
	}
}

// ownPorts are those on which a worker's own program listens, with the fields that set them.
var ownPorts = part.OfSpec("framework target bytescheduler ssh.server ssh.port jax.port mpi.launch workers.max "+
	"workers.master rendezvous.store rendezvous.port", (*job.Spec).OwnPorts)

// workerPorts refuses two listeners on one port of a worker's pod, whose containers share one network.
func workerPorts(p *Problems, sidecars []job.Sidecar, m *job.Metrics, own map[int32]string) {
	taken := maps.Clone(own)
	take := func(at string, port int32, owner string) {
		if other, twice := taken[port]; twice {
			p.fail(at, "duplicate", "%d is the port of %s in the same pod: choose another", port, other)
		}
		taken[port] = owner
	}
	if m != nil {
		take("spec.metrics.port", m.Port, "spec.metrics.port")
	}
	for i, s := range sidecars {
		for _, name := range slices.Sorted(maps.Keys(s.Ports)) {
			take(fmt.Sprintf("spec.sidecars[%d].ports.%s", i, name), s.Ports[name], fmt.Sprintf("spec.sidecars[%d]", i))
		}
	}
}
