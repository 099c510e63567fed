// Package generators turns a *job.Job into typed Kubernetes objects: one function a concern, in a fixed order. A
// generator cannot fail, since schema.Load refused everything that could go wrong, and it reads neither clock, disk,
// network nor chance, so that the same job gives the same objects. Objects are complete when they are made: nothing
// edits them later.
package generators

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/schema/job"
)

// Generator makes the objects of one concern.
type Generator struct {
	Name     string
	Doc      string // one line for people
	Needs    string // an example of the fields of spec without which it renders nothing, "" if most jobs have it
	generate func(*job.Job) []runtime.Object
}

// All lists the generators in the order of their output: what others refer to comes first.
var All = []Generator{
	{"namespace", "Namespace, where the job asks for one", "createNamespace: true", namespace},
	{"identity", "ServiceAccount of the pods, with its cloud identity", "", identity},
	{
		"access", "Role and RoleBinding of what makes pods itself: DLRover's master",
		"framework: dlrover, target: elasticjob", access,
	},
	{
		"storage", "StorageClass, PersistentVolume and PersistentVolumeClaim of each volume",
		"storage: [{mountPath: /data, dynamic: {size: 10Gi}}]", storage,
	},
	{
		"etcd", "etcd StatefulSet with its Services and budget, where workers meet in one",
		"rendezvous: {backend: etcd, store: etcd}", etcd,
	},
	{
		"companion", "tegen-rendezvous with its Services, budget and certificates, where workers meet in one",
		`rendezvous: {store: companion}, images: {rendezvous: "example.org/tegen-rendezvous:1"}`, companion,
	},
	{
		"claims", "ResourceClaimTemplate of the workers' accelerators, where a class of devices has them",
		"resources: {gpu: 1, cpu: 8, memory: 64Gi, deviceClass: gpu.nvidia.com}", claims,
	},
	{"ssh", "scripts and keys that a launcher starts processes in other pods with", "framework: horovod", ssh},
	{"service", "headless Services that give workers their names", "", service},
	{"network", "NetworkPolicies: workers hear workers, and so do an etcd and a companion", "", network},
	{
		"metrics", "PodMonitor for Prometheus, if the job asks for one",
		"metrics: {port: 9400, podMonitor: true}", metrics,
	},
	{"disruption", "PodDisruptionBudget that keeps the minimum of workers", "", disruption},
	{
		"prefetch", "Jobs that fetch datasets into volumes, once",
		`storage: [{mountPath: /data, claim: data, dataset: {url: "https://example.org/data.tar"}}]`, prefetch,
	},
	{
		"gang", "PodGroups and Workloads, for schedulers that place all pods or none",
		"gang: {scheduler: coscheduling}", gang,
	},
	{"worker", "the training pods: an Indexed Job, or bare pods", "", worker},
}

// Names returns the names of all generators in order.
func Names() []string {
	names := make([]string, len(All))
	for i, g := range All {
		names[i] = g.Name
	}
	return names
}

// Needs is an example of the fields without which a generator renders nothing, "" if most jobs have it.
func Needs(name string) string {
	for _, g := range All {
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

// Generate returns the concerns of a job that have objects, in order; only names the generators to run, none means all.
func Generate(j *job.Job, only ...string) []Concern {
	var out []Concern
	for _, g := range All {
		if len(only) > 0 && !slices.Contains(only, g.Name) {
			continue
		}
		if objects := g.generate(j); len(objects) > 0 {
			out = append(out, Concern{g.Name, objects})
		}
	}
	return out
}
