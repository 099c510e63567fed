package importer

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// foreignEtcd reads an etcd that tegen did not render, and puts tegen's StatefulSet and Service in its place.
func (d *draft) foreignEtcd(server, service *object, backend string) {
	template := server.view()
	if server.gvk.Kind != "Pod" {
		template = server.view().at("spec", "template")
	}
	pod := template.at("spec")
	c := etcdOf(template)
	errors := etcdErrors(c, backend)
	d.notes = append(d.notes, errors...)
	if image := c.at("image"); slices.ContainsFunc(errors, func(n Note) bool { return n.Field == dotted(image.path) }) {
		image.markTranslated() // reported, and replaced
	} else {
		d.etcdImage(image, backend)
	}
	d.etcdResources(c.at("resources"))
	d.nodesFor("spec.roles.etcd", pod)
	dataDir, unknown := d.etcdOptions(c)
	for _, v := range unknown {
		d.note(v, Dropped, "spec.rendezvous.etcd has no field for it")
	}
	c.at("command").markTranslated()
	c.at("args").markTranslated()
	d.etcdData(pod, c, dataDir)

	service.replaceWith("a Service of that name is rendered with spec.rendezvous.etcd", func() tree {
		return d.renderedAs("Service", service.name)
	})
	server.replaceWith("a StatefulSet takes its place: see spec.rendezvous.etcd", func() tree {
		return etcdAs(server.gvk.Kind, c.at("name").text(), d.renderedAs("StatefulSet", service.name))
	})
	selector := service.view().at("spec", "selector")
	selector.markTranslated()
	for _, p := range service.view().at("spec", "ports").items() {
		p.at("name").markTranslated()
		p.at("targetPort").markTranslated()
	}
	server.view().at("spec", "selector").markTranslated()
	server.view().at("spec", "serviceName").markTranslated()
	for key := range selector.mapping() {
		server.view().at("metadata", "labels", key).markTranslated()
		template.at("metadata", "labels", key).markTranslated()
	}
	for _, p := range c.at("ports").items() {
		p.at("name").markTranslated()
	}
}

// renderedAs is the object of a kind and name that the job renders, nil for none.
func (d *draft) renderedAs(kind, name string) tree {
	for _, r := range d.objects {
		if v := (view{value: r}); v.at("kind").text() == kind && v.at("metadata", "name").text() == name {
			return r
		}
	}
	return nil
}

// etcdAs is the StatefulSet of a job in the form of another kind, its container under the other's name.
func etcdAs(kind, container string, set tree) tree {
	set, _ = clone(set).(tree)
	template := view{value: set}.at("spec", "template")
	for _, c := range template.at("spec", "containers").items() {
		c.mapping()["name"] = container
	}
	if kind == "Pod" {
		return template.mapping()
	}
	return set
}

// etcdOf is the container that runs etcd.
func etcdOf(template view) view {
	for _, c := range template.at("spec", "containers").items() {
		if runsEtcd(c) {
			return c
		}
	}
	return view{object: template.object}
}

func runsEtcd(c view) bool {
	words := append(c.at("command").texts(), c.at("args").texts()...)
	return strings.Contains(c.at("image").text(), "etcd") || len(words) > 0 && strings.HasSuffix(words[0], "etcd")
}

// ownOptions are etcd's options that tegen sets for the cluster that it renders.
var ownOptions = []string{
	"name", "listen-client-urls", "advertise-client-urls", "listen-peer-urls",
	"initial-advertise-peer-urls", "initial-cluster", "initial-cluster-state", "initial-cluster-token",
	"listen-metrics-urls", "auto-compaction-mode", "enable-v2",
}

// etcdOptions reads the words that etcd is started with: where its data is, and those that no field says.
func (d *draft) etcdOptions(c view) (dataDir string, unknown []view) {
	words := append(c.at("command").items(), c.at("args").items()...)
	if len(words) > 0 && strings.HasSuffix(words[0].text(), "etcd") {
		words = words[1:]
	}
	for i := 0; i < len(words); i++ {
		word := words[i]
		name, value, inline := option(word.text())
		if !strings.HasPrefix(word.text(), "-") {
			unknown = append(unknown, word)
			continue
		}
		if !inline && i+1 < len(words) && !strings.HasPrefix(words[i+1].text(), "-") {
			i++
			value = words[i].text()
		}
		kept, periodic := slices.Contains(ownOptions, name), name != "auto-compaction-mode" || value == "periodic"
		switch name {
		case "data-dir":
			dataDir, kept = value, true
		case "quota-backend-bytes":
			d.set("spec.rendezvous.etcd.quota", bytesOf(value), word)
			kept = true
		case "auto-compaction-retention":
			if history, ok := compaction(value); ok {
				d.set("spec.rendezvous.etcd.compaction", history, word)
				kept = true
			}
		}
		if !kept || !periodic {
			unknown = append(unknown, word)
		}
	}
	return dataDir, unknown
}

// compaction is the history that etcd keeps; a number without a unit is one of hours (etcd: auto-compaction-retention).
func compaction(text string) (string, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		return durationText(n * 3600), true
	}
	history, err := time.ParseDuration(text)
	return durationText(int64(history / time.Second)), err == nil && history >= time.Second
}

// etcdData reads the volume that holds etcd's data: a claim of the input becomes one of each member.
func (d *draft) etcdData(pod, c view, dataDir string) {
	for _, mount := range c.at("volumeMounts").items() {
		at := path.Clean(mount.at("mountPath").text())
		if dataDir = path.Clean(dataDir); dataDir != at && !strings.HasPrefix(dataDir, at+"/") {
			continue
		}
		volume := pod.at("volumes").item("name", mount.at("name").text())
		if scratch := volume.at("emptyDir"); scratch.isSet() && len(scratch.mapping()) == 0 {
			mount.markTranslated()
		}
		name := volume.at("persistentVolumeClaim", "claimName").text()
		claim := d.stream.find("", "PersistentVolumeClaim", d.namespace(), name)
		if claim == nil {
			continue
		}
		d.etcdStorage(claim.view().at("spec"))
		mount.markTranslated()
		server := d.get("spec.rendezvous.etcd.name").text()
		if server == "" {
			server = d.name() + "-etcd"
		}
		claim.replaceWith("each member of etcd is given a new claim of its own: see spec.rendezvous.etcd.storage",
			func() tree {
				templates := view{value: d.renderedAs("StatefulSet", server)}.at("spec", "volumeClaimTemplates").items()
				if len(templates) == 0 {
					return nil
				}
				return templates[0].mapping()
			})
	}
}
