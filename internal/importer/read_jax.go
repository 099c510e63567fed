package importer

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

// rankOfSlice is what a shell reckons before it starts a process of one of several slices.
var rankOfSlice = lazy.Regexp(
	`^set -eu\nexport JAX_PROCESS_ID=\$\(\(SLICE_ID \* [0-9]+ \+ JOB_COMPLETION_INDEX\)\)\nexec "\$@"\n$`)

// isJAX says whether a container's processes meet by JAX's own variables. A program that finds the others in another
// way, as on a TPU whose webhook tells it, needs none of them.
func isJAX(c view) bool {
	return newProgram(c).launcher == "" && slices.ContainsFunc(c.at("env").items(), func(e view) bool {
		return slices.Contains([]string{"JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"},
			e.at("name").text())
	})
}

// meetingFramework is the framework of pods that meet at the first of them.
func meetingFramework(o *object, template view) string {
	if frameworkOf(o, template) == job.FrameworkJAX {
		return job.FrameworkJAX
	}
	return job.FrameworkTorchelastic
}

// trainer reads a worker of the draft's framework: its program, and how it finds the others.
func (d *draft) trainer(pod, c view) {
	if d.get("spec.framework").text() == job.FrameworkJAX {
		d.jax(pod, c)
		return
	}
	d.torch(pod, c, nil)
}

// jax reads a worker of JAX.
func (d *draft) jax(pod, c view) {
	p := newProgram(c)
	if own := p.command; len(own) > 4 && rankOfSlice().MatchString(own[2]) { // as tegen renders it
		p = &program{
			command: own[4:], args: p.args, start: -1, inText: -1, shell: -1, from: p.from[4:],
			taken: map[string]string{}, at: map[string]view{}, flags: map[string]bool{}, left: map[string]string{},
		}
		c.at("command").markTranslated()
	}
	d.script(p, pod, c)
	p.set(d, c)
	d.env(c, d.jaxVariables(c)...)
}

// jaxVariables are the names of the variables that tegen sets, with what is read of them.
func (d *draft) jaxVariables(c view) (read []string) {
	variable := func(name string) view { return c.at("env").item("name", name) }
	if e := variable("JAX_COORDINATOR_ADDRESS"); e.isSet() {
		d.coordinator(e)
	}
	replicas := d.get("spec.workers.replicas").text()
	if e := variable("JAX_NUM_PROCESSES"); e.isSet() && e.at("value").text() != replicas {
		d.note(e, Changed, "there are as many processes as workers, %s", replicas)
		e.markTranslated()
	}
	if e := variable("JAX_PROCESS_ID"); e.isSet() && !strings.Contains(fieldPath(e), "job-completion-index") {
		d.note(e, Translated, "the pod's completion index is the number of its process")
		e.markTranslated()
	}
	read = slices.Clone(job.JAXVariables)
	if e := variable("JAX_LOCAL_DEVICE_IDS"); e.at("value").text() == d.allDevices() {
		read = append(read, "JAX_LOCAL_DEVICE_IDS")
	}
	return append(read, d.sliceVariables(c)...)
}

// sliceVariables are the names of the variables by which tegen tells a worker which slice it is of.
func (d *draft) sliceVariables(c view) (read []string) {
	n, _ := d.get("spec.workers.slices").number()
	for _, name := range job.SliceVariables {
		e := c.at("env").item("name", name)
		if n > 1 && (strings.HasSuffix(fieldPath(e), "['jobset.sigs.k8s.io/job-index']") ||
			name == "NUM_SLICES" && e.at("value").text() == strconv.FormatInt(n, 10)) {
			read = append(read, name)
		}
	}
	return read
}

// fieldPath is the field of the pod that a variable holds.
func fieldPath(e view) string { return e.at("valueFrom", "fieldRef", "fieldPath").text() }

// coordinator reads the port, and the cluster's domain, of the address of the first worker.
func (d *draft) coordinator(e view) {
	host, port, _ := strings.Cut(e.at("value").text(), ":")
	if n, err := strconv.ParseInt(port, 10, 64); err == nil {
		d.set("spec.jax.port", n, e)
	}
	if _, domain, ok := strings.Cut(host, ".svc."); ok {
		d.set("spec.network.clusterDomain", domain, e)
	} else {
		d.note(e, Translated, "the first worker serves the coordinator, by its own full name")
		e.markTranslated()
	}
}

// mostDevices are the accelerators of a worker that the schema accepts.
const mostDevices = 1024

// allDevices are the numbers of all accelerators of a worker.
func (d *draft) allDevices() string {
	n, _ := d.get("spec.resources.gpu").number()
	ids := []string{"0"}
	if strings.HasSuffix(d.get("spec.resources.gpuResource").text(), "/gpu") {
		for i := int64(1); i < min(n, mostDevices); i++ {
			ids = append(ids, strconv.FormatInt(i, 10))
		}
	}
	return strings.Join(ids, ",")
}
