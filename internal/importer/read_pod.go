package importer

import (
	"strconv"

	"github.com/tegen-dev/tegen/schema/job"
)

// worker reads the pod template of the workers: all that every framework has. What it does not read, the comparison of
// the rendered job finds, and carries in podTemplate where that can. A view of a pod itself is a template too.
func (d *draft) worker(t view) view {
	d.template = t
	pod := t.at("spec")
	c := trainingContainer(pod)
	d.container = c.at("name").text()
	d.set("spec.image", c.at("image").text(), c.at("image"))
	d.set("spec.imagePullPolicy", c.at("imagePullPolicy").text(), c.at("imagePullPolicy"))
	for _, s := range pod.at("imagePullSecrets").items() {
		d.add("spec.imagePullSecrets", s.at("name").text(), s)
	}
	d.set("spec.workingDir", c.at("workingDir").text(), c.at("workingDir"))
	d.envFrom(c)
	d.resources(c.at("resources"))
	d.claims(pod, c)
	d.volumes(pod, c)
	d.probes(c)
	d.sidecars(pod, c)
	d.account(t)
	d.placement(pod)
	d.security(pod, c)
	d.fabric(c)
	d.gang(t)
	if d.get("spec.framework").text() != job.FrameworkDLRover { // whose master gives every pod 30 seconds
		d.grace(pod)
	}
	d.save(c)
	if own := t.at("metadata", "annotations", kubectlContainer); own.isSet() && own.text() == d.container &&
		pod.at("containers").items()[0].at("name").text() == d.container {
		own.markTranslated() // kubectl takes the first by itself
	}
	if !t.at("metadata", "annotations", doNotDisrupt).isSet() {
		d.set("spec.disruption.safeToEvict", true, t.at("metadata", "annotations"))
	}
	return c
}

// kubectlContainer names the container that kubectl's commands are for.
const kubectlContainer = "kubectl.kubernetes.io/default-container"

// grace reads the grace period. The default is 30 seconds.
func (d *draft) grace(pod view) {
	seconds, present := pod.at("terminationGracePeriodSeconds").number()
	if !present {
		seconds = 30
	}
	d.set("spec.gracePeriod", durationText(seconds), pod.at("terminationGracePeriodSeconds"))
}

// save reads a hook of tegen's own, which has a checkpoint written. Any other stays as it is.
func (d *draft) save(c view) {
	words := c.at("lifecycle", "preStop", "exec", "command").items()
	if len(words) < 6 || words[3].text() != job.SaveHook {
		return
	}
	d.set("spec.checkpoint.save.signal", "SIG"+words[4].text(), words[4])
	if takes, err := strconv.ParseInt(words[5].text(), 10, 64); err == nil {
		d.set("spec.checkpoint.save.takes", durationText(takes), words[5])
	}
}

// account reads the ServiceAccount: one that the stream makes is rendered again, any other exists.
func (d *draft) account(t view) {
	v := t.at("spec", "serviceAccountName")
	if !v.isSet() {
		v = t.at("spec", "serviceAccount")
	}
	name := v.text()
	if name == "" {
		name = "default"
	}
	made := d.stream.find("", "ServiceAccount", d.namespace(), name)
	if made == nil {
		d.set("spec.identity.serviceAccount", name, v)
		return
	}
	own := ""
	if name != d.name() {
		own = name
	}
	if role := made.view().at("metadata", "annotations", "eks.amazonaws.com/role-arn"); role.isSet() {
		d.set("spec.identity.irsa.role", role.text(), role)
		d.set("spec.identity.irsa.serviceAccount", own, v)
		return
	}
	if own != "" {
		d.set("spec.identity.podIdentity.serviceAccount", own, v)
		return
	}
	d.set("spec.identity.nodeRole", tree{}, v) // renders nothing, and a script in S3 asks for some identity
}

// orElse is a view, or another where there is nothing.
func orElse(v, other view) view {
	if v.isSet() {
		return v
	}
	return other
}
