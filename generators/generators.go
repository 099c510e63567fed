// Package generators turns a *job.Job into typed Kubernetes objects: one function a concern, in a fixed order. A
// generator cannot fail, since schema.Load refused everything that could go wrong, and it reads neither clock, disk,
// network nor chance, so that the same job gives the same objects. Objects are complete when they are made: nothing
// edits them later.
//
// # Generators of other programs
//
// A program that extends tegen passes values of [Generator] to tegen.Main. Such a generator may return errors, because
// it may read what no schema checks, such as an annotation of the job. Otherwise the same rules apply:
//
//   - It does not change the job, which has been merged with its Environment and has all defaults. Several goroutines
//     call it at the same time, each with another job. It copies a slice or map of the job before it changes that.
//   - It returns no objects for a job that does not concern it.
//   - Its output depends on the job alone: not on a clock, files, a network or random numbers.
//   - It makes the metadata of each object with [Meta], [ClusterMeta] or [VersionedMeta]. The labels assign the object
//     to its job, and [Selector] selects pods by them. The name starts with that of the job.
//   - Objects have apiVersion and kind, except types of core/v1, apps/v1, batch/v1, networking/v1, policy/v1, rbac/v1
//     and storage/v1 of k8s.io/api. A custom resource can be a struct with json tags or an *unstructured.Unstructured.
//
// tegen checks the objects together with its own: references, policies, and names that occur twice. An error, a panic
// or an object without this metadata is an error of the job, with file, line and column, and nothing is written.
//
// These do not change within one minor release of tegen: the exported fields of job.Job and its parts, except
// job.Job.Origin, the type Generator, these four functions and [ContentHash]. Everything else that packages of tegen
// export is for tegen itself.
package generators

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

// Generator makes the objects of one concern.
type Generator struct {
	// Name selects the generator in the configuration of the KRM function, and names the file that "tegen render -o"
	// writes: lower-case letters, digits and '-'.
	Name string
	// Doc is one line for people, which "tegen fn --list" prints.
	Doc string
	// Needs is an example of the fields of spec without which it renders nothing, "" if most jobs have it. Messages of
	// the KRM function show it.
	Needs string
	// Generate returns the objects of a job, in the order of their output. None means that the job has no use for it.
	Generate func(*job.Job) ([]runtime.Object, error)
}

// builtin lists tegen's own generators in the order of their output: what others refer to comes first.
var builtin = []Generator{
	{"namespace", "Namespace, where the job asks for one", "createNamespace: true", own(namespace)},
	{"identity", "ServiceAccount of the pods, with its cloud identity", "", own(identity)},
	{
		"access", "Role and RoleBinding of what makes pods itself: DLRover's master",
		"framework: dlrover, target: elasticjob", own(access),
	},
	{
		"storage", "StorageClass, PersistentVolume and PersistentVolumeClaim of each volume",
		"storage: [{mountPath: /data, dynamic: {size: 10Gi}}]", own(storage),
	},
	{
		"etcd", "etcd StatefulSet with its Services and budget, where workers meet in one",
		"rendezvous: {backend: etcd, store: etcd}", own(etcd),
	},
	{
		"companion", "tegen-rendezvous with its Services, budget and certificates, where workers meet in one",
		`rendezvous: {store: companion}, images: {rendezvous: "example.org/tegen-rendezvous:1"}`, own(companion),
	},
	{
		"claims", "ResourceClaimTemplate of the workers' accelerators, where a class of devices has them",
		"resources: {gpu: 1, cpu: 8, memory: 64Gi, deviceClass: gpu.nvidia.com}", own(claims),
	},
	{"ssh", "scripts and keys that a launcher starts processes in other pods with", "framework: horovod", own(ssh)},
	{"service", "headless Services that give workers their names", "", own(service)},
	{"network", "NetworkPolicies: workers hear workers, and so do an etcd and a companion", "", own(network)},
	{
		"metrics", "PodMonitor for Prometheus, if the job asks for one",
		"metrics: {port: 9400, podMonitor: true}", own(metrics),
	},
	{"disruption", "PodDisruptionBudget that keeps the minimum of workers", "", own(disruption)},
	{
		"prefetch", "Jobs that fetch datasets into volumes, once",
		`storage: [{mountPath: /data, claim: data, dataset: {url: "https://example.org/data.tar"}}]`, own(prefetch),
	},
	{
		"gang", "PodGroups and Workloads, for schedulers that place all pods or none",
		"gang: {scheduler: coscheduling}", own(gang),
	},
	{"worker", "the training pods: an Indexed Job, or bare pods", "", own(worker)},
}

// own is a generator of tegen's own, which cannot fail.
func own(generate func(*job.Job) []runtime.Object) func(*job.Job) ([]runtime.Object, error) {
	return func(j *job.Job) ([]runtime.Object, error) { return generate(j), nil }
}

// Set is the generators of a program, in the order of their output: tegen's own, and those that the program adds. The
// zero value has tegen's own alone.
type Set struct{ more []Generator }

// NewSet returns tegen's own generators and more. It refuses what is incomplete, and two generators with one name.
func NewSet(more ...Generator) (Set, error) {
	taken := map[string]bool{"kustomization": true} // a file of each job's folder
	for _, g := range builtin {
		taken[g.Name] = true
	}
	for _, g := range more {
		switch {
		case !generatorName().MatchString(g.Name):
			return Set{}, fmt.Errorf("generator %q: Name must have 2 to 40 lower-case letters, digits and '-', with a "+
				"letter first", g.Name)
		case taken[g.Name]:
			return Set{}, fmt.Errorf("generator %q: the name is taken; give it another one", g.Name)
		case g.Doc == "" || strings.Contains(g.Doc, "\n"):
			return Set{}, fmt.Errorf("generator %q: Doc must be one line that says what it renders", g.Name)
		case g.Generate == nil:
			return Set{}, fmt.Errorf("generator %q: Generate is nil; set it to the function that makes objects",
				g.Name)
		}
		taken[g.Name] = true
	}
	return Set{slices.Clone(more)}, nil
}

var generatorName = lazy.Regexp(`^[a-z][a-z0-9-]{0,38}[a-z0-9]$`)

// All lists the generators in order.
func (s Set) All() []Generator { return slices.Concat(builtin, s.more) }

// More lists those that are not tegen's own.
func (s Set) More() []Generator { return s.more }

// Names returns the names of all generators in order.
func (s Set) Names() (names []string) {
	for _, g := range s.All() {
		names = append(names, g.Name)
	}
	return names
}

// Needs is an example of the fields without which a generator renders nothing, "" if most jobs have it.
func (s Set) Needs(name string) string {
	for _, g := range s.All() {
		if g.Name == name {
			return g.Needs
		}
	}
	return ""
}

// Concern is the output of one generator for one job.
type Concern struct {
	Name    string
	Objects []runtime.Object
}

// Generate returns the concerns of a job for which tegen's own generators make objects, in order; only names the
// generators to run, none means all.
func Generate(j *job.Job, only ...string) []Concern {
	var out []Concern
	for _, g := range builtin {
		if len(only) > 0 && !slices.Contains(only, g.Name) {
			continue
		}
		if objects, _ := g.Generate(j); len(objects) > 0 { // own returns no error
			out = append(out, Concern{g.Name, objects})
		}
	}
	return out
}
