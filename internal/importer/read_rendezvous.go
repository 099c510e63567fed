package importer

import (
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/schema/job"
)

var firstWorker = lazy.Regexp(`^[a-z0-9-]+-worker-[01]$`)

// readRendezvous reads backend and endpoint: served by the first worker, by an etcd of the stream, or by someone else.
func (d *draft) readRendezvous(backend, endpoint setting) {
	host, port, _ := strings.Cut(endpoint.text, ":")
	name, _, _ := strings.Cut(host, ".")
	switch {
	case backend.text == "" && endpoint.text != "": // torchrun's own
		backend = setting{job.BackendC10d, endpoint.from}
	case backend.text == "static": // which is told with the options that go with it
		return
	}
	d.set("spec.rendezvous.backend", backend.text, backend.from)
	served := d.companion(name, port, backend.text, endpoint.from) || d.etcd(name, port, backend.text, endpoint.from)
	switch {
	case endpoint.text == "" || served:
	case backend.text == job.BackendC10d && (firstWorker().MatchString(name) ||
		strings.HasPrefix(name, d.workload[0].name)):
		d.firstWorker(host, port, endpoint.from)
	case strings.Contains(endpoint.text, "$"):
		d.note(endpoint.from, Translated, "%s is known only where it runs: the first worker's own name is rendered",
			endpoint.text)
	default:
		d.set("spec.rendezvous.store", job.StoreExternal, endpoint.from)
		d.set("spec.rendezvous.endpoint", endpoint.text, endpoint.from)
	}
}

// firstWorker reads the name by which the workers dial the first of them.
func (d *draft) firstWorker(host, port string, from view) {
	if n, err := strconv.ParseInt(port, 10, 64); err == nil && n != 29400 {
		d.set("spec.rendezvous.port", n, from)
	}
	if _, domain, ok := strings.Cut(host, ".svc."); ok {
		d.set("spec.network.clusterDomain", domain, from)
	}
}

// confFields are keys of --rdzv-conf that have fields of their own.
var confFields = map[string]string{
	"last_call_timeout": "lastCall", "lastcall_timeout": "lastCall",
	"join_timeout": "joinTimeout", "timeout": "joinTimeout",
}

var tlsKeys = map[string]bool{
	"protocol": true, "cacert": true, "cert": true, "key": true, "ca_cert": true,
	"ssl_cert": true, "ssl_cert_key": true,
}

func (d *draft) conf(s setting) {
	for _, pair := range strings.Split(s.text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		n, err := strconv.ParseInt(value, 10, 64)
		switch field := confFields[key]; {
		case !ok:
		case field != "" && err == nil:
			d.set("spec.rendezvous."+field, durationText(n), s.from)
		case key == "keep_alive_interval" && err == nil:
			d.set("spec.rendezvous.keepAlive", durationText(n), s.from)
		case key == "keep_alive_max_attempt" && err == nil:
			d.set("spec.rendezvous.keepAliveAttempts", n, s.from)
		case key == "is_host" && value == "0" && (d.outlived() ||
			d.get("spec.rendezvous.store").text() == job.StoreCompanion):
		case tlsKeys[key] && d.get("spec.rendezvous.etcd.tls").isSet():
		default:
			d.put("spec.rendezvous.conf", key, unescaped(value), s.from)
		}
	}
}

// torchrunTimeout sets how long torchrun waits with backend etcd where nobody says: it hands 900 seconds on to every
// backend, of which etcd alone reads them (torch 1.13 to 2.14, torch/distributed/launcher/api.py: default_timeout).
func (d *draft) torchrunTimeout(backend setting) {
	const field = "spec.rendezvous.joinTimeout"
	if backend.text == job.BackendEtcd && !d.get(field).isSet() {
		d.set(field, durationText(900), backend.from)
	}
}

// runID reads the name of the run, less what tegen adds to make it unique.
func (d *draft) runID(s setting) {
	id := strings.TrimSuffix(s.text, "-$(TEGEN_RUN_UID)")
	switch {
	case id == "" || id == d.name() && id != s.text:
	case strings.Contains(id, "$"):
		d.note(s.from, Translated, "%s is known only where it runs: each run is named anew", id)
	default:
		d.set("spec.rendezvous.id", id, s.from)
	}
}
