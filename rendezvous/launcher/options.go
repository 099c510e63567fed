// Package launcher is 'tegen-rendezvous run': torchrun's flags, its PET_ variables and --rdzv-conf become an agent,
// which starts the workers of this machine. Options are completed and checked before anything is opened or started.
package launcher

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tegen-dev/tegen/rendezvous/agent"
	"github.com/tegen-dev/tegen/rendezvous/internal/names"
)

// Options are the flags, and what Complete makes of them.
type Options struct {
	nnodes, nproc                          string
	backend, endpoint, rdzvID, rdzvConf    string
	role, localAddr, logDir                string
	redirects, tee, ranks, prefix, signals string
	maxRestarts, masterPort                int
	monitor, shutdown                      seconds
	standalone, noPython                   bool

	least, most                 int // machines
	workers                     int // on this machine
	conf                        conf
	signalList                  []os.Signal
	redirectStreams, teeStreams agent.Streams
	shown                       []int  // local ranks; nil for all
	errorFile, logLevel         string // torch's variables
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{
		monitor:  seconds{5 * time.Second},  // torch 1.13's; later ones have less
		shutdown: seconds{30 * time.Second}, // torch's
	}
}

// AddFlags adds torchrun's flags; those that mean nothing here end with an error that says why.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.SetInterspersed(false) // what follows the command is the command's
	f.SortFlags = false
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	f.StringVar(&o.nnodes, "nnodes", "1:1", "machines: a number, or `min:max`")
	f.StringVar(&o.nproc, "nproc-per-node", "1",
		"workers on this machine: a `number`, gpu, cpu, or auto, which is gpu where there are any")
	o.addRendezvousFlags(f)
	f.IntVar(&o.maxRestarts, "max-restarts", 0, "how often workers are restarted after a failure")
	f.StringVar(&o.role, "role", "default", "`name` by which workers are counted apart")
	o.addLogFlags(f)
	f.StringVar(&o.signals, "signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
		"`signals` that are handed on to workers and end this agent")
	f.Var(&o.shutdown, "shutdown-timeout", "`seconds` that workers have to end before they are killed")
	f.BoolVar(&o.noPython, "no-python", false, "for torchrun's sake: the command is always started as it is")
	_ = f.MarkHidden("no-python")
	addUnsupported(f)
}

func (o *Options) addRendezvousFlags(f *pflag.FlagSet) {
	f.StringVar(&o.backend, "rdzv-backend", "", "`name` of the rendezvous: etcd or etcd-v3")
	f.StringVar(&o.endpoint, "rdzv-endpoint", "", "`host:port` of the store; for etcd-v3 several after commas")
	f.StringVar(&o.rdzvID, "rdzv-id", "", "`name` of the run, the same for all its agents")
	f.StringVar(&o.rdzvConf, "rdzv-conf", "", "`key=value,...` for the rendezvous: "+confKeys())
	f.BoolVar(&o.standalone, "standalone", false, "one machine, with a store inside this process")
	f.Var(&o.monitor, "monitor-interval",
		"polling interval of torch's agents in `seconds`, the longest of the run's; ours do not poll")
	f.StringVar(&o.localAddr, "local-addr", "",
		"`address` at which others reach this machine (default: the one that reaches the store)")
	f.IntVar(&o.masterPort, "master-port", 0,
		"`port` of the worker of rank 0, should this machine have it (default: a free one)")
}

func (o *Options) addLogFlags(f *pflag.FlagSet) {
	f.StringVar(&o.logDir, "log-dir", "", "`directory` of log and error files (default: a temporary one)")
	f.StringVarP(&o.redirects, "redirects", "r", "0",
		"`streams` that go to log files only: 1 output, 2 errors, 3 both, or 0:3,1:2 by local rank")
	f.StringVarP(&o.tee, "tee", "t", "0", "`streams` that go to log files as well, as in --redirects")
	f.StringVar(&o.ranks, "local-ranks-filter", "", "local ranks whose output is shown, after `commas` (default: all)")
	f.StringVar(&o.prefix, "log-line-prefix-template", "[${rank}] ",
		"`text` before each line; ${rank}, ${local_rank} and ${role_name} are replaced")
}

// Complete sets the flags that are not on the command line from torchrun's variables, and checks all.
func (o *Options) Complete(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
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
	o.workers, err = parseProcesses(o.nproc, lookup)
	note("nproc-per-node", err)
	o.conf, err = parseConf(o.rdzvConf)
	note("rdzv-conf", err)
	if o.conf.user != "" && o.conf.password == "" {
		o.conf.password, _ = lookup(names.RendezvousPassword)
	}
	o.errorFile, _ = lookup("TORCHELASTIC_ERROR_FILE")
	o.logLevel, _ = lookup("LOGLEVEL")
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
func (o *Options) completeRdzv() (errs []error) {
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
		errs = append(errs, fmt.Errorf("--rdzv-backend: %s keeps Python objects in its store, so only torchrun can "+
			"take part: use etcd or etcd-v3", o.backend))
	default:
		errs = append(errs, fmt.Errorf("--rdzv-backend: %q is neither etcd nor etcd-v3", o.backend))
	}
	switch {
	case strings.Contains(o.endpoint, "@"): // not shown: it would be in logs and messages
		errs = append(errs, errors.New("--rdzv-endpoint: user and password belong into PET_RDZV_CONF: "+
			"user=NAME,password=WORD"))
	case len(o.endpoints()) == 0:
		errs = append(errs, errors.New("--rdzv-endpoint is missing: host:port of the store"))
	}
	if o.rdzvID == "" {
		errs = append(errs, errors.New("--rdzv-id is missing: a name for the run that all its agents give"))
	}
	return errs
}

// variables sets flags that are not on the command line from PET_<FLAG>.
func (o *Options) variables(f *pflag.FlagSet, lookup func(string) (string, bool)) (err error) {
	ignored := map[string]bool{"help": true}
	for _, u := range unsupported {
		ignored[u.name] = !u.rejectVariable
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
