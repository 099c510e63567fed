package rule

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

var proxyRules = []oldRule{
	{
		(*Validation).proxy,
		"framework target workers.master workers.max launcher command args script rendezvous images.rendezvous " +
			"images.etcd env",
	},
}

// oldestEtcd is what a proxy speaks to: its transactions compare ranges of keys.
const oldestEtcd = 5

// proxy holds torchrun's proxy to what it can be started before, and to a store that keeps data.
func (r *Validation) proxy() {
	s, z := &r.Spec, &r.Spec.Rendezvous
	const at = "spec.rendezvous.proxy"
	if !z.Proxy || s.WithoutRendezvous() || r.Row == nil || !r.Row.Carries("rendezvous.proxy") {
		return
	}
	if z.Backend != job.BackendC10d {
		r.fail(at, "requires", "a proxy serves backend c10d, and the agents of %s reach their store by themselves: "+
			"leave it out, or set backend: c10d", z.Backend)
		return
	}
	r.proxyStore(at)
	if s.Images.Rendezvous == "" && z.Store != job.StoreCompanion {
		r.fail(at, "requires", "a proxy "+noRendezvousImage)
	}
	r.proxyUser()
	r.proxyCommand()
}

// proxyStore refuses stores that forget: a proxy outlives what comes back as it was.
func (r *Validation) proxyStore(at string) {
	z := &r.Spec.Rendezvous
	const stores = "set store: companion with companion.storage or companion.etcd, store: etcd, or store: external " +
		"with the endpoint of an etcd"
	switch z.Store {
	case job.StoreWorker:
		r.fail(at, "requires", "store worker is in worker 0's memory and goes with it, whatever stands before it: %s",
			stores)
	case job.StoreCompanion:
		if c := &z.Companion; c.Storage == nil && c.Etcd == nil {
			r.fail(at, "requires", "the companion keeps a store of proxies on a volume or in an etcd, and has "+
				"neither: set companion.storage or companion.etcd, or leave proxy out")
		}
	case job.StoreEtcd:
		m := etcdVersion().FindStringSubmatch(r.Spec.Images.Etcd)
		if m == nil {
			return
		}
		major, _ := strconv.Atoi(m[1])
		if minor, _ := strconv.Atoi(m[2]); major < 3 || major == 3 && minor < oldestEtcd {
			r.fail("spec.images.etcd", "requires", "etcd %d.%d is too old for a proxy, which needs 3.5 or newer", major,
				minor)
		}
	}
	if _, ok := z.Conf["is_host"]; ok && z.Store != job.StoreCompanion { // whose rule says so
		r.failKey("spec.rendezvous.conf", "is_host", "reserved",
			"is set by spec.rendezvous.proxy: the proxy is the host, and no worker")
	}
}

// proxyUser holds the name and the password of an etcd's user together: a proxy with one of them does not start.
func (r *Validation) proxyUser() {
	s, user := &r.Spec, r.Spec.Rendezvous.Conf["user"]
	i := slices.IndexFunc(s.Env, func(e job.Env) bool { return e.Name == names.RendezvousPassword })
	switch {
	case user != "" && s.Rendezvous.Store != job.StoreExternal:
		r.failKey("spec.rendezvous.conf", "user", "requires",
			"is a proxy's user at an external etcd, and the rendered store has none: leave it out")
	case user == "" && i >= 0:
		r.fail(fmt.Sprintf("spec.env[%d].name", i), "requires",
			"a proxy needs the user whose password it is: set spec.rendezvous.conf.user, or leave it out")
	case user != "" && i < 0 && len(s.EnvFrom) == 0:
		r.failKey("spec.rendezvous.conf", "user", "requires",
			"a proxy needs the user's password: give spec.env the variable %s from a Secret", names.RendezvousPassword)
	}
}

// proxyCommand refuses what a proxy cannot stand before, and options that a shell reads: a proxy replaces those that
// are words of the command, and variables.
func (r *Validation) proxyCommand() {
	s := &r.Spec
	words := slices.Concat(s.Command, s.Args)
	for i := range max(0, len(words)-1) {
		if path.Base(words[i]) == names.Rendezvous && words[i+1] == "proxy" {
			r.fail(s.WordPath(i), "reserved", "the proxy is started by rendezvous.proxy, before the command: begin it "+
				"with what stands behind \"%s proxy\", or set rendezvous.proxy: false with a store that needs none",
				names.Rendezvous)
			return
		}
	}
	if s.Launcher != job.LauncherEntrypoint {
		return
	}
	if len(s.Command) == 0 {
		r.fail("spec.launcher", "requires", "a proxy starts a command, and the image's entrypoint is not known: give "+
			"a command, or set rendezvous.proxy: false with a store that needs none")
		return
	}
	text := job.ShellText(words)
	if text < 0 {
		return
	}
	l := s.Launch()
	for _, option := range []string{"rdzv_endpoint", "rdzv_backend", "rdzv_conf"} {
		if o := l.Option(option); o != nil && o.Path == s.WordPath(text) {
			r.fail(o.Path, "requires", "%s is handed to torchrun by a shell, past the proxy: leave it out, and "+
				"torchrun reads the variable PET_%s", o, strings.ToUpper(option))
			return
		}
	}
}
