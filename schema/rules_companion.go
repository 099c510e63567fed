package schema

import (
	"fmt"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

var companionRules = []rule{
	{
		(*validation).companion,
		"workers.master launcher rendezvous.backend rendezvous.store rendezvous.proxy rendezvous.port " +
			"rendezvous.conf rendezvous.companion images.rendezvous metadata target",
	},
	{
		(*validation).keepAlive,
		"workers.master launcher framework target rendezvous.backend rendezvous.keepAlive rendezvous.keepAliveAttempts",
	},
}

const noRendezvousImage = "needs spec.images.rendezvous, for which only a release of tegen has a default: build and " +
	"push the image with 'make push REGISTRY=<yours>', and name it in the job or in an Environment's defaults"

// companion holds the settings of the rendered tegen-rendezvous together.
func (r *validation) companion() {
	z := &r.Spec.Rendezvous
	if r.Spec.WithoutRendezvous() {
		return
	}
	if z.Store != StoreCompanion {
		// An environment may say how companions are wherever there is one: a job of one worker has none.
		if alone := r.Spec.Workers.Max == 1 &&
			!r.IsSet("spec.rendezvous.store"); r.IsSet("spec.rendezvous.companion") && (!alone || r.asked.companion) {
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

func (r *validation) companionName() {
	const at = "spec.rendezvous.companion.name"
	name := r.Spec.Rendezvous.Companion.Name
	if strings.HasPrefix(name, r.Metadata.Name+"-worker") {
		r.fail(at, "reserved", "%s-worker is the start of the workers' own names: choose another name", r.Metadata.Name)
	}
	if name == r.Metadata.Name && (r.Spec.Target == TargetJobSet || r.Spec.Target == TargetVCJob) {
		r.fail(at, "reserved",
			"%s is the name of the Service that the controller of target %s makes: choose another name", name,
			r.Spec.Target)
	}
}

// companionPods refuses what c10d's clients could not live with where no proxy stands before them: they never connect
// again, and their server's data is in its memory, so that a second pod would split the run and a kept volume serve
// nobody.
func (r *validation) companionPods() {
	z := &r.Spec.Rendezvous
	const (
		at     = "spec.rendezvous.companion"
		memory = "a c10d store without proxies lives in the memory of its one pod"
	)
	forgets := z.Backend == BackendC10d && !z.Proxy
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
func (r *validation) companionEtcd(e *CompanionEtcd) {
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
func (r *validation) keepAlive() {
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
