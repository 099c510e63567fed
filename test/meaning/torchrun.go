package meaning

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// variableOnly is a value that only a pod's environment knows.
var variableOnly = regexp.MustCompile(`^(\$\(?\w+\)?)$`)

// torchFacts are who meets whom under torchrun.
func (g *group) torchFacts(p *program, c node, out facts) {
	says := p.torchSays(c, g.controller)
	at := c.at("command")
	low, high, elastic := strings.Cut(says["nnodes"], ":")
	if !elastic {
		high = low
	}
	pods := strconv.Itoa(g.meeting())
	for _, bound := range []*string{&low, &high} {
		if variableOnly.MatchString(*bound) && !g.setsInShell(p, *bound) { // the number of pods, by whatever name
			*bound = pods
		}
	}
	if low == high && (low == "1" && pods != "1") {
		out.set("meets", "each pod by itself", at)
	} else {
		out.set("meets", low+" to "+high, at)
	}
	processes := says["nproc-per-node"]
	if gpus := g.accelerators(c); processes == "auto" || processes == "gpu" {
		processes = "one an accelerator"
	} else if processes == strconv.Itoa(gpus) && gpus > 0 {
		processes = "one an accelerator"
	}
	if processes == "one an accelerator" && g.accelerators(c) == 0 {
		processes = "one, or one a CPU"
	}
	out.set("processes", processes, at)
	if pods == "1" && high == "1" {
		return // who serves a rendezvous of one does not matter
	}
	backend, where := says["rdzv-backend"], says["rdzv-endpoint"]
	switch {
	case backend == "static" || backend == "":
		out.set("rendezvous", "the first pod", at)
		out.set("ranks", "by the pods' numbers", at)
	case backend == "c10d" && g.isFirst(where):
		out.set("rendezvous", "the first pod", at)
	default:
		host, port, _ := strings.Cut(where, ":")
		host, _, _ = strings.Cut(host, ".")
		out.set("rendezvous", strings.TrimSuffix(backend, "-v2")+" at "+host+":"+port, at)
	}
	out.set("restarts of processes", says["max-restarts"], at)
	if conf := ownConf(backend, says["rdzv-conf"]); conf != "" {
		out.set("rendezvous's settings", conf, at)
	}
}

// torchsConf are settings that say what torchrun does without them, by backend (torch 1.13 and 2.14): those of c10d and
// etcd-v2 in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py, _DEFAULT_TIMEOUTS; for etcd last_call_timeout
// in etcd_rendezvous.py beside it, and timeout in torch/distributed/launcher/api.py, default_timeout.
var torchsConf = map[string][]string{
	"c10d":    {"join_timeout=600", "last_call_timeout=30"},
	"etcd-v2": {"join_timeout=600", "last_call_timeout=30"},
	"etcd":    {"timeout=900", "last_call_timeout=30"},
}

// ownConf are the settings of a rendezvous that are not torchrun's own.
func ownConf(backend, conf string) string {
	pairs := slices.DeleteFunc(strings.Split(conf, ","), func(pair string) bool {
		return slices.Contains(torchsConf[backend], pair)
	})
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// isFirst says whether a c10d endpoint is the first of the pods.
func (g *group) isFirst(endpoint string) bool {
	if endpoint == "" || strings.Contains(endpoint, "$") {
		return true
	}
	host, _, _ := strings.Cut(endpoint, ":")
	if strings.HasPrefix(host, "@") { // as rename calls it
		return strings.HasSuffix(host, "-0")
	}
	for _, h := range g.hosts {
		if h.pattern.MatchString(host) {
			return true
		}
	}
	return false
}

// setsInShell says whether a program's own text sets a variable.
func (g *group) setsInShell(p *program, variable string) bool {
	return strings.Contains(" "+p.text, " "+strings.Trim(variable, "$()")+"=")
}

// accelerators are those of a container.
func (g *group) accelerators(c node) int {
	for _, list := range []string{"limits", "requests"} {
		for _, key := range c.at("resources", list).keys() {
			if accelerator.MatchString(key) {
				return c.at("resources", list, key).number(0)
			}
		}
	}
	return 0
}

var accelerator = regexp.MustCompile(`/(gpu|tpu|neuron|neuroncore|neurondevice|gaudi|npu|mig-.*|gpu\.shared)$`)
