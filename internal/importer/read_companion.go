package importer

import (
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// companion reads the tegen-rendezvous of the stream that serves an endpoint, and says whether there is one.
func (d *draft) companion(name, port, backend string, from view) bool {
	service := d.stream.find("", "Service", d.namespace(), name)
	if service == nil {
		return false
	}
	server := d.stream.behind(service, func(template view) bool { return companionOf(template).isSet() })
	if server == nil {
		return false
	}
	d.set("spec.rendezvous.store", job.StoreCompanion, from)
	if name != d.name()+"-rendezvous" {
		d.set("spec.rendezvous.companion.name", name, from)
	}
	usual := int64(names.EtcdClientPort)
	if backend == job.BackendC10d {
		usual = names.C10dPort
	}
	if n, err := strconv.ParseInt(port, 10, 64); err == nil && n != usual {
		d.set("spec.rendezvous.port", n, from)
	}
	d.readCompanion(server.view().at("spec"))
	return true
}

// companionOf is the container that serves the rendezvous.
func companionOf(template view) view {
	c := template.at("spec", "containers").item("name", "rendezvous")
	if words := c.at("args").texts(); len(words) == 0 || words[0] != "serve" {
		return view{}
	}
	return c
}

// readCompanion reads the workload of a companion.
func (d *draft) readCompanion(v view) {
	const at = "spec.rendezvous.companion."
	c := companionOf(v.at("template"))
	d.set("spec.images.rendezvous", c.at("image").text(), c.at("image"))
	d.compute(c.at("resources"), "spec.roles.companion.resources")
	d.nodesFor("spec.roles.companion", v.at("template", "spec"))
	if claims := v.at("volumeClaimTemplates").items(); len(claims) == 1 {
		claim := claims[0].at("spec")
		d.set(at+"storage.size", claim.at("resources", "requests", "storage").text(), claim)
		d.set(at+"storage.storageClass", claim.at("storageClassName").text(), claim.at("storageClassName"))
	}
	for _, word := range c.at("args").items() {
		switch name, value, _ := option(word.text()); name {
		case "endpoints":
			var list []any
			for endpoint := range strings.SplitSeq(value, ",") {
				list = append(list, endpoint)
			}
			d.set(at+"etcd.endpoints", list, word)
			if n, ok := v.at("replicas").number(); ok {
				d.set(at+"replicas", n, v.at("replicas"))
			}
		case "user":
			d.set(at+"etcd.user", value, word)
		}
	}
	if secret := v.at("template", "spec", "volumes").item("name", "tls").at("secret", "secretName"); secret.isSet() {
		d.set(at+"etcd.tls.secret", secret.text(), secret)
	}
	if key := c.at("env").item("name", names.RendezvousPassword).at("valueFrom", "secretKeyRef"); key.isSet() {
		d.set(at+"etcd.password", tree{"name": key.at("name").text(), "key": key.at("key").text()}, key)
	}
}
