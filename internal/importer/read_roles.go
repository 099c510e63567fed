package importer

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema"
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
	if all.server.template.isSet() {
		d.servers(trainingContainer(all.server.template.at("spec")), c)
	}
	d.roleOf(schema.RoleServer, all.server.template, c)
	d.roleOf(schema.RoleScheduler, all.scheduler.template, c)
	d.reportBorrowedCommand(c, "scheduler", all.scheduler)
	d.reportBorrowedCommand(c, "server", all.server)
	for _, port := range trainingContainer(all.scheduler.template.at("spec")).at("ports").items() {
		if n, ok := port.at("containerPort").number(); ok {
			d.set("spec.servers.port", n, port.at("containerPort"))
		}
	}
}

// reportBorrowedCommand reports a role without a command, which is rendered with the worker's.
func (d *draft) reportBorrowedCommand(worker view, name string, r role) {
	c := trainingContainer(r.template.at("spec"))
	if !r.template.isSet() || c.at("command").isSet() {
		return
	}
	var lent []string
	for _, field := range []string{"command", "args"} {
		if worker.at(field).isSet() && !c.at(field).isSet() {
			lent = append(lent, field)
		}
	}
	if len(lent) > 0 {
		d.note(c, Changed, "the image's own command: a TrainingJob has the %s run the worker's %s in its place", name,
			strings.Join(lent, " and "))
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

// servers reads in what the servers' container is not like the workers'.
func (d *draft) servers(c, worker view) {
	command, args := c.at("command"), c.at("args")
	sameCommand := slices.Equal(command.texts(), worker.at("command").texts())
	switch own := args.texts(); {
	case sameCommand && slices.Equal(own, worker.at("args").texts()):
	case sameCommand && len(own) > 0:
		if d.get("spec.script").isSet() && len(own) > 0 {
			own = own[1:]
		}
		d.set("spec.servers.args", own, args)
	default:
		d.set("spec.servers.command", command.texts(), command)
		d.set("spec.servers.args", own, args)
	}
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
	d.nodesFor(at, pod)
}
