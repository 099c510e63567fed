package schema

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

var proxyRules = []rule{
	{
		(*validation).proxy,
		"framework target workers.master workers.max launcher command args script rendezvous images.rendezvous " +
			"images.etcd env",
	},
}

// oldestEtcd is what a proxy speaks to: its transactions compare ranges of keys.
const oldestEtcd = 5

// proxy holds torchrun's proxy to what it can be started before, and to a store that keeps data.
func (r *validation) proxy() {
	s, z := &r.Spec, &r.Spec.Rendezvous
	const at = "spec.rendezvous.proxy"
	if !z.Proxy || s.WithoutRendezvous() || r.Row == nil || !r.Row.Carries("rendezvous.proxy") {
		return
	}
	if z.Backend != BackendC10d {
		r.fail(at, "requires", "a proxy serves backend c10d, and the agents of %s reach their store by themselves: "+
			"leave it out, or set backend: c10d", z.Backend)
		return
	}
	r.proxyStore(at)
	if s.Images.Rendezvous == "" && z.Store != StoreCompanion {
		r.fail(at, "requires", "a proxy "+noRendezvousImage)
	}
	r.proxyUser()
	r.proxyCommand()
}

// proxyStore refuses stores that forget: a proxy outlives what comes back as it was.
func (r *validation) proxyStore(at string) {
	z := &r.Spec.Rendezvous
	const stores = "set store: companion with companion.storage or companion.etcd, store: etcd, or store: external " +
		"with the endpoint of an etcd"
	switch z.Store {
	case StoreWorker:
		r.fail(at, "requires", "store worker is in worker 0's memory and goes with it, whatever stands before it: %s",
			stores)
	case StoreCompanion:
		if c := &z.Companion; c.Storage == nil && c.Etcd == nil {
			r.fail(at, "requires", "the companion keeps a store of proxies on a volume or in an etcd, and has "+
				"neither: set companion.storage or companion.etcd, or leave proxy out")
		}
	case StoreEtcd:
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
	if _, ok := z.Conf["is_host"]; ok && z.Store != StoreCompanion { // whose rule says so
		r.failKey("spec.rendezvous.conf", "is_host", "reserved",
			"is set by spec.rendezvous.proxy: the proxy is the host, and no worker")
	}
}

// proxyUser holds the name and the password of an etcd's user together: a proxy with one of them does not start.
func (r *validation) proxyUser() {
	s, user := &r.Spec, r.Spec.Rendezvous.Conf["user"]
	i := slices.IndexFunc(s.Env, func(e Env) bool { return e.Name == names.RendezvousPassword })
	switch {
	case user != "" && s.Rendezvous.Store != StoreExternal:
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
func (r *validation) proxyCommand() {
	s := &r.Spec
	words := slices.Concat(s.Command, s.Args)
	for i := range max(0, len(words)-1) {
		if path.Base(words[i]) == names.Rendezvous && words[i+1] == "proxy" {
			r.fail(s.wordPath(i), "reserved", "the proxy is started by rendezvous.proxy, before the command: begin it "+
				"with what stands behind \"%s proxy\", or set rendezvous.proxy: false with a store that needs none",
				names.Rendezvous)
			return
		}
	}
	if s.Launcher != LauncherEntrypoint {
		return
	}
	if len(s.Command) == 0 {
		r.fail("spec.launcher", "requires", "a proxy starts a command, and the image's entrypoint is not known: give "+
			"a command, or set rendezvous.proxy: false with a store that needs none")
		return
	}
	text := shellText(words)
	if text < 0 {
		return
	}
	l := s.Launch()
	for _, option := range []string{"rdzv_endpoint", "rdzv_backend", "rdzv_conf"} {
		if o := l.Option(option); o != nil && o.path == s.wordPath(text) {
			r.fail(o.path, "requires", "%s is handed to torchrun by a shell, past the proxy: leave it out, and "+
				"torchrun reads the variable PET_%s", o, strings.ToUpper(option))
			return
		}
	}
}

// proxyNotes are about keep-alives, which proxies replace, and about a command that shows no torchrun: what it starts
// goes through the proxy only by torch's variables.
func (s *Spec) proxyNotes() (notes []string) {
	if s.Proxied() && !s.Rendezvous.KeepsAliveByDefault() {
		notes = append(notes, "spec.rendezvous.keepAlive: proxies remove a worker's node after 8s of silence, "+
			"whatever keepAlive and keepAliveAttempts allow; remove both fields")
	}
	if !s.Proxied() || s.Launcher != LauncherEntrypoint || len(s.Command) == 0 || s.Launch() != nil {
		return notes
	}
	return append(notes, "spec.rendezvous.proxy: the command shows no torchrun: one that it starts finds the proxy in "+
		"torch's variables, and must have none of --rdzv-endpoint, --rdzv-backend and --rdzv-conf")
}
