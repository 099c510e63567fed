package importer

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// carries says whether the target takes a field: where it does not, podTemplate keeps what was there as it was.
func (d *draft) carries(feature string) bool {
	t := target.Of(d.get("spec.framework").text(), d.get("spec.target").text())
	return t != nil && t.Carries(feature)
}

// sidecars reads the init containers that go on running. They are rendered last, so that one before others, which may
// need it, stays where it is.
func (d *draft) sidecars(pod, worker view) {
	all := pod.at("initContainers").items()
	first := len(all)
	for first > 0 && all[first-1].at("restartPolicy").text() == "Always" {
		first--
	}
	for _, c := range all[:first] {
		if c.at("restartPolicy").isSet() {
			return
		}
	}
	readOnly := func(c view) bool { return c.at("securityContext", "readOnlyRootFilesystem").isTrue() }
	other := func(c view) bool { return readOnly(c) != readOnly(worker) } // which a sidecar has like the workers
	if !d.carries("sidecars") || slices.ContainsFunc(all[first:], other) {
		return
	}
	for _, c := range all[first:] {
		d.add("spec.sidecars", d.sidecar(c), c)
	}
}

// sidecar is one of them, as far as fields say it.
func (d *draft) sidecar(c view) tree {
	item := tree{"name": c.at("name").text(), "image": c.at("image").text()}
	set := func(field string, value any, ok bool) {
		if ok {
			item[field] = value
		}
	}
	for _, field := range []string{"command", "args"} {
		set(field, c.at(field).value, len(c.at(field).items()) > 0)
	}
	set("workingDir", c.at("workingDir").text(), c.at("workingDir").isSet())
	var env, from []any
	for _, e := range c.at("env").items() {
		if variable := envItem(c, e); variable != nil {
			env = append(env, variable)
		}
	}
	set("env", env, env != nil)
	for _, e := range c.at("envFrom").items() {
		from = append(from, envSource(e))
	}
	set("envFrom", from, from != nil)
	ports := tree{}
	for _, p := range c.at("ports").items() {
		if n, ok := p.at("containerPort").number(); ok && p.at("name").isSet() {
			ports[p.at("name").text()] = n
		}
	}
	set("ports", ports, len(ports) > 0)
	mounts := d.sidecarMounts(c)
	set("mounts", mounts, mounts != nil)
	resources := &draft{job: tree{}, origin: map[string]view{}}
	resources.compute(c.at("resources"), "resources")
	item["resources"] = resources.get("resources").value
	startup := probeItem(c, c.at("startupProbe"))
	set("startup", startup, startup != nil)
	return item
}

// sidecarMounts are the mounts of volumes that the workers have too.
func (d *draft) sidecarMounts(c view) (mounts []any) {
	for _, m := range c.at("volumeMounts").items() {
		name := d.volume[m.at("name").text()]
		worker, own := "/tmp", m.at("subPath").text()
		readOnly := false
		if name != job.VolumeTmp {
			v := d.get("spec.storage").item("name", name)
			if name == "" || !v.isSet() || v.at("subPath").text() != own {
				continue
			}
			worker, readOnly, own = v.at("mountPath").text(), v.at("readOnly").isTrue(), ""
		}
		if own != "" || m.at("subPathExpr").isSet() || m.at("mountPropagation").isSet() {
			continue
		}
		mount := tree{"volume": name}
		if where := m.at("mountPath").text(); path.Clean(where) != path.Clean(worker) {
			mount["path"] = where
		}
		if m.at("readOnly").isTrue() != readOnly {
			mount["readOnly"] = m.at("readOnly").isTrue()
		}
		mounts = append(mounts, mount)
	}
	return mounts
}

// probes reads the kubelet's questions of the workers.
func (d *draft) probes(c view) {
	for field, key := range map[string]string{
		"startup": "startupProbe", "liveness": "livenessProbe", "readiness": "readinessProbe",
	} {
		if p := probeItem(c, c.at(key)); p != nil && d.carries("probes."+field) {
			d.set("spec.probes."+field, p, c.at(key))
		}
	}
}

// probeItem is a question in the schema's words, nil where it has none for it: the answer to a call of gRPC, or to a
// request with a host, headers or TLS.
func probeItem(c, p view) tree {
	item := tree{}
	get, tcp := p.at("httpGet"), p.at("tcpSocket")
	plain := !get.at("host").isSet() && !get.at("httpHeaders").isSet() && !tcp.at("host").isSet() &&
		(get.at("scheme").text() == "" || get.at("scheme").text() == "HTTP")
	port := portNumber(c, orElse(get, tcp).at("port"))
	switch {
	case p.at("exec").isSet():
		item["exec"] = p.at("exec", "command").value
	case !plain || port == 0 || !get.isSet() && !tcp.isSet(): // a port without a name is none of a probe's
		return nil
	case get.isSet():
		request := tree{"port": port}
		if where := get.at("path").text(); where != "" && where != "/" {
			if !strings.HasPrefix(where, "/") {
				return nil
			}
			request["path"] = where
		}
		item["http"] = request
	default:
		item["tcp"] = port
	}
	for field, key := range map[string]string{
		"delay": "initialDelaySeconds", "period": "periodSeconds", "timeout": "timeoutSeconds",
	} {
		if n, ok := p.at(key).number(); ok && n > 0 {
			item[field] = durationText(n)
		}
	}
	if n, ok := p.at("failureThreshold").number(); ok && n > 0 {
		item["failures"] = n
	}
	return item
}

// portNumber is the number of a port, which a probe may call by its name; 0 where nothing says it.
func portNumber(c, port view) int64 {
	if !port.isSet() { // a port without a name has this one too
		return 0
	}
	if n, err := strconv.ParseInt(port.text(), 10, 32); err == nil {
		return n
	}
	n, named := c.at("ports").item("name", port.text()).at("containerPort").number()
	if named {
		port.markTranslated()
	}
	return n
}
