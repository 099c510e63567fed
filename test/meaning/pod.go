package meaning

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// podDefaults are those of the API.
var podDefaults = map[string]string{
	"dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "enableServiceLinks": "true",
	"automountServiceAccountToken": "true", "hostNetwork": "false", "hostPID": "false", "hostIPC": "false",
	"securityContext": "{}", "affinity": "{}", "nodeSelector": "{}", "tolerations": "[]",
	"shareProcessNamespace": "false",
	"initContainers":        "[]", "volumes": "[]", "nodeName": "", "priorityClassName": "", "imagePullSecrets": "[]",
	"runtimeClassName": "", "terminationGracePeriodSeconds": "30",
}

// defaultContainer names the container that kubectl's commands are for, without which it is the first (kubectl,
// pkg/cmd/util/podcmd).
const defaultContainer = "kubectl.kubernetes.io/default-container"

// podFacts are what a template says of its pods, without their containers' programs.
func podFacts(template node, out facts) {
	pod := template.at("spec")
	for _, list := range []string{"labels", "annotations"} {
		for _, key := range template.at("metadata", list).keys() {
			v := template.at("metadata", list, key)
			if containers := pod.at("containers").items(); key == defaultContainer && len(containers) > 0 &&
				v.text() == containers[0].at("name").text() { // which is kubectl's by itself
				continue
			}
			out.set(strings.TrimSuffix(list, "s")+"/"+key, v.text(), v)
		}
	}
	account := pod.at("serviceAccountName")
	if !account.isSet() {
		account = pod.at("serviceAccount")
	}
	out.set("account", cmp.Or(account.text(), "default"), account)
	out.set("grace", cmp.Or(pod.at("terminationGracePeriodSeconds").text(), "30"),
		pod.at("terminationGracePeriodSeconds"))
	for _, t := range pod.at("tolerations").items() {
		if m, ok := t.value.(object); ok && m["operator"] == "Equal" {
			m["operator"] = nil
		}
		var parts []string
		t.leaves(func(below string, leaf node) { parts = append(parts, below+"="+leaf.text()) })
		out.set("toleration/"+strings.Join(parts, ","), true, t)
	}
	for _, s := range pod.at("imagePullSecrets").items() {
		out.set("pull secret/"+s.at("name").text(), true, s)
	}
	for _, key := range pod.at("nodeSelector").keys() {
		v := pod.at("nodeSelector", key)
		out.set("node/"+key, v.text(), v)
	}
	for _, claim := range pod.at("resourceClaims").items() {
		out.set("claim/"+claim.at("name").text(), claim.json(), claim)
	}
	out.rest("", pod, []string{
		"containers", "initContainers", "volumes", "serviceAccount", "serviceAccountName", "tolerations",
		"imagePullSecrets", "nodeSelector", "restartPolicy", "hostname", "subdomain", "resourceClaims",
		"terminationGracePeriodSeconds", "securityContext",
	}, podDefaults)
	mounted := map[string]bool{}
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range pod.at(list).items() {
			for _, m := range c.at("volumeMounts").items() {
				mounted[m.at("name").text()] = true
			}
		}
	}
	for _, v := range pod.at("volumes").items() {
		if !mounted[v.at("name").text()] {
			out.set("unmounted/"+v.at("name").text(), source(v), v)
		}
	}
}

// source is where a volume comes from. Its name says nothing outside of the pod.
func source(volume node) string {
	m, _ := volume.value.(object)
	out := object{}
	for key, value := range m {
		if key != "name" {
			out[key] = value
		}
	}
	for kind, below := range out { // which is the default of every kind of volume
		if m, ok := below.(object); ok && m["readOnly"] == false {
			m = maps.Clone(m)
			delete(m, "readOnly")
			out[kind] = m
		}
	}
	for _, kind := range []string{"secret", "configMap", "projected", "downwardAPI"} {
		if below, ok := out[kind].(object); ok && (below["defaultMode"] == 0o644 || below["defaultMode"] == nil) {
			delete(below, "defaultMode")
		}
	}
	if below, ok := out["hostPath"].(object); ok && below["type"] == "" {
		delete(below, "type")
	}
	if below, ok := out["emptyDir"].(object); ok && below["sizeLimit"] != nil {
		below["sizeLimit"] = quantity(node{value: below["sizeLimit"]}.text())
	}
	if len(out) == 0 {
		out["emptyDir"] = object{}
	}
	return node{value: out}.json()
}

// containerFacts are what a container gets. Its program is not among them.
func containerFacts(c, pod node, about string, out facts) {
	image := c.at("image").text()
	out.set(about+"image", image, c.at("image"))
	pulls := "IfNotPresent"
	if name := image[strings.LastIndex(image, "/")+1:]; !strings.ContainsAny(name, ":@") ||
		strings.HasSuffix(name, ":latest") {
		pulls = "Always"
	}
	out.set(about+"pull", cmp.Or(c.at("imagePullPolicy").text(), pulls), c.at("imagePullPolicy"))
	out.set(about+"directory", c.at("workingDir").text(), c.at("workingDir"))
	for _, e := range c.at("env").items() {
		value := e.at("value").text()
		if from := e.at("valueFrom"); from.isSet() {
			value = withoutDefaults(from).json()
		}
		out.set(about+"env/"+e.at("name").text(), value, e)
	}
	for _, from := range c.at("envFrom").items() {
		out.set(about+"envFrom/"+from.json(), true, from)
	}
	resourceFacts(c.at("resources"), about, out)
	for _, m := range c.at("volumeMounts").items() {
		i := slices.IndexFunc(pod.at("volumes").items(), func(v node) bool {
			return v.at("name").text() == m.at("name").text()
		})
		from := "nothing"
		if i >= 0 {
			from = source(pod.at("volumes").items()[i])
		} else {
			from += " called " + m.at("name").text()
		}
		for _, key := range m.keys() {
			if key != "name" && key != "mountPath" && (key != "readOnly" || m.at(key).text() != "false") {
				from += ", " + key + " " + m.at(key).text()
			}
		}
		out.set(about+"mount/"+strings.TrimRight(m.at("mountPath").text(), "/"), from, m)
	}
	for _, p := range c.at("ports").items() {
		out.set(about+"port/"+p.at("containerPort").text(), true, p)
		if p.at("hostPort").isSet() {
			out.set(about+"host port/"+p.at("hostPort").text(), true, p)
		}
	}
	for _, key := range c.at("securityContext").keys() {
		c.at("securityContext", key).leaves(func(below string, leaf node) {
			name := strings.TrimSuffix(key+"."+below, ".")
			out.set(about+"security/"+name, strings.Trim(leaf.json(), `"`), leaf)
		})
	}
	for _, key := range pod.at("securityContext").keys() {
		pod.at("securityContext", key).leaves(func(below string, leaf node) {
			name := about + "security/" + strings.TrimSuffix(key+"."+below, ".")
			if _, own := out[name]; !own {
				out.set(name, strings.Trim(leaf.json(), `"`), leaf)
			}
		})
	}
	out.rest(about, c, []string{
		"name", "image", "imagePullPolicy", "workingDir", "command", "args", "env", "envFrom", "resources",
		"volumeMounts", "ports", "securityContext",
	}, map[string]string{
		"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "stdin": "false",
		"tty": "false",
	})
}

// withoutDefaults is the source of a variable as people write it.
func withoutDefaults(from node) node {
	if ref, ok := from.at("fieldRef").value.(object); ok && ref["apiVersion"] == "v1" {
		delete(ref, "apiVersion")
	}
	return from
}

// resourceFacts are what is requested, which is the limit where nothing else is said, and the limits.
func resourceFacts(r node, about string, out facts) {
	for _, key := range r.at("limits").keys() {
		v := r.at("limits", key)
		if quantity(v.text()) == "0" && strings.Contains(key, "/") {
			continue
		}
		out.set(about+"limit/"+key, quantity(v.text()), v)
		if !r.at("requests", key).isSet() {
			out.set(about+"request/"+key, quantity(v.text()), v)
		}
	}
	for _, key := range r.at("requests").keys() {
		v := r.at("requests", key)
		if quantity(v.text()) == "0" && strings.Contains(key, "/") {
			continue
		}
		out.set(about+"request/"+key, quantity(v.text()), v)
	}
	for _, claim := range r.at("claims").items() {
		out.set(about+"claims/"+claim.json(), true, claim)
	}
}

func quantity(text string) string {
	if q, err := resource.ParseQuantity(text); err == nil {
		return q.String()
	}
	return text
}
