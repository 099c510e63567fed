package importer

import (
	"reflect"
	"slices"

	"github.com/tegen-dev/tegen/schema/job"
)

// roles are the pod templates of a job of several roles, with their numbers of pods.
type roles struct {
	scheduler, server, worker role
}

type role struct {
	template, replicas view
}

// count is the number of pods. The default is one.
func (r role) count() int64 {
	if n, ok := r.replicas.number(); ok {
		return n
	}
	return 1
}

// nodeVariables make a process a node of ps-lite; tegen and the operators set them.
var nodeVariables = []string{
	"DMLC_ROLE", "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_NUM_SERVER", "DMLC_NUM_WORKER",
	"DMLC_WORKER_ID", "DMLC_USE_KUBERNETES", "MX_CONFIG",
}

// parameterServers reads the workers and, where there are any, the servers, which the scheduler must be like.
func (d *draft) parameterServers(all roles) {
	d.set("spec.workers.replicas", all.worker.count(), all.worker.replicas)
	d.setNumber("spec.workers.replicas", all.worker.replicas)
	if all.server.template.isSet() {
		d.otherRolePods = 1 + all.server.count()
		d.set("spec.servers.replicas", all.server.count(), all.server.replicas)
	}
	c := d.worker(all.worker.template)
	p := newProgram(c)
	d.script(p, all.worker.template.at("spec"), c)
	p.set(d, c)
	d.env(c, append(slices.Clone(nodeVariables), d.interfaceOf(c)...)...)
	d.servers(all, c)
	d.roleOf(job.RoleServer, all.server.template, c)
	d.roleOf(job.RoleScheduler, all.scheduler.template, c)
	for _, port := range trainingContainer(all.scheduler.template.at("spec")).at("ports").items() {
		if n, ok := port.at("containerPort").number(); ok {
			d.set("spec.servers.port", n, port.at("containerPort"))
		}
	}
}

// interfaceOf is the variable that says to ps-lite what others say to NCCL.
func (d *draft) interfaceOf(c view) []string {
	if env := c.at("env"); env.item("name", "DMLC_INTERFACE").at("value").text() == env.item("name",
		"NCCL_SOCKET_IFNAME").at("value").text() {
		return []string{"DMLC_INTERFACE"}
	}
	return nil
}

// servers reads in what the servers and the scheduler run that the workers do not.
func (d *draft) servers(all roles, worker view) {
	c := trainingContainer(all.server.template.at("spec"))
	scheduler := trainingContainer(all.scheduler.template.at("spec"))
	switch {
	case !all.server.template.isSet() && !all.scheduler.template.isSet():
		return
	case !all.server.template.isSet():
		c = scheduler
	case all.scheduler.template.isSet() && !sameProgram(c, scheduler):
		d.set("spec.servers.entrypoint", true, c) // and podTemplate has the words of each of them
		return
	}
	command, args := c.at("command"), c.at("args")
	own, script := args.texts(), worker.at("args").texts()
	if !d.get("spec.script").isSet() {
		script = nil
	}
	switch {
	case sameProgram(c, worker):
	case sameCommand(c, worker) && len(own) > 0 && len(script) == 0:
		d.set("spec.servers.args", own, args)
	case sameCommand(c, worker) && len(own) > 1 && own[0] == script[0]:
		d.set("spec.servers.args", own[1:], args)
	default:
		d.set("spec.servers.command", command.texts(), command)
		if len(command.texts()) == 0 {
			d.set("spec.servers.entrypoint", true, c)
		}
		d.set("spec.servers.args", own, args)
	}
}

func sameProgram(a, b view) bool {
	return sameCommand(a, b) && slices.Equal(a.at("args").texts(), b.at("args").texts())
}

func sameCommand(a, b view) bool {
	return slices.Equal(a.at("command").texts(), b.at("command").texts())
}

// roleOf reads in what the pods of a role are set up apart from the workers.
func (d *draft) roleOf(name string, template, worker view) {
	if !template.isSet() {
		return
	}
	d.templates[name] = template
	pod, at := template.at("spec"), "spec.roles."+name
	c := trainingContainer(pod)
	d.compute(c.at("resources"), at+".resources")
	if image := c.at("image"); image.text() != worker.at("image").text() {
		d.set(at+".image", image.text(), image)
	}
	if dir := c.at("workingDir"); dir.isSet() {
		d.set(at+".workingDir", dir.text(), dir)
	} else { // it would have the workers' own, which podTemplate then gives to them alone
		delete(d.get("spec").mapping(), "workingDir")
	}
	if !reflect.DeepEqual(c.at("envFrom").value, worker.at("envFrom").value) { // likewise
		delete(d.get("spec").mapping(), "envFrom")
	}
	d.nodesFor(at, pod)
}
