package refs

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/names"
)

// endpoint is an address in the cluster. Any part may hold a '*', which stands
// for a variable; pod and port may be empty.
type endpoint struct{ pod, service, namespace, port string }

// endpoints checks the addresses in the command, the arguments and the
// environment of a container.
func (c *checker) endpoints(t container) {
	c.arguments(t, "command", t.Command)
	c.arguments(t, "args", t.Args)
	for i := range t.Env {
		if e := &t.Env[i]; e.Value != "" {
			at := t.at("env", e.Name)
			c.qualified(t.w, at, e.Value)
			if dials, bare := addressEnv(e.Name); dials {
				c.addresses(t.w, at, e.Value, bare)
			}
		}
	}
}

func (c *checker) arguments(t container, part string, args []string) {
	dials, bare := false, false // of the flag before, whose value this may be
	for i, arg := range args {
		at := t.at(part, itoa(i))
		if i > 0 && args[i-1] == "-H" { // horovodrun's and mpirun's hosts, each with a number of slots, not with a port
			arg = slots().ReplaceAllString(arg, "$1")
		}
		c.qualified(t.w, at, arg)
		if !strings.HasPrefix(arg, "-") {
			if dials {
				c.addresses(t.w, at, arg, bare)
			}
			dials = false
			continue
		}
		flag, value, assigned := strings.Cut(arg, "=")
		dials, bare = addressFlag(flag)
		if dials && assigned {
			c.addresses(t.w, at, value, bare)
			dials = false
		}
	}
}

var slots = lazy.Regexp(`:[0-9]+(,|$)`)

// addressEnv reports whether a variable of that name holds addresses, and
// whether a bare host counts as one.
func addressEnv(name string) (dials, bare bool) {
	switch word := name[strings.LastIndexByte(name, '_')+1:]; word {
	case "ADDR", "HOST", "HOSTS":
		return true, true
	case "URL", "URI":
		return true, false
	default:
		return strings.HasSuffix(word, "ENDPOINT") || strings.HasSuffix(word, "ENDPOINTS"), false
	}
}

// addressFlag does the same for a command line flag.
func addressFlag(flag string) (dials, bare bool) {
	for _, word := range [...]string{"endpoint", "addr", "host", "url", "server", "peers", "cluster"} {
		if strings.Contains(flag, word) {
			word = flag[strings.LastIndexAny(flag, "-_.")+1:]
			return true, word == "addr" || word == "host"
		}
	}
	return false, false
}

// qualified checks every <service>.<namespace>.svc of a text, whatever the
// text is: nothing else looks like it.
func (c *checker) qualified(w *workload, at place, text string) {
	if !strings.Contains(text, ".svc") {
		return
	}
	for text = mask(text); ; {
		i := strings.Index(text, ".svc")
		if i < 0 {
			return
		}
		start, end := i, i
		for start > 0 && hostByte(text[start-1]) {
			start--
		}
		for end < len(text) && hostByte(text[end]) {
			end++
		}
		e, ok := parseQualified(text[start:end])
		text = text[end:]
		switch known := e.namespace == w.namespace || c.namespaces[e.namespace]; {
		case ok && known:
			e.port = leadingPort(text)
			c.endpoint(w, at, e)
		case ok && c.rendered(id{"Service", w.namespace, e.service}):
			c.refuse(&w.object, at, id{"Service", e.namespace, e.service}, "the Service is in namespace "+w.namespace+
				": a kustomization moved it after tegen rendered the address; set the namespace where the "+
				"TrainingJob is")
		} // any other namespace the set has nothing in is someone else's
	}
}

// rendered reports whether a Service is one that tegen or a controller of its objects makes.
func (c *checker) rendered(service id) bool {
	s, ok := c.objects[service].(*corev1.Service)
	return c.made[service] || ok && s.Labels[names.LabelManagedBy] == names.ManagedBy
}

// parseQualified reads [pod.]service.namespace.svc[.domain].
func parseQualified(host string) (endpoint, bool) {
	names := strings.Split(strings.ToLower(host), ".")
	for i := 2; i < len(names); i++ {
		if names[i] != "svc" {
			continue
		}
		e := endpoint{service: names[i-2], namespace: names[i-1]}
		// More names before the pod's are those of an SRV record.
		if i == 3 {
			e.pod = names[0]
		}
		return e, dnsLabel(e.service) && dnsLabel(e.namespace)
	}
	return endpoint{}, false
}

func leadingPort(s string) string {
	if !strings.HasPrefix(s, ":") {
		return ""
	}
	end := 1
	for end < len(s) && digit(s[end]) {
		end++
	}
	return s[1:end]
}

// addresses checks a comma-separated list of host, host:port or URL.
func (c *checker) addresses(w *workload, at place, list string, bare bool) {
	for item := range strings.SplitSeq(mask(list), ",") {
		host, port, ok := splitAddress(strings.TrimSpace(item), bare)
		host = strings.TrimSuffix(host, ".") // the root of DNS
		if !ok || host == "" || !hostLike(host) {
			continue
		}
		// Longer names are of the outside world, or qualified checks them.
		switch names := strings.Split(strings.ToLower(host), "."); len(names) {
		case 1:
			c.shortHost(w, at, names[0], port)
		case 2:
			c.pairHost(w, at, names[0], names[1], port)
		}
	}
}

// splitAddress takes [name=][scheme://][user@]host[:port][/path] apart. It is
// not ok for what need not be the name of a host.
func splitAddress(s string, bare bool) (host, port string, ok bool) {
	if name, rest, cut := strings.Cut(s, "="); cut && !strings.ContainsAny(name, ":/?") {
		s = rest
	}
	scheme, rest, url := strings.Cut(s, "://")
	if !url {
		rest = s
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
		bare = false
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	host, port, ported := strings.Cut(rest, ":")
	switch {
	case ported:
		_, number := parseOrdinal(port)
		return host, port, number || strings.Contains(port, "*")
	case url:
		// s3://bucket and hf://repository name no host.
		return host, "", scheme == "http" || scheme == "https"
	}
	return host, "", bare && !flagWord(host)
}

// flagWord tells FOO_HOST=true from the name of a host.
func flagWord(s string) bool {
	switch s {
	case "true", "false", "auto", "none":
		return true
	}
	return false
}

// shortHost checks a host without dots: a Service of the namespace, or the
// pod itself.
func (c *checker) shortHost(w *workload, at place, host, port string) {
	if host == "localhost" || w.ownHost(host) || strings.Contains(host, "*") {
		return
	}
	to := id{"Service", w.namespace, host}
	if !c.has(to) && c.hasHost(w.namespace, "", host) {
		c.refuse(&w.object, at, to, "it is the hostname of a pod, which resolves in that pod alone; write "+
			host+"."+"<its headless Service>")
		return
	}
	c.endpoint(w, at, endpoint{service: host, namespace: w.namespace, port: port})
}

// ownHost reports whether every pod of w has that hostname.
func (w *workload) ownHost(host string) bool {
	if !w.set.Numbered {
		return host == w.set.Host || w.kind == "Pod" && host == w.name
	}
	base, n, ok := cutOrdinal(host)
	return ok && base == w.set.Name && base != "" && w.set.Numbers() == 1 && w.set.HasNumber(n)
}

// pairHost checks a host of two names: pod.service of the namespace or
// service.namespace, unless it is of the outside world, like example.com.
func (c *checker) pairHost(w *workload, at place, first, second, port string) {
	inNamespace := endpoint{pod: first, service: second, namespace: w.namespace, port: port}
	elsewhere := endpoint{service: first, namespace: second, port: port}
	variable := strings.Contains(first, "*")
	switch to := (id{"Service", w.namespace, second}); {
	case strings.Contains(second, "*"):
	case c.has(to) || w.expects(to):
		if !c.has(id{"Service", second, first}) {
			c.endpoint(w, at, inNamespace)
		}
	case variable && c.namespaces[second]:
	case c.has(id{"Service", second, first}):
		c.endpoint(w, at, elsewhere)
	case variable || c.hasHost(w.namespace, "", first):
		c.endpoint(w, at, inNamespace)
	case port != "" && c.namespaces[second]:
		// Without a port it could be wandb.ai, seen from a namespace "ai".
		c.endpoint(w, at, elsewhere)
	}
}

// endpoint requires the Service, its port, and the pod behind it.
func (c *checker) endpoint(w *workload, at place, e endpoint) {
	to := id{"Service", e.namespace, e.service}
	c.link(&w.object, to, Dials, e.port)
	if !c.has(to) {
		c.missing(&w.object, at, to, "")
		return
	}
	svc, ok := c.objects[to].(*corev1.Service)
	if c.makes(to) {
		// a controller's: its pods, any port
		svc = &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{"": ""}}}
	} else if !ok || svc.Spec.Type == corev1.ServiceTypeExternalName {
		return
	}
	if n, ok := parseOrdinal(e.port); ok && !hasPort(svc, n) {
		c.refuse(&w.object, at, to, "Service "+e.service+" has no port "+e.port+", only "+portList(
			svc)+"; correct the port or add it to the Service")
	}
	// The pods behind a Service without selector are not in the set.
	if !dnsLabel(e.pod) || len(svc.Spec.Selector) == 0 || c.hasHost(e.namespace, e.service, e.pod) {
		return
	}
	if !w.expects(to) {
		c.broken(ruleMismatch, &w.object, at, id{"Pod", e.namespace, e.pod}.String(), c.nobody(e))
	}
}

// hasPort accepts what reaches a container: for a headless Service that is
// also the target port, since its name resolves to the pods.
func hasPort(s *corev1.Service, n int) bool {
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if int(p.Port) == n || s.Spec.ClusterIP == corev1.ClusterIPNone && p.TargetPort.IntValue() == n {
			return true
		}
	}
	return len(s.Spec.Ports) == 0
}

func portList(s *corev1.Service) string {
	var list []string
	for i := range s.Spec.Ports {
		list = append(list, strconv.Itoa(int(s.Spec.Ports[i].Port)))
	}
	return strings.Join(list, ", ")
}

// hasHost reports whether some pod has that hostname behind the Service, or
// behind any when service is "".
func (c *checker) hasHost(namespace, service, host string) bool {
	if c.hostnames[hostname{namespace, service, host}] {
		return true
	}
	base, n, ok := cutOrdinal(host)
	if !ok {
		return false
	}
	for _, w := range c.numbered[[2]string{namespace, base}] {
		if w.set.HasNumber(n) && (service == "" || service == w.set.Subdomain) {
			return true
		}
	}
	return c.opaque[[2]string{namespace, base}]
}

// nobody explains why no pod has the hostname.
func (c *checker) nobody(e endpoint) string {
	if base, _, ok := cutOrdinal(e.pod); ok {
		for _, w := range c.numbered[[2]string{e.namespace, base}] {
			switch w.set.Subdomain {
			case e.service:
				return "the pods of " + base + " are numbered from " + itoa(int(w.set.First)) + " and there are " +
					itoa(int(w.set.Numbers())) + "; correct the number or add pods"
			case "":
			default:
				return "the pods of " + base + " have names behind Service " + w.set.Subdomain + ", not " + e.service +
					"; correct the address or their subdomain"
			}
		}
	}
	if _, pod := c.objects[id{"Pod", e.namespace, e.pod}]; pod {
		return "the pod gets a name in DNS only with spec.hostname set and spec.subdomain " + e.service + "; set both"
	}
	return "no pod of the set has that hostname behind Service " + e.service +
		"; correct the address, or the hostname and subdomain of the pods"
}

// mask replaces $(VAR), ${VAR} and $VAR by '*'.
func mask(s string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteByte('*')
		s = after[variableLen(after):]
	}
}

// variableLen is the length of the reference that follows a '$'.
func variableLen(s string) int {
	if s == "" {
		return 0
	}
	if i := strings.IndexByte("({", s[0]); i >= 0 {
		return strings.IndexByte(s, ")}"[i]) + 1
	}
	n := 0
	for n < len(s) && (s[n] == '_' || digit(s[n]) || letter(s[n])) {
		n++
	}
	return n
}

func digit(b byte) bool  { return '0' <= b && b <= '9' }
func letter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

func hostByte(b byte) bool {
	return digit(b) || letter(b) || b == '-' || b == '.' || b == '_' || b == '*'
}

// hostLike excludes numbers, so that addresses like 10.1 and 7 are no hosts.
func hostLike(s string) bool {
	number := true
	for i := range len(s) {
		if !hostByte(s[i]) || s[i] == '_' {
			return false
		}
		number = number && (digit(s[i]) || s[i] == '.')
	}
	return !number
}

// dnsLabel reports whether s is one name without a variable in it.
func dnsLabel(s string) bool {
	return s != "" && !strings.ContainsAny(s, "*_")
}

// Addressed returns the names of the Services of a namespace that the command,
// the arguments and the environment of a container dial, sorted. It finds what
// Check would look up.
func Addressed(namespace string, c *corev1.Container) []string {
	namespace = orDefault(namespace)
	w := &workload{object: object{id: id{"Pod", namespace, "*"}}, set: &apis.PodSet{}} // of a set that has nothing else
	check := &checker{index: &index{namespaces: map[string]bool{namespace: true}}}
	check.endpoints(container{c, w, "containers"})
	var out []string
	for _, f := range check.found {
		if f.missing.kind == "Service" && f.missing.namespace == namespace {
			out = append(out, f.missing.name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
