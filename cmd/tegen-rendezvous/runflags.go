package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/tegen-dev/tegen/rendezvous/agent"
)

// runOptions are the flags of run, and what complete makes of them.
type runOptions struct {
	nnodes, nproc                          string
	backend, endpoint, rdzvID, rdzvConf    string
	role, localAddr, logDir                string
	redirects, tee, ranks, prefix, signals string
	maxRestarts, masterPort                int
	monitor, shutdown                      seconds
	standalone, guard, noPython            bool

	least, most                 int // machines
	workers                     int // here
	conf                        rdzvConf
	signalList                  []os.Signal
	redirectStreams, teeStreams agent.Streams
	shown                       []int
}

func newRunOptions() *runOptions {
	return &runOptions{
		monitor:  seconds{5 * time.Second},  // torch 1.13's; later ones have less
		shutdown: seconds{30 * time.Second}, // torch's
	}
}

func (o *runOptions) add(f *pflag.FlagSet) {
	f.SetInterspersed(false) // what follows the command is the command's
	f.SortFlags = false
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	f.StringVar(&o.nnodes, "nnodes", "1:1", "machines: a number, or `min:max`")
	f.StringVar(&o.nproc, "nproc-per-node", "1", "workers on this machine: a `number`, gpu, cpu, or auto, which is gpu where there are any")
	f.StringVar(&o.backend, "rdzv-backend", "", "`name` of the rendezvous: etcd or etcd-v3")
	f.StringVar(&o.endpoint, "rdzv-endpoint", "", "`host:port` of the store; for etcd-v3 several after commas")
	f.StringVar(&o.rdzvID, "rdzv-id", "", "`name` of the run, the same for all its agents")
	f.StringVar(&o.rdzvConf, "rdzv-conf", "", "`key=value,...` for the rendezvous: "+rdzvKeys())
	f.BoolVar(&o.standalone, "standalone", false, "one machine, with a store inside this process")
	f.IntVar(&o.maxRestarts, "max-restarts", 0, "how often workers are started anew after a failure")
	f.Var(&o.monitor, "monitor-interval", "`seconds` between looks of torch's agents at who waits, the longest of the run's; ours look at once")
	f.StringVar(&o.role, "role", "default", "`name` by which workers are counted apart")
	f.StringVar(&o.localAddr, "local-addr", "", "`address` at which others reach this machine (default: the one that reaches the store)")
	f.IntVar(&o.masterPort, "master-port", 0, "`port` at which the worker of rank 0 is to listen, should this machine have it (default: a free one)")
	f.StringVar(&o.logDir, "log-dir", "", "`directory` of log and error files (default: a temporary one)")
	f.StringVarP(&o.redirects, "redirects", "r", "0", "`streams` that go to log files only: 1 output, 2 errors, 3 both, or 0:3,1:2 by local rank")
	f.StringVarP(&o.tee, "tee", "t", "0", "`streams` that go to log files as well, as in --redirects")
	f.StringVar(&o.ranks, "local-ranks-filter", "", "local ranks whose output is shown, after `commas` (default: all)")
	f.StringVar(&o.prefix, "log-line-prefix-template", "[${rank}] ", "`text` before each line; ${rank}, ${local_rank} and ${role_name} are replaced")
	f.StringVar(&o.signals, "signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", "`signals` that are handed on to workers and end this agent")
	f.Var(&o.shutdown, "shutdown-timeout", "`seconds` that workers have to end before they are killed")
	f.BoolVar(&o.noPython, "no-python", false, "for torchrun's sake: the command is always started as it is")
	f.BoolVar(&o.guard, "guard", false, "end the workers' processes after this one's parent")
	_ = f.MarkHidden("no-python")
	_ = f.MarkHidden("guard")
	for _, r := range refused {
		f.VarPF(refusal{r.why, r.plain}, r.name, r.short, "").NoOptDefVal = map[bool]string{true: "true"}[r.plain]
		_ = f.MarkHidden(r.name)
	}
}

// refused are torchrun's flags that mean nothing here. Variables of those that operators set for every launcher are
// passed over, as torchrun does with an elastic rendezvous.
var refused = []struct {
	name, short, why string
	plain            bool // takes no value
	variable         bool // is refused as one, too
}{
	{"module", "m", "give the whole command: -- python -m MODULE", true, true},
	{"run-path", "", "give the whole command: -- python SCRIPT", true, true},
	{"start-method", "", "every worker is a process of its own", false, false},
	{"node-rank", "", "ranks come of the rendezvous", false, false},
	{"master-addr", "", "rank 0 is wherever the rendezvous puts it; --local-addr says where this machine is reached", false, false},
	{"virtual-local-rank", "", "workers see all accelerators of their machine", true, true},
	{"numa-binding", "", "bind workers by numactl in the command", false, true},
	{"logs-specs", "", "it is a Python class", false, true},
	{"event-log-handler", "", "it is a Python class", false, false},
	{"duplicate-stdout-filters", "", "use --tee and a filter of your own", false, true},
	{"duplicate-stderr-filters", "", "use --tee and a filter of your own", false, true},
	{"print-completion", "s", "see tegen-rendezvous completion", false, false},
}

// refusal is the value of a flag that is refused.
type refusal struct {
	why   string
	plain bool
}

func (r refusal) Set(string) error {
	return errors.New("this torchrun option is not supported: " + r.why)
}
func (refusal) String() string { return "" }
func (r refusal) Type() string { return map[bool]string{true: "bool", false: "string"}[r.plain] }

// complete adds torchrun's variables to flags that were not given, and checks all.
func (o *runOptions) complete(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	if err := o.variables(f, lookup); err != nil {
		return err
	}
	var errs []error
	note := func(name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", name, err))
		}
	}
	var err error
	o.least, o.most, err = parseNodes(o.nnodes)
	note("nnodes", err)
	o.workers, err = parseProcesses(o.nproc)
	note("nproc-per-node", err)
	o.conf, err = parseRdzvConf(o.rdzvConf)
	note("rdzv-conf", err)
	if o.conf.user != "" && o.conf.password == "" {
		o.conf.password, _ = lookup(passwordVariable)
	}
	o.redirectStreams, err = agent.ParseStreams(o.redirects)
	note("redirects", err)
	o.teeStreams, err = agent.ParseStreams(o.tee)
	note("tee", err)
	o.shown, err = parseRanks(o.ranks)
	note("local-ranks-filter", err)
	o.signalList, err = parseSignals(o.signals)
	note("signals-to-handle", err)
	if o.maxRestarts < 0 {
		note("max-restarts", fmt.Errorf("%d is below 0", o.maxRestarts))
	}
	if o.masterPort < 0 || o.masterPort > 65535 {
		note("master-port", fmt.Errorf("%d is no port", o.masterPort))
	}
	return errors.Join(append(errs, o.completeRdzv()...)...)
}

// completeRdzv checks what says where the run is.
func (o *runOptions) completeRdzv() (errs []error) {
	if o.standalone { // torchrun, too, passes over the rest
		if o.most > 1 {
			errs = append(errs, fmt.Errorf("--standalone: --nnodes %s asks for more than one machine", o.nnodes))
		}
		return errs
	}
	switch o.backend {
	case "etcd", "etcd-v3":
	case "":
		errs = append(errs, errors.New("--rdzv-backend is missing: etcd or etcd-v3; or use --standalone"))
	case "c10d", "etcd-v2":
		errs = append(errs, fmt.Errorf("--rdzv-backend: %s keeps Python objects in its store, so only torchrun can take part: use etcd or etcd-v3", o.backend))
	default:
		errs = append(errs, fmt.Errorf("--rdzv-backend: %q is neither etcd nor etcd-v3", o.backend))
	}
	switch {
	case strings.Contains(o.endpoint, "@"): // not shown: it would be in logs and messages
		errs = append(errs, errors.New("--rdzv-endpoint: user and password belong into PET_RDZV_CONF: user=NAME,password=WORD"))
	case len(o.endpoints()) == 0:
		errs = append(errs, errors.New("--rdzv-endpoint is missing: host:port of the store"))
	}
	if o.rdzvID == "" {
		errs = append(errs, errors.New("--rdzv-id is missing: a name for the run that all its agents give"))
	}
	return errs
}

// variables sets flags that were not given from PET_<FLAG>.
func (o *runOptions) variables(f *pflag.FlagSet, lookup func(string) (string, bool)) (err error) {
	ignored := map[string]bool{"help": true, "guard": true}
	for _, r := range refused {
		ignored[r.name] = !r.variable
	}
	f.VisitAll(func(flag *pflag.Flag) {
		name := "PET_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value, ok := lookup(name)
		if !ok || flag.Changed || ignored[flag.Name] || flag.Value.Type() == "bool" && value == "0" {
			return
		}
		if setErr := f.Set(flag.Name, value); setErr != nil {
			err = errors.Join(err, fmt.Errorf("%s=%s: %w", name, value, errors.Unwrap(setErr)))
		}
	})
	return err
}

// seconds is a flag's time: a number of seconds as torchrun has it, or with a unit as Go has it.
type seconds struct{ time.Duration }

func (s *seconds) Set(text string) (err error) {
	s.Duration, err = parseSeconds(text)
	return err
}

func (s *seconds) String() string { return strconv.FormatFloat(s.Seconds(), 'g', -1, 64) }
func (s *seconds) Type() string   { return "seconds" }

func parseSeconds(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if n, numErr := strconv.ParseFloat(text, 64); numErr == nil && n < 1e9 { // 30 years
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a time in seconds", text)
	}
	return d, nil
}

func parseNodes(text string) (least, most int, err error) {
	lo, hi, ranged := strings.Cut(text, ":")
	if !ranged {
		hi = lo
	}
	least, err = strconv.Atoi(lo)
	if err == nil {
		most, err = strconv.Atoi(hi)
	}
	if err != nil || least < 1 || most < least {
		return 0, 0, fmt.Errorf("%q is neither a number of machines nor min:max, with 1 ≤ min ≤ max", text)
	}
	return least, most, nil
}

func parseRanks(text string) (ranks []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not local ranks like 0,1", text)
		}
		ranks = append(ranks, n)
	}
	return ranks, nil
}

// show says whose lines are shown; nil for all.
func (o *runOptions) show() func(int) bool {
	if o.shown == nil {
		return nil
	}
	return func(local int) bool { return slices.Contains(o.shown, local) }
}

var signalNumbers = map[string]syscall.Signal{
	"SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGUSR1": usr1, "SIGUSR2": usr2, "SIGALRM": 14, "SIGTERM": 15,
}

func parseSignals(text string) (all []os.Signal, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, ok := signalNumbers[strings.ToUpper(strings.TrimSpace(part))]
		if !ok {
			return nil, fmt.Errorf("%q is none of SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM", part)
		}
		all = append(all, n)
	}
	return all, nil
}

// address is where others reach this machine: the address that its packets to the store come from, as it needs no name
// to be resolved. Beside a store on this machine that would be a loopback address: then it is the host's name.
func (o *runOptions) address() string {
	if o.localAddr != "" {
		return o.localAddr
	}
	if o.standalone {
		return "127.0.0.1"
	}
	first := o.endpoints()[0]
	if _, rest, ok := strings.Cut(first, "://"); ok {
		first = rest
	}
	if conn, err := net.Dial("udp", first); err == nil { // sends nothing
		ip := conn.LocalAddr().(*net.UDPAddr).IP
		_ = conn.Close()
		if !ip.IsLoopback() {
			return ip.String()
		}
	}
	name, err := os.Hostname()
	if err == nil {
		_, err = net.LookupHost(name)
	}
	if err != nil {
		return "127.0.0.1"
	}
	return name
}
