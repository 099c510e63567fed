package importer

import (
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

// readHorovodJob reads an Indexed Job of which the first pod runs the launcher, as tegen renders it.
func readHorovodJob(s *stream, o *object, framework string) (*draft, error) {
	spec := o.view().at("spec")
	d := newDraft(s, o, framework, job.TargetJob, strings.TrimSuffix(unhashed(o), "-worker"))
	d.jobSpec(spec)
	d.set("spec.suspend", spec.at("suspend").isTrue(), spec.at("suspend"))
	d.readEnding(spec)
	c := d.worker(spec.at("template"))
	pod := spec.at("template", "spec")
	if keys := pod.at("volumes").item("name", "ssh-keys").at("secret", "secretName"); keys.text() != d.name()+"-ssh" {
		d.set("spec.ssh.secret", keys.text(), keys)
	}
	if framework == job.FrameworkMPI {
		d.implementation(c, pod, launcherLine(c))
		d.hydraDNS(pod)
		d.mpi(c, pod)
	} else {
		d.horovodrun(c, pod)
		d.horovodEnv(c)
	}
	d.switchOffExtras()
	return d, nil
}
