// Package daemon is 'tegen-rendezvous serve': its flags, or the variables that stand for them, become a server and its
// log, which run until a signal. Nothing is opened before all options are checked.
package daemon

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tegen-dev/tegen/rendezvous/internal/names"
	"github.com/tegen-dev/tegen/rendezvous/server"
)

// Options are the flags, and what the program says of itself.
type Options struct {
	Store        string // embedded, or etcd
	DataDir      string
	Endpoints    []string
	Etcd         server.Files
	User         string
	PasswordFile string

	ListenClient, ListenC10d, ListenProxies, ListenStatus string // empty for none
	AdvertiseClientURLs                                   []string
	TLS                                                   server.Files

	DrainTimeout, RunTTL             time.Duration
	LogFormat, LogLevel              string
	MaxConnections, MaxRuns          int
	MaxKeys, MaxValueBytes, MaxBytes int
	MaxWaits, MaxAnswerBytes         int

	StoreCommand []string // a program that calls store.Main with the arguments that are added
	Version      string

	password string
}

// UsageError is a mistake in a flag, or in the variable in its place.
type UsageError struct{ error }

// Unwrap returns the mistake.
func (e UsageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// AddFlags adds the flags, with their defaults.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Store, "store", "embedded", "where the keys API and proxies keep their data: embedded, or etcd")
	f.StringVar(&o.DataDir, "data-dir", "tegen-rendezvous.data", "directory of the embedded store")
	f.StringSliceVar(&o.Endpoints, "endpoints", nil, "URLs of the etcd cluster")
	f.StringVar(&o.Etcd.CA, "cacert", "", "certificate of the authority that signed etcd's")
	f.StringVar(&o.Etcd.Cert, "cert", "", "client certificate for etcd")
	f.StringVar(&o.Etcd.Key, "key", "", "key of the client certificate")
	f.StringVar(&o.User, "user", "", "etcd user name")
	f.StringVar(&o.PasswordFile, "password-file", "", "file with that user's password")
	f.StringVar(&o.ListenClient, "listen-client", "127.0.0.1:2379",
		"address of the keys API; :2379 for all of this machine's, empty for none")
	f.StringSliceVar(&o.AdvertiseClientURLs, "advertise-client-urls", nil,
		"URLs of the keys API that clients receive; default: the request's Host")
	f.StringVar(&o.ListenC10d, "listen-c10d", "127.0.0.1:29400",
		"address of the TCPStore; :29400 for all of this machine's, empty for none")
	f.StringVar(&o.ListenProxies, "listen-proxies", "",
		"address of the store for tegen-rendezvous proxy, as :29400; empty for none")
	f.StringVar(&o.ListenStatus, "listen-status", "127.0.0.1:2381",
		"address of health, metrics and runs; :2381 for all of this machine's, empty for none")
	f.StringVar(&o.TLS.Cert, "tls-cert", "", "certificate of the keys API and of the store for proxies, which then "+
		"speak TLS only")
	f.StringVar(&o.TLS.Key, "tls-key", "", "key of that certificate")
	f.StringVar(&o.TLS.CA, "tls-client-ca", "", "authority that must have signed the clients' certificates of both")
	f.DurationVar(&o.DrainTimeout, "drain-timeout", 25*time.Second,
		"how long to wait for runs on the TCPStore after SIGTERM")
	o.addLimitFlags(f)
	f.StringVar(&o.LogFormat, "log-format", "json", "json, or text")
	f.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error")
}

func (o *Options) addLimitFlags(f *pflag.FlagSet) {
	f.DurationVar(&o.RunTTL, "run-ttl", 2*time.Hour,
		"time to live of an idle run on the keys API that has none of its own (torch's have two hours); 0: for ever")
	f.IntVar(&o.MaxConnections, "max-connections", 20000, "connections of each listener")
	f.IntVar(&o.MaxRuns, "max-runs", 10000, "runs on the TCPStore")
	f.IntVar(&o.MaxKeys, "max-keys", 0, "keys of all runs on the keys API, of which one run may have half, "+
		"the same of proxies, and of each run on the TCPStore; 0: 100,000 and 1,048,576")
	f.IntVar(&o.MaxValueBytes, "max-value-bytes", 0,
		"bytes in a value; 0: 1 MiB on the keys API, and 16 MiB on the TCPStore")
	f.IntVar(&o.MaxBytes, "max-bytes", 0, "bytes of all keys and values, of which one run may have half; "+
		"0: 128 MiB on the keys API and of proxies, and 512 MiB on the TCPStore")
	f.IntVar(&o.MaxWaits, "max-waits", 0,
		"waiting requests of each listener; 0: 10,000 on the keys API and of proxies, and 131,072 on the TCPStore")
	f.IntVar(&o.MaxAnswerBytes, "max-answer-bytes", 64<<20,
		"bytes of answers and requests of the keys API that are under way; more wait, for 10 s")
}

// variablePrefix begins the variables that stand for flags.
const variablePrefix = "TEGEN_RENDEZVOUS_"

// variable is what a flag is called in the environment.
func variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Complete sets the flags that are not on the command line from their variables.
func (o *Options) Complete(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	o.password, _ = lookup(names.RendezvousPassword)
	return SetFromVariables(f, lookup)
}

// SetFromVariables sets the flags that are not on the command line from their variables. Others of the prefix are let
// through: a Service called tegen-rendezvous makes Kubernetes set TEGEN_RENDEZVOUS_PORT and more in every pod of the
// namespace.
func SetFromVariables(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var wrong error
	f.VisitAll(func(flag *pflag.Flag) {
		value, ok := lookup(variable(flag.Name))
		if flag.Changed || !ok || wrong != nil {
			return
		}
		if err := f.Set(flag.Name, value); err != nil {
			wrong = usagef("%s: %w", variable(flag.Name), err)
		}
	})
	return wrong
}
