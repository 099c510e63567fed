package proxy

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// launcher is a command that starts torchrun, directly or in a script. Torchrun's options are in the command or in
// torch's environment variables. The options in a script are unknown.
type launcher struct {
	args   []string
	lookup func(string) (string, bool)
	shown  bool             // args contain torchrun, and not only a script that calls it
	found  map[string]place // of the rendezvous' options in args
}

// place is the position of an option's value.
type place struct {
	index  int
	prefix string // of the word, such as "--rdzv_id="; empty if the value is a word
}

// rendezvousOptions are torchrun's options that a proxy reads or sets.
var rendezvousOptions = []string{
	"rdzv_backend", "rdzv_endpoint", "rdzv_id", "rdzv_conf", "nnodes", "monitor_interval",
}

// valueless are torchrun's options that take no value.
var valueless = []string{
	"standalone", "module", "no_python", "run_path", "virtual_local_rank", "use_env", "help",
}

// parse finds torchrun's options, and refuses those that a proxy does not support.
func parse(args []string, lookup func(string) (string, bool)) (launcher, error) {
	l := launcher{args: args, lookup: lookup, found: map[string]place{}}
	first, shown := start(args)
	l.shown = shown
	for i := first; i < len(args); i++ {
		word := args[i]
		if word == "--" || !strings.HasPrefix(word, "-") {
			break // the script
		}
		option, _, joined := strings.Cut(word, "=")
		name := strings.ReplaceAll(strings.TrimLeft(option, "-"), "-", "_")
		long := strings.HasPrefix(word, "--")
		switch {
		case long && name == "standalone":
			return l, errors.New("--standalone has no store that could be lost: start the command without a proxy")
		case long && joined:
			l.note(name, place{i, option + "="})
		case long && slices.Contains(valueless, name), word == "-m", word == "-h":
		case !long && len(word) > 2: // -r3
		case i+1 < len(args):
			i++
			l.note(name, place{i, ""})
		}
	}
	if backend := l.value("rdzv_backend"); backend != "" && backend != "c10d" {
		return l, fmt.Errorf("a proxy serves the backend c10d, and the command asks for %q", backend)
	}
	return l, nil
}

// start is the index of torchrun's first option, if the command shows torchrun.
func start(args []string) (first int, shown bool) {
	for i, word := range args {
		switch {
		case filepath.Base(word) == "torchrun":
			return i + 1, true
		case word == "-m" && i+1 < len(args) && strings.HasPrefix(args[i+1], "torch.distributed."):
			return i + 2, true
		case i == 0 || strings.HasPrefix(word, "-"): // an interpreter and its options
		default:
			if slices.Contains([]string{".py", ".sh"}, filepath.Ext(word)) { // a script and its own arguments
				return len(args), false
			}
		}
	}
	return len(args), false
}

// note records an option. Torchrun uses the last of several, and accepts every unique prefix of a name.
func (l *launcher) note(name string, p place) {
	var full []string
	for _, option := range rendezvousOptions {
		if strings.HasPrefix(option, name) {
			full = append(full, option)
		}
	}
	if len(full) == 1 {
		l.found[full[0]] = p
	}
}

// value returns the value of an option, or of its variable.
func (l *launcher) value(option string) string {
	if p, ok := l.found[option]; ok {
		return strings.TrimPrefix(l.args[p.index], p.prefix)
	}
	value, _ := l.lookup(variable(option))
	return value
}

func variable(option string) string { return "PET_" + strings.ToUpper(option) }

// minNodes is the smallest number of nodes in a world of the command, from --nnodes or PET_NNODES; 0 if it is unknown.
// A script that calls torchrun does not show it. Torchrun itself has 1 by default.
func (l *launcher) minNodes() int {
	value := l.value("nnodes")
	if value == "" && l.shown {
		return 1
	}
	text, _, _ := strings.Cut(value, ":")
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil { // torchrun reports it
		return 0
	}
	return max(n, 0)
}

// monitorInterval is the default interval in seconds at which an agent checks for a change of its world. Torch 2.4 and
// newer have the same default; older versions have 5.
const monitorInterval = "0.1"

// grace adds the interval at which the agent checks for a change of its world. An agent whose workers are killed before
// that check uses a restart.
func (l *launcher) grace(d time.Duration) time.Duration {
	if seconds, err := strconv.ParseFloat(l.value("monitor_interval"), 64); err == nil && d > 0 && seconds > 0 {
		d += time.Duration(seconds * float64(time.Second))
	}
	return d
}

// readTimeout is the default of torch's limit for keys that other agents write. With torch's own 60 s an agent that
// waits for its peers would end while the etcd is away for longer. Torch waits equally long for peers to join.
const readTimeout = "600"

// through returns the command and its environment for a store on this machine.
func (l *launcher) through(port int, environ []string) (args, env []string) {
	values := map[string]string{
		"rdzv_backend": "c10d", "rdzv_endpoint": "127.0.0.1:" + strconv.Itoa(port),
		"rdzv_conf": conf(l.value("rdzv_conf")),
	}
	args = slices.Clone(l.args)
	set := map[string]string{}
	for option, value := range values {
		if p, ok := l.found[option]; ok {
			args[p.index] = p.prefix + value
		}
		set[variable(option)] = value
	}
	if l.value("monitor_interval") == "" {
		set[variable("monitor_interval")] = monitorInterval
	}
	if _, ok := l.lookup(noShare); !ok {
		set[noShare] = "1"
	}
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if _, ok := set[name]; !ok && !secret(name) {
			env = append(env, v)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return args, env
}

// noShare is set so that the agent of rank 0 does not open one store for the workers of all rounds: keys of the first
// round block the second.
const noShare = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"

// conf returns a command's --rdzv-conf with which no agent tries to be the store.
func conf(text string) string {
	var all []string
	timeout := false
	for pair := range strings.SplitSeq(text, ",") {
		key, _, _ := strings.Cut(pair, "=")
		switch key = strings.TrimSpace(key); key {
		case "", "is_host":
			continue
		case "read_timeout":
			timeout = true
		}
		all = append(all, strings.TrimSpace(pair))
	}
	all = append(all, "is_host=0")
	if !timeout {
		all = append(all, "read_timeout="+readTimeout)
	}
	return strings.Join(all, ",")
}
