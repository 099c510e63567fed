package importer

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

// tegenSSH says whether a container is one of tegen's, with its scripts for ssh.
func tegenSSH(c view) bool { return c.at("env").item("name", "TEGEN_SSH_DIR").isSet() }

// imageSSH says whether the draft's image has an sshd of its own.
func (d *draft) imageSSH() bool { return d.get("spec.ssh.server").text() == job.SSHImage }

// imageMPI reads the pods of an MPIJob whose image has users and an sshd of its own: what both have is the job's, and
// what only one has is in its podTemplate.
func (d *draft) imageMPI(spec view) {
	launcher, worker := spec.at("mpiReplicaSpecs", "Launcher"), spec.at("mpiReplicaSpecs", "Worker")
	l, w := launcher.at("template"), worker.at("template")
	d.set("spec.ssh.server", job.SSHImage, spec)
	d.set("spec.ssh.keysPath", spec.at("sshAuthMountPath").text(), spec.at("sshAuthMountPath"))
	d.set("spec.mpi.launch", job.LaunchCommand, launcher)
	d.firstContainers(l, w)
	c := trainingContainer(l.at("spec"))
	sshd := d.worker(alike(w, l))
	d.template = w
	if fabric := d.get("spec.network").mapping(); fabric != nil {
		delete(fabric, "fabric") // whose variables would be the launcher's
	}
	if add := sshd.at("securityContext", "capabilities", "add"); !slices.Contains(add.texts(), netBind) {
		d.set("spec.security.restricted", false, sshd) // or it would be added; podTemplate has what is there
	}
	d.grace(l.at("spec")) // the workers' own podTemplate can say
	d.roleOf(job.RoleLauncher, l, trainingContainer(w.at("spec")))
	delete(d.get("spec").mapping(), "envFrom")
	d.envFrom(c)
	d.imageSSHD(sshd)
	p := newProgram(c)
	d.script(p, l.at("spec"), c)
	p.set(d, c)
	if works := spec.at("runLauncherAsWorker"); works.isTrue() {
		d.set("spec.mpi.launcherWorks", true, works)
	}
	d.env(c, d.setByOperator(c)...)
	d.restartOf("spec.ssh.restart", worker, "Never")
	unsaid := "OnFailure" // of v1alpha2 and v2beta1 (pkg/apis/kubeflow/<version>/default.go)
	if d.workload[0].gvk.Version == "v1" {
		unsaid = "Never"
	}
	d.restartOf("spec.mpi.launcherRestart", launcher, unsaid)
	if start := spec.at("launcherCreationPolicy"); start.text() != "WaitForWorkersReady" {
		d.set("spec.mpi.launcherStart", job.LauncherTogether, start)
	}
}

// firstContainers reports where the operator gives its keys and variables, which are always for the first container, to
// another one than the job would.
func (d *draft) firstContainers(templates ...view) {
	for _, t := range templates {
		all := t.at("spec", "containers")
		name := trainingContainer(t.at("spec")).at("name").text()
		if items := all.items(); len(items) > 0 && items[0].at("name").text() != name {
			d.note(all, Changed, "the MPI operator gives keys, hosts and sshd to the first container: %s is rendered "+
				"as that one, so put first the one that is meant", name)
		}
	}
}

// byExec says whether the operator of the source starts processes by kubectl exec, as those before v2beta1 do.
func (d *draft) byExec() bool { return d.workload[0].gvk.Version != apis.MPIJobKind.Version }

// imageSSHD reads what the workers run. Without a word the operator has them run sshd; where the first one started
// processes by kubectl exec, they may have run anything.
func (d *draft) imageSSHD(c view) {
	words := strings.Join(append(c.at("command").texts(), c.at("args").texts()...), " ")
	if d.byExec() && words != "" && !runsSSHD().MatchString(words) {
		d.note(programOf(c), Changed, "the workers run sshd in its place, by which processes are started")
		c.at("command").markTranslated()
		c.at("args").markTranslated()
		return
	}
	d.set("spec.ssh.command", c.at("command").texts(), c.at("command"))
	d.set("spec.ssh.args", c.at("args").texts(), c.at("args"))
}

// netBind is what tegen adds to the rights of an image's sshd in a restricted pod.
const netBind = "NET_BIND_SERVICE"

var runsSSHD = lazy.Regexp(`(^|[/\s;&|])sshd?(\s|$)`)

// restartOf reads the policy of a role, which overrides that of its template; ExitCode is Never to the operator
// (setRestartPolicy in pkg/controller/mpi_job_controller.go).
func (d *draft) restartOf(field string, role view, unsaid string) {
	policy := role.at("restartPolicy")
	switch policy.text() {
	case "":
	case "ExitCode":
		unsaid = "Never"
		d.note(policy, Translated, "the MPI operator takes it for Never")
		policy.markTranslated()
	default:
		unsaid = policy.text()
	}
	d.set(field, unsaid, policy)
	d.keptAs(role.at("template", "spec", "restartPolicy"),
		"the MPI operator replaces it with the role's restartPolicy, which is "+unsaid)
}

// setByOperator are variables of a launcher that the operator sets behind its own, and the last counts.
func (d *draft) setByOperator(c view) (names []string) {
	s := job.Spec{Framework: job.FrameworkMPI}
	s.MPI.Implementation, s.MPI.LauncherWorks = cmp.Or(d.get("spec.mpi.implementation").text(), job.MPIOpen),
		d.get("spec.mpi.launcherWorks").isTrue()
	for _, e := range c.at("env").items() {
		if name := e.at("name").text(); slices.Contains(s.OperatorEnv(), name) {
			d.note(e, Error, "the operator sets %s behind this one, and the last one counts: this one was left out",
				name)
			e.markTranslated()
			names = append(names, name)
		}
	}
	return names
}

// ofJob are fields of a pod and of its container that a TrainingJob says once for all of its pods.
var (
	ofJob = []string{
		"hostNetwork", "serviceAccountName", "serviceAccount", "schedulerName", "priorityClassName",
		"preemptionPolicy", "imagePullSecrets", "securityContext",
	}
	ofContainer = []string{"imagePullPolicy", "securityContext"}
)

// alike is a pod template of workers without what a TrainingJob would say for the launcher too, and the launcher has
// not.
func alike(worker, launcher view) view {
	out, _ := clone(worker.value).(tree)
	template := view{worker.object, worker.path, out}
	w, l := template.at("spec"), launcher.at("spec")
	without(w.mapping(), l.mapping(), ofJob)
	c := trainingContainer(w)
	without(c.mapping(), trainingContainer(l).mapping(), ofContainer)
	delete(c.mapping(), "env") // which sshd hands on to nobody
	delete(c.mapping(), "envFrom")
	return template
}

// without takes out of one mapping what the other has not.
func without(m, other tree, keys []string) {
	for _, key := range keys {
		if !reflect.DeepEqual(m[key], other[key]) {
			delete(m, key)
		}
	}
}
