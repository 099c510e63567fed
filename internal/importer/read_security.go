package importer

import (
	"slices"

	"github.com/tegen-dev/tegen/schema/job"
)

// bySSH says whether the processes in a container are started by ssh.
func (d *draft) bySSH(c view) bool {
	framework := d.get("spec.framework").text()
	return !d.imageSSH() && (framework == job.FrameworkHorovod || framework == job.FrameworkMPI ||
		framework == job.FrameworkByteScheduler && !c.at("env").item("name", "DMLC_ROLE").isSet())
}

// security reads the user of the pod's processes and their rights. The defaults are those of the image and of the
// container runtime. What only the training container has stays in podTemplate, since the pod's other containers may
// run as another user.
func (d *draft) security(pod, c view) {
	for key, unsaid := range map[string]string{"runAsUser": "image", "runAsGroup": "image", "fsGroup": job.None} {
		v := pod.at("securityContext", key)
		if own := c.at("securityContext", key); own.isSet() && key != "fsGroup" && d.bySSH(c) {
			v = own // whose keys tegen makes, for a user whom it has to know
		}
		if key == "runAsUser" && someRoot(pod) && !d.bySSH(c) {
			v = view{object: v.object} // the field would forbid root in all of the pod
		}
		n, isNumber := v.number()
		mpi := d.get("spec.framework").text() == job.FrameworkMPI && !d.imageSSH()
		switch {
		case key == "runAsUser" && mpi && isNumber && n == 0:
			d.set("spec.security.runAsUser", int64(0), orElse(v, c))
		case key == "runAsUser" && d.bySSH(c) && (!isNumber || n == 0):
			d.note(orElse(v, c), Changed,
				"ssh needs a user whom tegen knows, and not root: the processes run as user 65534")
			v.markTranslated()
		case key == "runAsGroup" && d.bySSH(c) && !isNumber:
		case !d.setNumber("spec.security."+key, v):
			d.set("spec.security."+key, unsaid, c)
		}
	}
	if v := c.at("securityContext", "readOnlyRootFilesystem"); v.isSet() {
		d.set("spec.security.readOnlyRootFilesystem", v.value, v)
	}
	profile := c.at("securityContext", "seccompProfile", "type")
	if !profile.isSet() {
		profile = pod.at("securityContext", "seccompProfile", "type")
	}
	drops := slices.Contains(c.at("securityContext", "capabilities", "drop").texts(), "ALL")
	if !drops || c.at("securityContext", "allowPrivilegeEscalation").value != false ||
		profile.text() != "RuntimeDefault" {
		d.set("spec.security.restricted", false, c)
	}
}

// someRoot says whether one of a pod's containers is root's by itself, and is not forbidden to be.
func someRoot(pod view) bool {
	return !pod.at("securityContext", "runAsNonRoot").isSet() &&
		slices.ContainsFunc(append(pod.at("initContainers").items(), pod.at("containers").items()...),
			func(c view) bool {
				return c.at("securityContext", "runAsUser").text() == "0"
			})
}
