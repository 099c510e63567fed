package rule

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/target"
)

var proxyRules = []Rule{
	part.Of2(proxyBackend, proxyAsked, part.Backend),
	part.Of4(proxyStore, proxied, part.Rendezvous, part.EtcdImage, part.RendezvousImage),
	part.Of4(proxyUser, proxied, part.Rendezvous, part.Env, part.EnvFrom),
	part.Of3(proxyTwice, proxied, part.Command, part.Args),
	part.Of5(proxyCommand, proxied, part.Launcher, part.Command, part.Args, part.Launch),
}

// proxyAsked says whether a job asks for proxies where workers meet by a rendezvous and the target can carry them.
var proxyAsked = part.OfSpec(
	"rendezvous.proxy framework target launcher mxnet.mode bytescheduler.mode workers.master", asksForProxy)

// proxied says whether it also has the one backend that they serve.
var proxied = part.OfSpec(
	"rendezvous.proxy rendezvous.backend framework target launcher mxnet.mode bytescheduler.mode workers.master",
	func(s *job.Spec) bool { return asksForProxy(s) && s.Rendezvous.Backend == job.BackendC10d })

func asksForProxy(s *job.Spec) bool {
	t := target.For(s)
	return s.Rendezvous.Proxy && !s.WithoutRendezvous() && t != nil && t.Carries("rendezvous.proxy")
}

const proxyAt = "spec.rendezvous.proxy"

// oldestEtcd is what a proxy speaks to: its transactions compare ranges of keys.
const oldestEtcd = 5

func proxyBackend(p *Problems, asked bool, backend string) {
	if asked && backend != job.BackendC10d {
		p.fail(proxyAt, "requires", "a proxy serves backend c10d, and the agents of %s reach their store by "+
			"themselves: leave it out, or set backend: c10d", backend)
	}
}

// proxyStore refuses stores that forget: a proxy outlives what comes back as it was.
func proxyStore(p *Problems, proxied bool, z *job.Rendezvous, etcd, companion string) {
	if !proxied {
		return
	}
	const stores = "set store: companion with companion.storage or companion.etcd, store: etcd, or store: external " +
		"with the endpoint of an etcd"
	switch z.Store {
	case job.StoreWorker:
		p.fail(proxyAt, "requires", "store worker is in worker 0's memory and goes with it, whatever stands before "+
			"it: %s", stores)
	case job.StoreCompanion:
		if c := &z.Companion; c.Storage == nil && c.Etcd == nil {
			p.fail(proxyAt, "requires", "the companion keeps a store of proxies on a volume or in an etcd, and has "+
				"neither: set companion.storage or companion.etcd, or leave proxy out")
		}
	case job.StoreEtcd:
		major, minor, known := etcdVersion(etcd)
		if known && (major < 3 || major == 3 && minor < oldestEtcd) {
			p.fail("spec.images.etcd", "requires", "etcd %d.%d is too old for a proxy, which needs 3.5 or newer", major,
				minor)
		}
	}
	if companion == "" && z.Store != job.StoreCompanion {
		p.fail(proxyAt, "requires", "a proxy "+noRendezvousImage)
	}
	if _, ok := z.Conf["is_host"]; ok && z.Store != job.StoreCompanion { // whose rule says so
		p.failKey("spec.rendezvous.conf", "is_host", "reserved",
			"is set by spec.rendezvous.proxy: the proxy is the host, and no worker")
	}
}

// proxyUser holds the name and the password of an etcd's user together: a proxy with one of them does not start.
func proxyUser(p *Problems, proxied bool, z *job.Rendezvous, env []job.Env, envFrom []job.EnvFrom) {
	if !proxied {
		return
	}
	user := z.Conf["user"]
	i := slices.IndexFunc(env, func(e job.Env) bool { return e.Name == names.RendezvousPassword })
	switch {
	case user != "" && z.Store != job.StoreExternal:
		p.failKey("spec.rendezvous.conf", "user", "requires",
			"is a proxy's user at an external etcd, and the rendered store has none: leave it out")
	case user == "" && i >= 0:
		p.fail(fmt.Sprintf("spec.env[%d].name", i), "requires",
			"a proxy needs the user whose password it is: set spec.rendezvous.conf.user, or leave it out")
	case user != "" && i < 0 && len(envFrom) == 0:
		p.failKey("spec.rendezvous.conf", "user", "requires",
			"a proxy needs the user's password: give spec.env the variable %s from a Secret", names.RendezvousPassword)
	}
}

// proxyTwice refuses a proxy that the command starts already.
func proxyTwice(p *Problems, proxied bool, command, args []string) {
	if i := ownProxy(command, args); proxied && i >= 0 {
		p.fail(job.WordPath(command, i), "reserved", "the proxy is started by rendezvous.proxy, before the "+
			"command: begin it with what stands behind \"%s proxy\", or set rendezvous.proxy: false with a store that "+
			"needs none", names.Rendezvous)
	}
}

// ownProxy is the index of the word by which a command starts a proxy, -1 where it starts none.
func ownProxy(command, args []string) int {
	words := slices.Concat(command, args)
	for i := range max(0, len(words)-1) {
		if path.Base(words[i]) == names.Rendezvous && words[i+1] == "proxy" {
			return i
		}
	}
	return -1
}

// proxyCommand refuses what a proxy cannot stand before, and options that a shell reads: a proxy replaces those that
// are words of the command, and variables.
func proxyCommand(p *Problems, proxied bool, launcher string, command, args []string, l *job.Launch) {
	if !proxied || launcher != job.LauncherEntrypoint || ownProxy(command, args) >= 0 {
		return
	}
	if len(command) == 0 {
		p.fail("spec.launcher", "requires", "a proxy starts a command, and the image's entrypoint is not known: give "+
			"a command, or set rendezvous.proxy: false with a store that needs none")
		return
	}
	text := job.ShellText(slices.Concat(command, args))
	if text < 0 {
		return
	}
	for _, option := range []string{"rdzv_endpoint", "rdzv_backend", "rdzv_conf"} {
		if o := l.Option(option); o != nil && o.Path == job.WordPath(command, text) {
			p.fail(o.Path, "requires", "%s is handed to torchrun by a shell, past the proxy: leave it out, and "+
				"torchrun reads the variable PET_%s", o, strings.ToUpper(option))
			return
		}
	}
}
