package importer

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema"
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
	d.resources(c.at("resources"))
	d.volumes(pod, c)
	d.account(t)
	d.placement(pod)
	d.security(pod, c)
	d.gang(t)
	if d.get("spec.framework").text() != schema.FrameworkDLRover { // whose master gives every pod 30 seconds
		d.grace(pod)
	}
	if !t.at("metadata", "annotations", doNotDisrupt).isSet() {
		d.set("spec.disruption.safeToEvict", true, t.at("metadata", "annotations"))
	}
	return c
}

func trainingContainer(pod view) view {
	c := trainingContainerIn(pod.mapping())
	for _, item := range pod.at("containers").items() {
		if c != nil && item.at("name").text() == c["name"] {
			return item
		}
	}
	return pod.at("containers")
}

// grace is 30 seconds where nobody says otherwise.
func (d *draft) grace(pod view) {
	seconds, present := pod.at("terminationGracePeriodSeconds").number()
	if !present {
		seconds = 30
	}
	d.set("spec.gracePeriod", durationText(seconds), pod.at("terminationGracePeriodSeconds"))
}

// isAccelerator knows the names under which device plugins offer what trains: of vendors' GPUs, parts of such, and of
// other chips. Network cards, such as vpc.amazonaws.com/efa, and what virtualises devices are extended resources too.
var isAccelerator = regexp.MustCompile(`(?i)^[a-z0-9.-]+/(gpu|[vrx]?gpu|gpu\.shared|mig-[0-9]+g\.[0-9]+gb.*|i915|xe|tpu|v[2-6][a-z]?|npu|gaudi|hpu|mlu|dcu|ascend[0-9a-z-]*|neuron|neuroncore|neurondevice|[a-z0-9-]+[_-]gpu|gpu[_-][a-z0-9-]+)$|^nvidia\.com/(gb|[abhlt])[0-9]+[a-z0-9_-]*$`)

// isShare knows the names of parts of accelerators that are not counted in pieces: memory, cores and shares of them.
var isShare = regexp.MustCompile(`(?i)[-_](mem|memory|cores?|percent|percentage|ratio|milli)([-_].*)?$`)

// gpuOf is the resource name of a container's accelerators, "" for none. An amount of 0 is none, and gpuResource has one
// name: a second kind is an extended resource like any other. A vendor's own name goes before those made of it.
func gpuOf(c view) string {
	for _, list := range []string{"limits", "requests"} {
		amounts := c.at("resources", list)
		names := slices.DeleteFunc(sortedKeys(amounts.mapping()), func(name string) bool {
			return !isAccelerator.MatchString(name) || isShare.MatchString(name) || amounts.at(name).text() == "0"
		})
		if i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, "/gpu") }); i >= 0 {
			return names[i]
		}
		if len(names) > 0 {
			return names[0]
		}
	}
	return ""
}

// compute reads what a container asks for and is limited to. Where it says nothing, nothing is rendered.
func (d *draft) compute(r view, field string) {
	asks := r.at("requests", "cpu").text() != "" || r.at("requests", "memory").text() != ""
	for name, key := range map[string]string{"cpu": "cpu", "memory": "memory", "ephemeralStorage": "ephemeral-storage"} {
		limit, request := r.at("limits", key), r.at("requests", key)
		switch {
		case limit.text() == "" && request.text() == "":
			d.set(field+"."+name, schema.None, r)
		case limit.text() == "":
			d.set(field+"."+name, request.text(), request)
			d.set(field+".limits."+name, schema.None, request)
		case request.text() == "" && asks: // it asks for some, and not for this
			d.set(field+"."+name, limit.text(), limit)
			d.set(field+".requests."+name, schema.None, limit)
		case request.text() == "" || equalScalars(request.value, limit.value, []step{{name: "limits"}}):
			d.set(field+"."+name, limit.text(), limit)
		default:
			d.set(field+"."+name, limit.text(), limit)
			d.set(field+".requests."+name, request.text(), request)
		}
	}
}

// resources are those of the workers, with their accelerators.
func (d *draft) resources(r view) {
	const field = "spec.resources"
	d.compute(r, field)
	name := gpuOf(view{value: tree{"resources": r.value}})
	if name == "" {
		return
	}
	limit, request := r.at("limits", name), r.at("requests", name)
	if request.isSet() && request.text() != limit.text() {
		d.note(request, Error, "an API server refuses accelerators of which the limit is not what is requested: the two are made one")
		request.markTranslated()
	}
	if !limit.isSet() {
		limit = request
	}
	if d.setNumber(field+".gpu", limit) {
		d.set(field+".gpuResource", name, limit)
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

func (d *draft) placement(pod view) {
	d.set("spec.placement.scheduler", pod.at("schedulerName").text(), pod.at("schedulerName"))
	for field, key := range map[string]string{"priorityClass": "priorityClassName", "preemptionPolicy": "preemptionPolicy", "runtimeClass": "runtimeClassName"} {
		d.set("spec.placement."+field, pod.at(key).text(), pod.at(key))
	}
	for _, key := range sortedKeys(pod.at("nodeSelector").mapping()) {
		v := pod.at("nodeSelector", key)
		d.put("spec.placement.nodeSelector", key, v.text(), v)
	}
	for _, t := range pod.at("tolerations").items() {
		if d.onlyWorkersTolerate(t) {
			continue // those of placement are every pod's; podTemplate takes what is left
		}
		d.add("spec.placement.tolerations", tolerationOf(t), t)
	}
	if v := pod.at("hostNetwork"); v.isTrue() {
		d.set("spec.network.host", true, v)
	}
}

func tolerationOf(t view) tree {
	item := tree{}
	for field, key := range map[string]string{"key": "key", "operator": "operator", "value": "value", "effect": "effect", "seconds": "tolerationSeconds"} {
		if v := t.at(key); v.isSet() && v.value != "" {
			item[field] = v.value
		}
	}
	return item
}

// onlyWorkersTolerate says whether a store that tegen rendered for the job lacks a toleration of its workers.
func (d *draft) onlyWorkersTolerate(toleration view) bool {
	for _, o := range d.stream.objects {
		v := o.view()
		if !o.is("apps", "StatefulSet") || o.namespace != d.namespace() || v.at("metadata", "labels", "app.kubernetes.io/instance").text() != d.name() {
			continue
		}
		if !slices.ContainsFunc(v.at("spec", "template", "spec", "tolerations").items(), func(t view) bool {
			return reflect.DeepEqual(t.value, toleration.value)
		}) {
			return true
		}
	}
	return false
}

// bySSH says whether the processes in a container are started by ssh.
func (d *draft) bySSH(c view) bool {
	framework := d.get("spec.framework").text()
	return framework == schema.FrameworkHorovod || framework == schema.FrameworkByteScheduler && !c.at("env").item("name", "DMLC_ROLE").isSet()
}

// orElse is a view, or another where there is nothing.
func orElse(v, other view) view {
	if v.isSet() {
		return v
	}
	return other
}

// security reads the user of the pod's processes and their rights: the image's and the container runtime's own, where
// nobody says otherwise. What the container that trains says of itself alone stays its own, in podTemplate: the pod's
// other containers may be another user's.
func (d *draft) security(pod, c view) {
	for key, unsaid := range map[string]string{"runAsUser": "image", "runAsGroup": "image", "fsGroup": schema.None} {
		v := pod.at("securityContext", key)
		if own := c.at("securityContext", key); own.isSet() && key != "fsGroup" && d.bySSH(c) {
			v = own // whose keys tegen makes, for a user whom it has to know
		}
		if key == "runAsUser" && someRoot(pod) && !d.bySSH(c) {
			v = view{object: v.object} // the field would forbid root in all of the pod
		}
		n, isNumber := v.number()
		switch {
		case key == "runAsUser" && d.bySSH(c) && (!isNumber || n == 0):
			d.note(orElse(v, c), Changed, "ssh needs a user whom tegen knows, and not root: the processes run as user 65534")
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
	if !drops || c.at("securityContext", "allowPrivilegeEscalation").value != false || profile.text() != "RuntimeDefault" {
		d.set("spec.security.restricted", false, c)
	}
}

// someRoot says whether one of a pod's containers is root's by itself, and is not forbidden to be.
func someRoot(pod view) bool {
	return !pod.at("securityContext", "runAsNonRoot").isSet() &&
		slices.ContainsFunc(append(pod.at("initContainers").items(), pod.at("containers").items()...), func(c view) bool {
			return c.at("securityContext", "runAsUser").text() == "0"
		})
}

// env reads the variables of the worker, but those of names that the caller has read already.
func (d *draft) env(c view, read ...string) {
	all := c.at("env").items()
	last := map[string]int{}
	for i, e := range all {
		last[e.at("name").text()] = i
	}
	for i, e := range all {
		name := e.at("name").text()
		if slices.Contains(read, name) || d.known(c, e) {
			continue
		}
		if last[name] != i {
			d.note(e, Error, "%s is set again below, and the last one counts: this one was left out", name)
			e.markTranslated()
			continue
		}
		item := tree{"name": name}
		from := e.at("valueFrom")
		switch {
		case from.at("secretKeyRef").isSet():
			item["secret"] = keyRef(from.at("secretKeyRef"))
		case from.at("configMapKeyRef").isSet():
			item["configMap"] = keyRef(from.at("configMapKeyRef"))
		case from.isSet():
			continue // a field of the pod: podTemplate carries it
		default:
			item["value"] = e.at("value").text()
		}
		d.add("spec.env", item, e)
	}
}

func keyRef(v view) tree {
	ref := tree{"name": v.at("name").text(), "key": v.at("key").text()}
	if v.at("optional").isTrue() {
		ref["optional"] = true
	}
	return ref
}

// known reads variables that fields of the schema stand for, and skips those that every worker gets anyway.
func (d *draft) known(c, e view) bool {
	value := e.at("value").text()
	switch e.at("name").text() {
	case "HOME":
		return value == "/tmp"
	case "PYTHONUNBUFFERED":
		return value == "1"
	case "DIST_BACKEND":
		if slices.Contains([]string{"nccl", "gloo", "mpi"}, value) {
			d.set("spec.network.collective", value, e)
			return true
		}
	case "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME":
		nccl, gloo := c.at("env").item("name", "NCCL_SOCKET_IFNAME"), c.at("env").item("name", "GLOO_SOCKET_IFNAME")
		if nccl.at("value").text() == gloo.at("value").text() && !strings.ContainsAny(value, ",^=") {
			d.set("spec.network.interface", value, e)
			return true
		}
	case "CHECKPOINT_DIR":
		if d.isPersistent(value) {
			d.set("spec.checkpoint.path", value, e)
			return true
		}
	}
	return false
}
