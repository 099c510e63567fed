package rule

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
)

var companionRules = []oldRule{
	{
		(*Validation).companion,
		"workers.master launcher rendezvous.backend rendezvous.store rendezvous.proxy rendezvous.port " +
			"rendezvous.conf rendezvous.companion images.rendezvous metadata target",
	},
	{
		(*Validation).keepAlive,
		"workers.master launcher framework target rendezvous.backend rendezvous.keepAlive rendezvous.keepAliveAttempts",
	},
}

const noRendezvousImage = "needs spec.images.rendezvous, for which only a release of tegen has a default: build and " +
	"push the image with 'make push REGISTRY=<yours>', and name it in the job or in an Environment's defaults"

// companion holds the settings of the rendered tegen-rendezvous together.
func (r *Validation) companion() {
	z := &r.Spec.Rendezvous
	if r.Spec.WithoutRendezvous() {
		return
	}
	if z.Store != job.StoreCompanion {
		// An environment may say how companions are wherever there is one: a job of one worker has none.
		if alone := r.Spec.Workers.Max == 1 &&
			!r.IsSet("spec.rendezvous.store"); r.IsSet("spec.rendezvous.companion") &&
			(!alone || r.Origin.Asked.Companion) {
			r.fail("spec.rendezvous.companion", "requires",
				"no companion is rendered with store %s: leave it out, or set store: companion", z.Store)
		}
		return
	}
	if r.Spec.Images.Rendezvous == "" {
		r.fail("spec.rendezvous.store", "requires", "store companion "+noRendezvousImage)
	}
	if _, ok := z.Conf["is_host"]; ok {
		r.failKey("spec.rendezvous.conf", "is_host", "reserved",
			"is set by spec.rendezvous.store: the companion is the host, and no worker")
	}
	if z.Port == names.RendezvousStatusPort {
		r.fail("spec.rendezvous.port", "reserved", "%d is the port of the companion's status: choose another", z.Port)
	}
	r.companionName()
	r.companionPods()
	if z.Companion.Etcd != nil {
		r.companionEtcd(z.Companion.Etcd)
	}
}

func (r *Validation) companionName() {
	const at = "spec.rendezvous.companion.name"
	name := r.Spec.Rendezvous.Companion.Name
	if strings.HasPrefix(name, r.Metadata.Name+"-worker") {
		r.fail(at, "reserved", "%s-worker is the start of the workers' own names: choose another name", r.Metadata.Name)
	}
	if name == r.Metadata.Name && (r.Spec.Target == job.TargetJobSet || r.Spec.Target == job.TargetVCJob) {
		r.fail(at, "reserved",
			"%s is the name of the Service that the controller of target %s makes: choose another name", name,
			r.Spec.Target)
	}
}

// companionPods refuses what c10d's clients could not live with where no proxy stands before them: they never connect
// again, and their server's data is in its memory, so that a second pod would split the run and a kept volume serve
// nobody.
func (r *Validation) companionPods() {
	z := &r.Spec.Rendezvous
	const (
		at     = "spec.rendezvous.companion"
		memory = "a c10d store without proxies lives in the memory of its one pod"
	)
	forgets := z.Backend == job.BackendC10d && !z.Proxy
	remedy := memory + ": leave rendezvous.proxy out, or set backend: etcd"
	if n := r.Root.Below("spec", "rendezvous", "proxy"); n != nil && n.Merged {
		remedy = memory + ", and the environment says rendezvous.proxy: false: set it to true, or set backend: etcd"
	}
	switch c := &z.Companion; {
	case forgets && c.Etcd != nil:
		r.fail(at+".etcd", "requires", "%s", remedy)
	case forgets && c.Storage != nil:
		r.fail(at+".storage", "requires", "%s", remedy)
	case forgets && c.Replicas > 1:
		r.fail(at+".replicas", "requires", memory+": two would split the run, so leave it out, or set companion.etcd")
	case c.Etcd == nil && c.Replicas > 1:
		r.fail(at+".replicas", "requires", "%d pods need an etcd that they share: set companion.etcd, or leave it out",
			c.Replicas)
	case c.Etcd != nil && c.Storage != nil:
		r.fail(at+".storage", "requires", "companion.etcd keeps the data: no pod of the companion has any")
	}
}

// companionEtcd holds addresses and Secrets of an etcd that exists together. The companion's image has no certificate
// authorities of its own.
func (r *Validation) companionEtcd(e *job.CompanionEtcd) {
	const at = "spec.rendezvous.companion.etcd"
	for i, endpoint := range e.Endpoints {
		path := fmt.Sprintf("%s.endpoints[%d]", at, i)
		switch https := strings.HasPrefix(endpoint, "https:"); {
		case https && e.TLS == nil:
			r.fail(path, "requires",
				"https needs companion.etcd.tls: the companion's image has no CA certificates")
		case !https && e.TLS != nil:
			r.fail(path, "requires", "companion.etcd.tls is for https, and this is http: write https, or leave tls out")
		}
	}
	switch {
	case e.User != "" && e.Password == nil:
		r.fail(at+".user", "requires", "needs companion.etcd.password, the key of a Secret")
	case e.User == "" && e.Password != nil:
		r.fail(at+".password", "requires", "has no user: set companion.etcd.user")
	}
}

// keepAlive refuses an interval that nobody reads.
func (r *Validation) keepAlive() {
	z := &r.Spec.Rendezvous
	if r.Row == nil || !r.Row.Carries("rendezvous") || r.Spec.WithoutRendezvous() || z.Dynamic() {
		return
	}
	for _, field := range []string{"keepAlive", "keepAliveAttempts"} {
		if at := "spec.rendezvous." + field; r.IsSet(at) {
			r.fail(at, "requires", "backend %s does not read it: leave it out; c10d and etcd-v2 do", z.Backend)
		}
	}
}

var rendezvousRules = []oldRule{
	{
		(*Validation).store,
		"workers.master launcher rendezvous.backend rendezvous.store rendezvous.proxy rendezvous.endpoint " +
			"rendezvous.port rendezvous.etcd",
	},
	{
		(*Validation).rendezvous,
		"workers.master launcher rendezvous.lastCall rendezvous.joinTimeout",
	},
	{
		(*Validation).etcd,
		"workers.master launcher rendezvous.backend rendezvous.store rendezvous.port rendezvous.etcd images.etcdV2 " +
			"metadata target",
	},
}

// store holds the backend and who serves it together.
func (r *Validation) store() {
	z := &r.Spec.Rendezvous
	if r.Spec.WithoutRendezvous() { // master refuses the whole section, as it does in the rules below
		return
	}
	switch {
	case z.Backend == job.BackendC10d && z.Store == job.StoreEtcd && !z.Proxy:
		r.fail("spec.rendezvous.store", "requires", "an etcd serves backend etcd or etcd-v2, and c10d by proxies: "+
			"set rendezvous.proxy: true, or another backend")
	case z.Backend != job.BackendC10d && z.Store == job.StoreWorker:
		at := "spec.rendezvous.backend"
		if r.IsSet("spec.rendezvous.store") {
			at = "spec.rendezvous.store"
		}
		rendered := "etcd"
		if z.SpeaksV2() {
			rendered = "companion, etcd"
		}
		r.fail(at, "requires", "backend %s needs a store: %s, or external with an endpoint", z.Backend, rendered)
	case z.Store == job.StoreExternal && z.Endpoint == "":
		r.fail("spec.rendezvous.endpoint", "required", "required field is missing: host:port of the external store")
	case z.Store != job.StoreExternal && z.Endpoint != "":
		r.fail("spec.rendezvous.endpoint", "requires",
			"only store external has an endpoint: leave it out, or set store: external")
	}
	if z.Store == job.StoreExternal && z.Port != 0 {
		r.fail("spec.rendezvous.port", "requires", "the endpoint of an external store has its port: leave it out")
	}
	if z.Store != job.StoreEtcd && r.IsSet("spec.rendezvous.etcd") {
		r.fail("spec.rendezvous.etcd", "requires",
			"no etcd is rendered with store %s: leave it out, or set store: etcd", z.Store)
	}
}

func (r *Validation) rendezvous() {
	z := &r.Spec.Rendezvous
	if r.Spec.WithoutRendezvous() {
		return
	}
	if z.LastCall.Duration > z.JoinTimeout.Duration {
		r.fail("spec.rendezvous.lastCall", "order", "%s is above joinTimeout %s: lower it, or raise joinTimeout",
			job.Short(z.LastCall),
			job.Short(z.JoinTimeout))
	}
}

var etcdVersion = lazy.Regexp(`:v?([0-9]+)\.([0-9]+)(\.|-|@|$)`)

// etcd refuses a server that would not speak the backend's API: v2 was removed in 3.6 (etcd CHANGELOG-3.6).
func (r *Validation) etcd() {
	z := &r.Spec.Rendezvous
	if z.Store != job.StoreEtcd || r.Spec.WithoutRendezvous() {
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
	if z.Etcd.Name == r.Metadata.Name && (r.Spec.Target == job.TargetJobSet || r.Spec.Target == job.TargetVCJob) {
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

// sharedStore is a server outside the job to which the job's workers may write, themselves or by a companion.
type sharedStore struct {
	key   string // the same for two jobs that read each other's keys: host:port by the full name of a Service, and user
	field string
	text  string // as the author wrote it
	fix   string
}

// sharedStores are the external store of a job, or the members of the etcd behind its companion: a companion gives its
// clients the keys of all jobs in its etcd. A user keeps jobs apart only if proxies use it. Agents of backend etcd do
// not log in, and a companion of that backend keeps all runs below one key.
func sharedStores(j *job.Job) (stores []sharedStore) {
	z, user := &j.Spec.Rendezvous, ""
	add := func(field, text, fix string) {
		key := hostPort(text, j.Metadata.Namespace)
		if j.Spec.Proxied() && user != "" {
			key = user + "@" + key
		}
		stores = append(stores, sharedStore{key, field, text, fix})
	}
	switch {
	case j.Spec.WithoutRendezvous():
	case z.Store == job.StoreExternal:
		user = z.Conf["user"]
		add("spec.rendezvous.endpoint", z.Endpoint, "Use store: companion, or one store for each namespace")
	case z.Store == job.StoreCompanion && z.Companion.Etcd != nil:
		user = z.Companion.Etcd.User
		fix := "Use companion.storage, or one etcd for each namespace"
		if j.Spec.Proxied() {
			fix = "Use companion.storage, one etcd for each namespace, or one etcd user for each"
		}
		for i, endpoint := range z.Companion.Etcd.Endpoints {
			add(fmt.Sprintf("spec.rendezvous.companion.etcd.endpoints[%d]", i), endpoint, fix)
		}
	}
	return stores
}

// hostPort is the address of a URL or of host:port, with the namespace of a Service.
func hostPort(endpoint, namespace string) string {
	endpoint = endpoint[strings.LastIndex(endpoint, "/")+1:] // a URL here has no path
	host, port, _ := strings.Cut(endpoint, ":")
	parts := strings.Split(strings.ToLower(host), ".")
	switch {
	case len(parts) == 1:
		parts = append(parts, namespace)
	case len(parts) > 2 && parts[2] == "svc":
		parts = parts[:2]
	}
	return strings.Join(parts, ".") + ":" + port
}

// storeClash refuses a job that shares a store with an earlier one in another namespace. seen has who came first.
func storeClash(j *job.Job, root *structural.Node, seen map[string]*job.Job) structural.Errors {
	for _, store := range sharedStores(j) {
		if seen[store.key] == nil {
			seen[store.key] = j
		}
		if first := seen[store.key].Metadata; first.Namespace != j.Metadata.Namespace {
			return structural.Errors{root.Errorf(store.field, "duplicate",
				"%s is also the rendezvous of job %s/%s, in another namespace. Access to a rendezvous is code "+
					"execution in the workers of all its jobs. %s", store.text, first.Namespace, first.Name, store.fix)}
		}
	}
	return nil
}

// Clashes are mistakes between jobs: two of one name, two that would meet in one rendezvous, or two of different
// namespaces that share a store.
func Clashes(jobs []Loaded, roots []*structural.Node) structural.Errors {
	var errs structural.Errors
	names, runs, stores := map[string]int{}, map[string]int{}, map[string]*job.Job{}
	for i, l := range jobs {
		if l.Job == nil || l.Invalid.Touch("metadata") {
			continue
		}
		m := l.Job.Metadata
		if first, ok := names[m.Namespace+"/"+m.Name]; ok {
			at := roots[first].At
			errs = append(errs,
				roots[i].Errorf("metadata.name", "duplicate", "%q is the name of the job at %s:%d already", m.Name,
					at.File, at.Line))
			continue
		}
		names[m.Namespace+"/"+m.Name] = i
		if !l.Invalid.Touch("rendezvous") {
			if clash := storeClash(l.Job, roots[i], stores); clash != nil {
				errs = append(errs, clash...)
				continue
			}
		}
		id := l.Job.Spec.Rendezvous.ID
		if id == "" || l.Invalid.Touch("rendezvous.id") {
			continue
		}
		if first, ok := runs[id]; ok {
			errs = append(errs,
				roots[i].Errorf("spec.rendezvous.id", "duplicate",
					"%q is the id of job %q already, and runs of one id join each other: give each its own", id,
					jobs[first].Job.Metadata.Name))
			continue
		}
		runs[id] = i
	}
	return errs
}
