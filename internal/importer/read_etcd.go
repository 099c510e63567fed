package importer

import (
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

// etcd reads the etcd of the stream that serves an endpoint, and says whether there is one. A StatefulSet of tegen's is
// read in full; any other form is replaced by tegen's, and its errors are reported.
func (d *draft) etcd(name, port, backend string, from view) bool {
	service := d.stream.find("", "Service", d.namespace(), name)
	if service == nil || backend == job.BackendC10d && !d.outlived() {
		return false
	}
	if set := d.stream.find("apps", "StatefulSet", d.namespace(), name); set != nil {
		d.storeIn(name, port, backend, from)
		d.members(set, backend)
		return true
	}
	server := d.stream.behind(service, isEtcd)
	if server == nil {
		return false
	}
	d.storeIn(name, port, backend, from)
	d.foreignEtcd(server, service, backend)
	return true
}

func (d *draft) storeIn(name, port, backend string, from view) {
	d.set("spec.rendezvous.store", job.StoreEtcd, from)
	if name != d.name()+"-etcd" {
		d.set("spec.rendezvous.etcd.name", name, from)
	}
	if n, err := strconv.ParseInt(port, 10, 64); err == nil && n != 2379 {
		d.set("spec.rendezvous.port", n, from)
	}
}

// behind is the workload whose pods a Service selects.
func (s *stream) behind(service *object, wanted func(view) bool) *object {
	selector := service.view().at("spec", "selector")
	for _, o := range s.objects {
		template := o.view()
		if o.gvk.Kind != "Pod" {
			template = o.view().at("spec", "template")
		}
		if !template.at("spec", "containers").isSet() || !sameNamespace(o.namespace, service.namespace) ||
			!wanted(template) {
			continue
		}
		matches := len(selector.mapping()) > 0
		for key, value := range selector.mapping() {
			matches = matches && template.at("metadata", "labels", key).value == value
		}
		if matches {
			return o
		}
	}
	return nil
}

func isEtcd(template view) bool { return etcdOf(template).isSet() }

var floating = lazy.Regexp(`(^|/)[^:@/]+(:latest)?$`)

// etcdErrors names what has kept etcds of samples from working: clients dial what a member advertises, and the v2 API
// ended with etcd 3.5 (etcd CHANGELOG-3.6).
func etcdErrors(c view, backend string) (notes []Note) {
	for _, list := range []string{"command", "args"} {
		items := c.at(list).items()
		for i, word := range items {
			value := word
			if !strings.Contains(word.text(), "=") && i+1 < len(items) {
				value = items[i+1]
			}
			switch {
			case strings.HasPrefix(strings.TrimLeft(word.text(), "-"), "advertise-client-urls") &&
				strings.Contains(value.text(), "//0.0.0.0"):
				notes = append(notes,
					value.note(Error, "clients that reconnect dial what etcd advertises, and 0.0.0.0 is none of its "+
						"addresses: tegen advertises the Service's name"))
			case strings.HasPrefix(strings.TrimLeft(word.text(), "-"), "enable-v2") &&
				floating().MatchString(c.at("image").text()):
				notes = append(notes, c.at("image").note(Error,
					"etcd 3.6 and newer refuse --enable-v2, and latest is such a one: tegen pins the last that has it"))
			}
		}
	}
	return notes
}

// members reads a StatefulSet of tegen's.
func (d *draft) members(set *object, backend string) {
	v := set.view().at("spec")
	c := v.at("template", "spec", "containers").item("name", "etcd")
	if n, ok := v.at("replicas").number(); ok {
		d.set("spec.rendezvous.etcd.replicas", n, v.at("replicas"))
	}
	d.etcdImage(c.at("image"), backend)
	d.etcdResources(c.at("resources"))
	d.nodesFor("spec.roles.etcd", v.at("template", "spec"))
	d.etcdOptions(c)
	if claim := v.at("volumeClaimTemplates").items(); len(claim) == 1 {
		d.etcdStorage(claim[0].at("spec"))
	}
	d.certificates(v.at("template", "spec"))
}

func (d *draft) etcdImage(image view, backend string) {
	field := "spec.images.etcd"
	if backend == job.BackendEtcd || backend == job.BackendEtcdV2 {
		field = "spec.images.etcdV2"
	}
	d.set(field, image.text(), image)
}

func (d *draft) etcdResources(resources view) { d.compute(resources, "spec.roles.etcd.resources") }

func (d *draft) etcdStorage(claim view) {
	d.set("spec.rendezvous.etcd.storage.size", claim.at("resources", "requests", "storage").text(), claim)
	d.set("spec.rendezvous.etcd.storage.storageClass", claim.at("storageClassName").text(),
		claim.at("storageClassName"))
}

// certificates reads the Secrets of the members and of the workers. A Secret with keys of other names is that which
// tegen has filled, and needs no field.
func (d *draft) certificates(members view) {
	source := members.at("volumes").item("name", "tls").at("secret")
	secret := source.at("secretName")
	if !secret.isSet() || source.at("items").item("key", "server.key").isSet() {
		return
	}
	d.set("spec.rendezvous.etcd.tls.secret", secret.text(), secret)
	worker := d.template.at("spec", "volumes").item("name", "tls").at("secret", "secretName")
	if worker.text() != secret.text() {
		d.set("spec.rendezvous.etcd.tls.clientSecret", worker.text(), worker)
	}
}

// bytesOf writes a number of bytes with the largest unit that divides it.
func bytesOf(text string) string {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n == 0 {
		return text
	}
	for _, unit := range []string{"", "Ki", "Mi", "Gi"} {
		if n%1024 != 0 || unit == "Gi" {
			return strconv.FormatInt(n, 10) + unit
		}
		n /= 1024
	}
	return text
}
