package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
)

var rendezvousRules = []rule{
	{
		(*validation).store,
		"workers.master launcher rendezvous.backend rendezvous.store rendezvous.proxy rendezvous.endpoint " +
			"rendezvous.port rendezvous.etcd",
	},
	{
		(*validation).rendezvous,
		"workers.master launcher rendezvous.lastCall rendezvous.joinTimeout",
	},
	{
		(*validation).etcd,
		"workers.master launcher rendezvous.backend rendezvous.store rendezvous.port rendezvous.etcd images.etcdV2 " +
			"metadata target",
	},
}

// store holds the backend and who serves it together.
func (r *validation) store() {
	z := &r.Spec.Rendezvous
	if r.Spec.WithoutRendezvous() { // master refuses the whole section, as it does in the rules below
		return
	}
	switch {
	case z.Backend == BackendC10d && z.Store == StoreEtcd && !z.Proxy:
		r.fail("spec.rendezvous.store", "requires", "an etcd serves backend etcd or etcd-v2, and c10d by proxies: "+
			"set rendezvous.proxy: true, or another backend")
	case z.Backend != BackendC10d && z.Store == StoreWorker:
		at := "spec.rendezvous.backend"
		if r.isSet("spec.rendezvous.store") {
			at = "spec.rendezvous.store"
		}
		rendered := "etcd"
		if z.SpeaksV2() {
			rendered = "companion, etcd"
		}
		r.fail(at, "requires", "backend %s needs a store: %s, or external with an endpoint", z.Backend, rendered)
	case z.Store == StoreExternal && z.Endpoint == "":
		r.fail("spec.rendezvous.endpoint", "required", "required field is missing: host:port of the external store")
	case z.Store != StoreExternal && z.Endpoint != "":
		r.fail("spec.rendezvous.endpoint", "requires",
			"only store external has an endpoint: leave it out, or set store: external")
	}
	if z.Store == StoreExternal && z.Port != 0 {
		r.fail("spec.rendezvous.port", "requires", "the endpoint of an external store has its port: leave it out")
	}
	if z.Store != StoreEtcd && r.isSet("spec.rendezvous.etcd") {
		r.fail("spec.rendezvous.etcd", "requires",
			"no etcd is rendered with store %s: leave it out, or set store: etcd", z.Store)
	}
}

func (r *validation) rendezvous() {
	z := &r.Spec.Rendezvous
	if r.Spec.WithoutRendezvous() {
		return
	}
	if z.LastCall.Duration > z.JoinTimeout.Duration {
		r.fail("spec.rendezvous.lastCall", "order", "%s is above joinTimeout %s: lower it, or raise joinTimeout",
			short(z.LastCall),
			short(z.JoinTimeout))
	}
}

var etcdVersion = lazy.Regexp(`:v?([0-9]+)\.([0-9]+)(\.|-|@|$)`)

// etcd refuses a server that would not speak the backend's API: v2 was removed in 3.6 (etcd CHANGELOG-3.6).
func (r *validation) etcd() {
	z := &r.Spec.Rendezvous
	if z.Store != StoreEtcd || r.Spec.WithoutRendezvous() {
		return
	}
	if z.Port == names.EtcdPeerPort || z.Port == names.EtcdMetricsPort {
		r.fail("spec.rendezvous.port", "reserved",
			"%d is a port of etcd's own, for its members or its metrics: choose another",
			z.Port)
	}
	if strings.HasPrefix(z.Etcd.Name, r.Metadata.Name+"-worker") {
		r.fail("spec.rendezvous.etcd.name", "reserved",
			"%s-worker is the start of the workers' own names: choose another name",
			r.Metadata.Name)
	}
	if z.Etcd.Name == r.Metadata.Name && (r.Spec.Target == TargetJobSet || r.Spec.Target == TargetVCJob) {
		r.fail("spec.rendezvous.etcd.name", "reserved",
			"%s is the name of the Service that the controller of target %s makes: choose another name", z.Etcd.Name,
			r.Spec.Target)
	}
	if s := z.Etcd.Storage; s != nil && z.Etcd.Quota.Cmp(s.Size) > 0 {
		r.fail("spec.rendezvous.etcd.quota", "order", "%s is above storage.size %s: lower it, or raise storage.size",
			z.Etcd.Quota.String(),
			s.Size.String())
	}
	if z.Etcd.Replicas > 1 && z.Etcd.Storage == nil {
		r.fail("spec.rendezvous.etcd.storage", "requires",
			"%d members need a volume each: a member that comes back without its data cannot rejoin", z.Etcd.Replicas)
	}
	if !z.SpeaksV2() {
		return
	}
	const at = "spec.images.etcdV2"
	m := etcdVersion().FindStringSubmatch(r.Spec.Images.EtcdV2)
	if m == nil {
		r.fail(at, "requires",
			"must have a version tag older than 3.6, since backend %s speaks the v2 API, which 3.6 removed", z.Backend)
		return
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	if major > 3 || major == 3 && minor >= 6 {
		r.fail(at, "requires", "%s has no v2 API, which backend %s speaks and 3.6 removed: use 3.5",
			fmt.Sprintf("etcd %d.%d", major, minor), z.Backend)
	}
}

// store is where the runs of a job are kept, if whoever reaches it may write to all of them.
type store struct {
	path, text, address string // the field, its text, and the address with the full name of a Service
}

// storesOf returns the external store of a job, or the etcd of its companion, by each address. There are none if the
// etcd knows the rights of its clients: proxies or the companion log in, or the companion has a certificate for it.
func storesOf(j *Job) (out []store) {
	z := &j.Spec.Rendezvous
	switch e := z.Companion.Etcd; {
	case j.Spec.WithoutRendezvous():
	case z.Store == StoreExternal && (!j.Spec.Proxied() || z.Conf["user"] == ""):
		out = []store{{"spec.rendezvous.endpoint", z.Endpoint, ""}}
	case z.Store == StoreCompanion && e != nil && e.User == "" && e.TLS == nil:
		for _, endpoint := range e.Endpoints {
			out = append(out, store{"spec.rendezvous.companion.etcd.endpoints", endpoint, ""})
		}
	}
	for i, s := range out {
		host, port, _ := strings.Cut(s.text[strings.LastIndex(s.text, "/")+1:], ":")
		parts := strings.Split(strings.ToLower(host), ".")
		switch {
		case len(parts) == 1:
			parts = append(parts, j.Metadata.Namespace)
		case len(parts) > 2 && parts[2] == "svc":
			parts = parts[:2]
		}
		out[i].address = strings.Join(parts, ".") + ":" + port
	}
	return out
}

// sharedStores is the mistake that a job has its runs in the store of an earlier job of another namespace.
func sharedStores(jobs []loaded, roots []*structural.Node, i int, stores map[string]int) Errors {
	for _, s := range storesOf(jobs[i].job) {
		first, ok := stores[s.address]
		if !ok {
			stores[s.address], first = i, i
		}
		if other := jobs[first].job.Metadata; other.Namespace != jobs[i].job.Metadata.Namespace {
			return Errors{roots[i].Errorf(s.path, "duplicate",
				"%s is also the store of the rendezvous of job %s/%s, in another namespace. Access to a rendezvous is "+
					"code execution in the workers of all its jobs. Use a companion with a volume, or one store for "+
					"each namespace", s.text, other.Namespace, other.Name)}
		}
	}
	return nil
}

// clashes are mistakes between jobs: two of one name, two that would meet in one rendezvous, or two of different
// namespaces that share a store.
func clashes(jobs []loaded, roots []*structural.Node) Errors {
	var errs Errors
	names, runs, stores := map[string]int{}, map[string]int{}, map[string]int{}
	for i, l := range jobs {
		if l.job == nil || l.invalid.touch("metadata") {
			continue
		}
		m := l.job.Metadata
		if first, ok := names[m.Namespace+"/"+m.Name]; ok {
			at := roots[first].At
			errs = append(errs,
				roots[i].Errorf("metadata.name", "duplicate", "%q is the name of the job at %s:%d already", m.Name,
					at.File, at.Line))
			continue
		}
		names[m.Namespace+"/"+m.Name] = i
		if !l.invalid.touch("rendezvous") {
			errs = append(errs, sharedStores(jobs, roots, i, stores)...)
		}
		id := l.job.Spec.Rendezvous.ID
		if id == "" || l.invalid.touch("rendezvous.id") {
			continue
		}
		if first, ok := runs[id]; ok {
			errs = append(errs,
				roots[i].Errorf("spec.rendezvous.id", "duplicate",
					"%q is the id of job %q already, and runs of one id join each other: give each its own", id,
					jobs[first].job.Metadata.Name))
			continue
		}
		runs[id] = i
	}
	return errs
}
