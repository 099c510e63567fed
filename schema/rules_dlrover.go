package schema

import (
	"fmt"
	"slices"

	"github.com/tegen-dev/tegen/internal/structural"
)

var dlroverRules = []rule{
	{(*validation).dlrover, "framework dlrover workers.replicas workers.min workers.max"},
	{(*validation).dlroverMaster, "framework metadata resources.cpu resources.memory env podTemplate"},
	{(*validation).dlroverPriority, "framework placement.priorityClass podTemplate"},
	{(*validation).dlroverProgram, "framework command args"},
}

// dlroverName is the longest name for which elasticjob-<name>-dlrover-master, a Service, has 63 characters.
const dlroverName = 37

// dlrover holds the settings of DLRover together.
func (r *validation) dlrover() {
	d, w := &r.Spec.DLRover, &r.Spec.Workers
	if r.Spec.Framework != FrameworkDLRover {
		return
	}
	if d.Brain != "" && d.OptimizeMode != "cluster" {
		r.fail("spec.dlrover.brain", "requires",
			"only optimizeMode cluster asks a brain: leave it out, or set optimizeMode: cluster")
	}
	if d.ExcludeStraggler && !d.NetworkCheck {
		r.fail("spec.dlrover.excludeStraggler", "requires",
			"only the network check finds stragglers: set networkCheck: true")
	}
	if w.Max > w.Replicas {
		r.fail("spec.workers.max", "order",
			"%d is above replicas %d, and DLRover starts no more workers than replicas: leave max out", w.Max,
			w.Replicas)
	}
	if u := d.NodeUnit; u > 0 && (w.Min%u != 0 || w.Replicas%u != 0) {
		r.fail("spec.dlrover.nodeUnit", "order", "min %d and replicas %d must be multiples of %d", w.Min, w.Replicas, u)
	}
}

// dlroverMaster refuses what the master would not pass on to the workers, or would change.
func (r *validation) dlroverMaster() {
	if r.Spec.Framework != FrameworkDLRover {
		return
	}
	if len(r.Metadata.Name) > dlroverName {
		r.fail("metadata.name", "range",
			"has %d characters, and the Service elasticjob-<name>-dlrover-master has room for %d", len(r.Metadata.Name),
			dlroverName)
	}
	for at, annotations := range map[string]map[string]string{
		"metadata.annotations": r.Metadata.Annotations, "spec.workload.annotations": r.Spec.Workload.Annotations,
	} {
		if _, ok := annotations["pending_timeout"]; ok {
			r.failKey(at, "pending_timeout", "reserved", "is set by spec.dlrover.pendingTimeout")
		}
	}
	res := &r.Spec.Resources
	if res.CPU.MilliValue()%100 != 0 {
		r.fail("spec.resources.cpu", "format", "DLRover's master rounds %s to tenths of a CPU: use a multiple of 100m",
			res.CPU.String())
	}
	if res.Memory.Value()%(1<<20) != 0 {
		r.fail("spec.resources.memory", "format", "DLRover's master rounds %s down to whole Mi: use a multiple of 1Mi",
			res.Memory.String())
	}
	for i, e := range r.Spec.Env {
		if slices.Contains(masterEnv, e.Name) {
			r.fail(fmt.Sprintf("spec.env[%d].name", i), "reserved", "%s is set by DLRover's master", e.Name)
		}
	}
	for at, name := range r.patchedEnv() {
		if slices.Contains(masterEnv, name) {
			r.fail(at+".name", "reserved", "%s is set by DLRover's master", name)
		}
	}
	patch := r.patch()
	if patch.Spec.TerminationGracePeriodSeconds != nil {
		r.fail("spec.podTemplate.spec.terminationGracePeriodSeconds", "requires",
			"DLRover's master gives every pod Kubernetes' own 30s: leave it out")
	}
	for i, c := range patch.Spec.Containers {
		if c.Name == "worker" && c.Lifecycle != nil {
			r.fail(fmt.Sprintf("spec.podTemplate.spec.containers[%d].lifecycle", i), "requires",
				"DLRover's master drops it: leave it out")
		}
	}
}

// dlroverPriority refuses the names of classes of which the master dies (dlrover/python/common/node.py).
func (r *validation) dlroverPriority() {
	if r.Spec.Framework != FrameworkDLRover {
		return
	}
	for at, class := range map[string]string{
		"spec.placement.priorityClass":            r.Spec.Placement.PriorityClass,
		"spec.podTemplate.spec.priorityClassName": r.patch().Spec.PriorityClassName,
	} {
		if class != "" && class != "high" && class != "low" {
			r.fail(at, "requires", "DLRover's master ends at a class called %s: use high or low, the two that it takes",
				class)
		}
	}
}

// masterEnv is what the master puts behind a worker's own variables (dlrover/python/master/scaler/pod_scaler.py).
var masterEnv = []string{
	"DLROVER_MASTER_ADDR", "DLROVER_MASTER_SERVICE_TYPE", "ELASTIC_JOB_NAME", "JOB_UID", "NODE_TYPE", "NODE_ID",
	"NODE_NUM", "NODE_RANK", "POD_IP", "NODE_IP", "POD_NAME", "RANK", "WORLD_SIZE", "WORKER_TYPE", "WORKER_ID",
	"WORKER_NUM", "WORKER_RANK", "MONITOR_ENABLED", "GRPC_ENABLE_FORK_SUPPORT",
}

// dlroverProgram refuses another's launcher.
func (r *validation) dlroverProgram() {
	if l := r.Spec.Launch(); r.Spec.Framework == FrameworkDLRover && l != nil && !l.dlrover() {
		r.fail("spec.command", "requires",
			"%s does not talk to DLRover's master: leave it out, tegen starts dlrover-run", l.Program)
	}
}

// dlroverNames refuses two DLRover jobs of one name, in whichever namespaces: its controller knows jobs by name alone
// (go/elasticjob/pkg/controllers).
func dlroverNames(jobs []loaded, roots []*structural.Node) (errs Errors) {
	first := map[string]string{}
	for i, l := range jobs {
		if l.job == nil || l.job.Spec.Framework != FrameworkDLRover || l.invalid.touch("metadata") {
			continue
		}
		m := l.job.Metadata
		if other, ok := first[m.Name]; ok && other != m.Namespace {
			errs = append(errs,
				roots[i].Errorf("metadata.name", "duplicate",
					"%q is the name of a job in namespace %s too, and DLRover's controller takes jobs of one name for "+
						"one job", m.Name, other))
			continue
		}
		first[m.Name] = m.Namespace
	}
	return errs
}
