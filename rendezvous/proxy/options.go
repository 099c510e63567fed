// Package proxy is 'tegen-rendezvous proxy'. It starts torchrun beside a TCPStore on this machine whose keys are in an
// etcd (package proxystore), so that an unchanged torchrun survives the loss of a store. Options and the command are
// checked before anything is opened or started.
package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tegen-dev/tegen/rendezvous/daemon"
	"github.com/tegen-dev/tegen/rendezvous/gate"
	"github.com/tegen-dev/tegen/rendezvous/internal/names"
	"github.com/tegen-dev/tegen/rendezvous/proxystore"
	"github.com/tegen-dev/tegen/rendezvous/server"
	"github.com/tegen-dev/tegen/rendezvous/store"
)

// Options are the flags, and the values that Complete derives from them and from the command.
type Options struct {
	endpoints    []string
	files        server.Files
	user         string
	passwordFile string
	prefix       string
	ttl          time.Duration
	silence      time.Duration
	grace        time.Duration

	minNodes int // 0 if it is unknown
	etcd     store.External
	run      string
	launcher launcher
}

// leastSilence is the least value of --evict-after. A busy machine may be silent for less than that.
const leastSilence = 2 * time.Second

// AddFlags adds the flags, with their defaults.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.SetInterspersed(false) // flags after the command belong to the command
	f.SortFlags = false
	f.StringSliceVar(&o.endpoints, "endpoints", nil,
		"URLs of the etcd, or `host:port` (default: the command's --rdzv_endpoint)")
	f.StringVar(&o.files.CA, "cacert", "", "certificate of the authority that signed etcd's")
	f.StringVar(&o.files.Cert, "cert", "", "client certificate for etcd")
	f.StringVar(&o.files.Key, "key", "", "key of the client certificate")
	f.StringVar(&o.user, "user", "", "etcd user name")
	f.StringVar(&o.passwordFile, "password-file", "", "file with that user's password")
	f.StringVar(&o.prefix, "prefix", "/tegen/c10d", "prefix of all keys in the etcd")
	f.DurationVar(&o.ttl, "run-ttl", proxystore.DefaultTTL,
		"how long the keys of a run are kept while none of its proxies reaches the etcd, at most 24h")
	f.DurationVar(&o.silence, "evict-after", 8*time.Second,
		"how long a node may be silent before the others form a world without it, 0 to disable eviction")
	f.DurationVar(&o.grace, "worker-grace", 10*time.Second,
		"how long workers may take to end after an eviction before they are killed (on Linux only), 0 for torchrun's "+
			"own limit of 30s")
}

// Complete sets the flags that are not on the command line from their variables, and checks all of them and the
// command. lookup reads the environment that the command inherits.
func (o *Options) Complete(f *pflag.FlagSet, command []string, lookup func(string) (string, bool)) error {
	if err := daemon.SetFromVariables(f, lookup); err != nil {
		return err
	}
	if len(command) == 0 {
		return errors.New("no command given: tegen-rendezvous proxy [flags] -- torchrun [ARGUMENT...]")
	}
	var err error
	if o.launcher, err = parse(command, lookup); err != nil {
		return err
	}
	if o.run = o.launcher.value("rdzv_id"); o.run == "" {
		return errors.New("the run has no id: give the command --rdzv_id, or set PET_RDZV_ID")
	}
	o.minNodes = o.launcher.minNodes()
	if o.silence != 0 && o.silence < leastSilence {
		return fmt.Errorf("--evict-after: %s is less than %s. Use %[2]s or more, or 0 to disable eviction", o.silence,
			leastSilence)
	}
	if o.grace < 0 {
		return fmt.Errorf("--worker-grace: %s is negative. Use a duration, or 0 for torchrun's own limit", o.grace)
	}
	o.grace = o.launcher.grace(o.grace)
	if o.ttl < 2*time.Second {
		return fmt.Errorf("--run-ttl: %s is less than 2s", o.ttl)
	}
	if o.ttl > gate.LongestLease {
		return fmt.Errorf("--run-ttl: %s is more than 24h, the longest that a shared rendezvous keeps keys for", o.ttl)
	}
	if o.prefix == "" {
		return errors.New("--prefix is empty")
	}
	return o.completeEtcd(lookup)
}

func (o *Options) completeEtcd(lookup func(string) (string, bool)) error {
	all := o.endpoints
	if len(all) == 0 {
		all = strings.Split(o.launcher.value("rdzv_endpoint"), ",")
	}
	for _, text := range all {
		endpoint, err := parseEndpoint(text)
		if err != nil {
			return err
		}
		if endpoint != "" {
			o.etcd.Endpoints = append(o.etcd.Endpoints, endpoint)
		}
	}
	if len(o.etcd.Endpoints) == 0 {
		return errors.New("no etcd is named: give --endpoints, or the command --rdzv_endpoint")
	}
	var err error
	if o.etcd.TLS, err = server.ClientTLS(o.files); err != nil {
		return err
	}
	password, _ := lookup(names.RendezvousPassword)
	if o.passwordFile != "" {
		text, err := os.ReadFile(o.passwordFile)
		if err != nil {
			return fmt.Errorf("reading the password for etcd: %w", err)
		}
		password = strings.TrimRight(string(text), "\r\n")
	}
	if (o.user == "") != (password == "") {
		return errors.New("--user needs a password, and a password needs --user")
	}
	o.etcd.Username, o.etcd.Password = o.user, password
	return nil
}

// parseEndpoint adds etcd's port if there is none. It returns an empty text for an empty one.
func parseEndpoint(text string) (string, error) {
	scheme, host, ok := strings.Cut(strings.TrimSpace(text), "://")
	if !ok {
		scheme, host = "", scheme
	}
	host = strings.TrimRight(host, "/")
	switch {
	case strings.Contains(host, "@"): // not shown: it would be in logs and messages
		return "", errors.New("an endpoint holds no user and no password: give --user, and the password in " +
			names.RendezvousPassword)
	case ok && scheme != "http" && scheme != "https":
		return "", fmt.Errorf("endpoint %q is neither http nor https", text)
	case strings.Contains(host, "/"):
		return "", fmt.Errorf("endpoint %q has a path, and an etcd's has none", text)
	case host == "" && ok:
		return "", fmt.Errorf("endpoint %q names no host", text)
	case host == "":
		return "", nil
	}
	if _, port, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "2379")
	} else if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("endpoint %q: its port is not a number up to 65535", text)
	}
	if ok {
		host = scheme + "://" + host
	}
	return host, nil
}

// engine disables eviction if the minimum number of nodes is unknown: the world may need a node that is silent.
func (o *Options) engine(log *slog.Logger) proxystore.Options {
	silence := o.silence
	if o.minNodes == 0 {
		silence = 0
	}
	return proxystore.Options{
		Run: o.run, Prefix: o.prefix, TTL: o.ttl, Silence: silence, MinNodes: o.minNodes,
		Grace: o.grace, Log: log,
	}
}
