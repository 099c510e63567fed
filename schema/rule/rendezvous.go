package rule

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/target"
)

var companionRules = []Rule{
	part.Of4(noCompanion, part.WithoutRendezvous, part.Store, part.MaxWorkers, part.AskedCompanion),
	part.Of2(companionImage, companion, part.RendezvousImage),
	part.Of2(companionHost, companion, part.RendezvousConf),
	part.Of2(companionPort, companion, part.RendezvousPort),
	part.Of3(companionName, companion, part.Metadata, part.Target),
	part.Of3(companionPods, companion, part.Backend, part.Proxy),
	part.Of1(companionEtcd, companion),
	part.Of3(keepAlive, part.WithoutRendezvous, target.Row, part.Backend),
}

// companion is how the rendered tegen-rendezvous is, nil where none is rendered.
var companion = part.OfSpec("rendezvous.store rendezvous.companion workers.master framework launcher",
	func(s *job.Spec) *job.Companion {
		if s.Rendezvous.Store != job.StoreCompanion || s.WithoutRendezvous() {
			return nil
		}
		return &s.Rendezvous.Companion
	})

const noRendezvousImage = "needs spec.images.rendezvous, for which only a release of tegen has a default: build and " +
	"push the image with 'make push REGISTRY=<yours>', and name it in the job or in an Environment's defaults"

// noCompanion refuses settings of a companion that is not rendered. An Environment may say how companions are wherever
// there is one: a job of one worker has none.
func noCompanion(p *Problems, without bool, store string, workers int32, asked bool) {
	if without || store == job.StoreCompanion || !p.IsSet("spec.rendezvous.companion") {
		return
	}
	if alone := workers == 1 && !p.IsSet("spec.rendezvous.store"); !alone || asked {
		p.fail("spec.rendezvous.companion", "requires",
			"no companion is rendered with store %s: leave it out, or set store: companion", store)
	}
}

func companionImage(p *Problems, c *job.Companion, image string) {
	if c != nil && image == "" {
		p.fail("spec.rendezvous.store", "requires", "store companion "+noRendezvousImage)
	}
}

func companionHost(p *Problems, c *job.Companion, conf map[string]string) {
	if _, ok := conf["is_host"]; ok && c != nil {
		p.failKey("spec.rendezvous.conf", "is_host", "reserved",
			"is set by spec.rendezvous.store: the companion is the host, and no worker")
	}
}

func companionPort(p *Problems, c *job.Companion, port int32) {
	if c != nil && port == names.RendezvousStatusPort {
		p.fail("spec.rendezvous.port", "reserved", "%d is the port of the companion's status: choose another", port)
	}
}

func companionName(p *Problems, c *job.Companion, m *job.Metadata, target string) {
	if c != nil {
		ownName(p, "spec.rendezvous.companion.name", c.Name, m.Name, target)
	}
}

// ownName refuses names of a store that belong to others of the job.
func ownName(p *Problems, at, name, jobName, target string) {
	if strings.HasPrefix(name, jobName+"-worker") {
		p.fail(at, "reserved", "%s-worker is the start of the workers' own names: choose another name", jobName)
	}
	if name == jobName && (target == job.TargetJobSet || target == job.TargetVCJob) {
		p.fail(at, "reserved", "%s is the name of the Service that the controller of target %s makes: choose another "+
			"name", name, target)
	}
}

// companionPods refuses what c10d's clients could not live with where no proxy stands before them: they never connect
// again, and their server's data is in its memory, so that a second pod would split the run and a kept volume serve
// nobody.
func companionPods(p *Problems, c *job.Companion, backend string, proxy bool) {
	if c == nil {
		return
	}
	const (
		at     = "spec.rendezvous.companion"
		memory = "a c10d store without proxies lives in the memory of its one pod"
	)
	forgets := backend == job.BackendC10d && !proxy
	remedy := memory + ": leave rendezvous.proxy out, or set backend: etcd"
	if p.Merged("spec.rendezvous.proxy") {
		remedy = memory + ", and the environment says rendezvous.proxy: false: set it to true, or set backend: etcd"
	}
	switch {
	case forgets && c.Etcd != nil:
		p.fail(at+".etcd", "requires", "%s", remedy)
	case forgets && c.Storage != nil:
		p.fail(at+".storage", "requires", "%s", remedy)
	case forgets && c.Replicas > 1:
		p.fail(at+".replicas", "requires", memory+": two would split the run, so leave it out, or set companion.etcd")
	case c.Etcd == nil && c.Replicas > 1:
		p.fail(at+".replicas", "requires", "%d pods need an etcd that they share: set companion.etcd, or leave it out",
			c.Replicas)
	case c.Etcd != nil && c.Storage != nil:
		p.fail(at+".storage", "requires", "companion.etcd keeps the data: no pod of the companion has any")
	}
}

// companionEtcd holds addresses and Secrets of an etcd that exists together. The companion's image has no certificate
// authorities of its own.
func companionEtcd(p *Problems, c *job.Companion) {
	if c == nil || c.Etcd == nil {
		return
	}
	e := c.Etcd
	const at = "spec.rendezvous.companion.etcd"
	for i, endpoint := range e.Endpoints {
		path := fmt.Sprintf("%s.endpoints[%d]", at, i)
		switch https := strings.HasPrefix(endpoint, "https:"); {
		case https && e.TLS == nil:
			p.fail(path, "requires",
				"https needs companion.etcd.tls: the companion's image has no CA certificates")
		case !https && e.TLS != nil:
			p.fail(path, "requires", "companion.etcd.tls is for https, and this is http: write https, or leave tls out")
		}
	}
	switch {
	case e.User != "" && e.Password == nil:
		p.fail(at+".user", "requires", "needs companion.etcd.password, the key of a Secret")
	case e.User == "" && e.Password != nil:
		p.fail(at+".password", "requires", "has no user: set companion.etcd.user")
	}
}

// keepAlive refuses an interval that nobody reads.
func keepAlive(p *Problems, without bool, t *target.Target, backend string) {
	if t == nil || !t.Carries("rendezvous") || without || job.KeepsAlive(backend) {
		return
	}
	for _, field := range []string{"keepAlive", "keepAliveAttempts"} {
		if at := "spec.rendezvous." + field; p.IsSet(at) {
			p.fail(at, "requires", "backend %s does not read it: leave it out; c10d and etcd-v2 do", backend)
		}
	}
}

var rendezvousRules = []Rule{
	part.Of4(store, part.WithoutRendezvous, part.Backend, part.Store, part.Proxy),
	part.Of5(endpoint, part.WithoutRendezvous, part.Store, part.Endpoint, part.RendezvousPort, unserved),
	part.Of3(joinTimes, part.WithoutRendezvous, part.LastCall, part.JoinTimeout),
	part.Of2(etcdPort, etcd, part.RendezvousPort),
	part.Of3(etcdName, etcd, part.Metadata, part.Target),
	part.Of1(etcdDisk, etcd),
	part.Of3(etcdAPI, etcd, part.Backend, part.EtcdV2Image),
}

// etcd is how the rendered etcd is, nil where none is rendered.
var etcd = part.OfSpec("rendezvous.store rendezvous.etcd workers.master framework launcher",
	func(s *job.Spec) *job.Etcd {
		if s.Rendezvous.Store != job.StoreEtcd || s.WithoutRendezvous() {
			return nil
		}
		return &s.Rendezvous.Etcd
	})

// unserved says whether nobody serves the backend, so that the author may have forgotten another store.
var unserved = part.OfSpec("rendezvous.backend rendezvous.store rendezvous.proxy", func(s *job.Spec) bool {
	z := &s.Rendezvous
	return z.Backend == job.BackendC10d && z.Store == job.StoreEtcd && !z.Proxy ||
		z.Backend != job.BackendC10d && z.Store == job.StoreWorker
})

// store holds the backend and who serves it together. Without a rendezvous another rule refuses the whole section, here
// and in the rules below.
func store(p *Problems, without bool, backend, store string, proxy bool) {
	switch {
	case without:
	case backend == job.BackendC10d && store == job.StoreEtcd && !proxy:
		p.fail("spec.rendezvous.store", "requires", "an etcd serves backend etcd or etcd-v2, and c10d by proxies: "+
			"set rendezvous.proxy: true, or another backend")
	case backend != job.BackendC10d && store == job.StoreWorker:
		at, rendered := "spec.rendezvous.backend", "companion, etcd"
		if p.IsSet("spec.rendezvous.store") {
			at = "spec.rendezvous.store"
		}
		if !job.SpeaksV2(backend) {
			rendered = "etcd"
		}
		p.fail(at, "requires", "backend %s needs a store: %s, or external with an endpoint", backend, rendered)
	}
}

// endpoint holds who serves the backend and the settings that only some of them have together.
func endpoint(p *Problems, without bool, store, endpoint string, port int32, unserved bool) {
	if without {
		return
	}
	switch external := store == job.StoreExternal; {
	case external && endpoint == "":
		p.fail("spec.rendezvous.endpoint", "required", "required field is missing: host:port of the external store")
	case !external && endpoint != "" && !unserved:
		p.fail("spec.rendezvous.endpoint", "requires",
			"only store external has an endpoint: leave it out, or set store: external")
	}
	if store == job.StoreExternal && port != 0 {
		p.fail("spec.rendezvous.port", "requires", "the endpoint of an external store has its port: leave it out")
	}
	if store != job.StoreEtcd && p.IsSet("spec.rendezvous.etcd") {
		p.fail("spec.rendezvous.etcd", "requires",
			"no etcd is rendered with store %s: leave it out, or set store: etcd", store)
	}
}

func joinTimes(p *Problems, without bool, lastCall, joinTimeout metav1.Duration) {
	if !without && lastCall.Duration > joinTimeout.Duration {
		p.fail("spec.rendezvous.lastCall", "order", "%s is above joinTimeout %s: lower it, or raise joinTimeout",
			job.Short(lastCall), job.Short(joinTimeout))
	}
}

func etcdPort(p *Problems, e *job.Etcd, port int32) {
	if e != nil && (port == names.EtcdPeerPort || port == names.EtcdMetricsPort) {
		p.fail("spec.rendezvous.port", "reserved",
			"%d is a port of etcd's own, for its members or its metrics: choose another", port)
	}
}

func etcdName(p *Problems, e *job.Etcd, m *job.Metadata, target string) {
	if e != nil {
		ownName(p, "spec.rendezvous.etcd.name", e.Name, m.Name, target)
	}
}

// etcdDisk holds the volumes against what is kept on them.
func etcdDisk(p *Problems, e *job.Etcd) {
	switch {
	case e == nil:
	case e.Storage != nil && e.Quota.Cmp(e.Storage.Size) > 0:
		p.fail("spec.rendezvous.etcd.quota", "order", "%s is above storage.size %s: lower it, or raise storage.size",
			e.Quota.String(), e.Storage.Size.String())
	case e.Storage == nil && e.Replicas > 1:
		p.fail("spec.rendezvous.etcd.storage", "requires",
			"%d members need a volume each: a member that comes back without its data cannot rejoin", e.Replicas)
	}
}

// etcdAPI refuses a server that would not speak the backend's API: v2 was removed in 3.6 (etcd CHANGELOG-3.6).
func etcdAPI(p *Problems, e *job.Etcd, backend, image string) {
	if e == nil || !job.SpeaksV2(backend) {
		return
	}
	const at = "spec.images.etcdV2"
	switch major, minor, known := etcdVersion(image); {
	case !known:
		p.fail(at, "requires", "must have a version tag older than 3.6, since backend %s speaks the v2 API, which 3.6 "+
			"removed", backend)
	case major > 3 || major == 3 && minor >= 6:
		p.fail(at, "requires", "etcd %d.%d has no v2 API, which backend %s speaks and 3.6 removed: use 3.5", major,
			minor, backend)
	}
}

var versionTag = lazy.Regexp(`:v?([0-9]+)\.([0-9]+)(\.|-|@|$)`)

// etcdVersion reads the tag of an image.
func etcdVersion(image string) (major, minor int, known bool) {
	m := versionTag().FindStringSubmatch(image)
	if m == nil {
		return 0, 0, false
	}
	major, _ = strconv.Atoi(m[1])
	minor, _ = strconv.Atoi(m[2])
	return major, minor, true
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
		if !l.Knows(part.Metadata) {
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
		if l.Knows(part.Rendezvous, part.WithoutRendezvous) {
			if clash := storeClash(l.Job, roots[i], stores); clash != nil {
				errs = append(errs, clash...)
				continue
			}
		}
		id := l.Job.Spec.Rendezvous.ID
		if id == "" || !l.Knows(runID) {
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
