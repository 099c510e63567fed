package daemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tegen-dev/tegen/rendezvous/gate"
	"github.com/tegen-dev/tegen/rendezvous/keys"
	"github.com/tegen-dev/tegen/rendezvous/server"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

// Config checks the options and reads the files that they name. What a flag says wrongly is a UsageError.
func (o *Options) Config(log *slog.Logger, etcdLog *zap.Logger) (server.Config, error) {
	open, err := o.openStore(etcdLog)
	if err != nil {
		return server.Config{}, err
	}
	tls, err := server.ServerTLS(o.TLS)
	if err != nil {
		return server.Config{}, UsageError{err}
	}
	if err := o.checkLimits(); err != nil {
		return server.Config{}, err
	}
	if o.ListenClient == "" && o.ListenC10d == "" && o.ListenProxies == "" {
		return server.Config{}, usagef("neither --listen-client nor --listen-c10d nor --listen-proxies: there is " +
			"nothing to serve")
	}
	return server.Config{
		Store: open, Client: o.ListenClient, TLS: tls, C10d: o.ListenC10d, Proxies: o.ListenProxies,
		Status:   o.ListenStatus,
		TCPStore: o.tcpStoreLimits(), Connections: o.MaxConnections, RunTTL: o.RunTTL,
		Keys: keys.Options{
			Alone:     o.Store == "embedded", // nobody else can write to it
			Advertise: o.AdvertiseClientURLs, MaxKeys: o.MaxKeys, MaxValue: o.MaxValueBytes, MaxBytes: o.MaxBytes,
			MaxWaits: o.MaxWaits, MaxAnswer: o.MaxAnswerBytes, Log: log.With("api", "etcd-v2"),
		},
		Gate:  gate.Options{MaxKeys: o.MaxKeys, MaxBytes: o.MaxBytes, MaxWaits: o.MaxWaits},
		Hosts: hosts(o.AdvertiseClientURLs), Log: log, Version: o.Version,
	}, nil
}

func (o *Options) checkLimits() error {
	for flag, n := range map[string]int{
		"max-connections": o.MaxConnections, "max-runs": o.MaxRuns, "max-keys": o.MaxKeys,
		"max-value-bytes": o.MaxValueBytes, "max-bytes": o.MaxBytes, "max-waits": o.MaxWaits,
		"max-answer-bytes": o.MaxAnswerBytes,
	} {
		if n < 0 {
			return usagef("--%s: %d is less than 0", flag, n)
		}
	}
	if o.RunTTL != 0 && o.RunTTL < time.Second { // TTLs are whole seconds
		return usagef("--run-ttl: %s is less than a second, and not 0", o.RunTTL)
	}
	return nil
}

func (o *Options) tcpStoreLimits() tcpstore.Limits {
	limits := tcpstore.DefaultLimits()
	limits.Connections = cmp.Or(o.MaxConnections, limits.Connections)
	limits.Runs = cmp.Or(o.MaxRuns, limits.Runs)
	limits.Keys = cmp.Or(o.MaxKeys, limits.Keys)
	limits.Value = cmp.Or(o.MaxValueBytes, limits.Value)
	limits = limits.Sized(cmp.Or(o.MaxBytes, limits.Bytes))
	limits.Waits = cmp.Or(o.MaxWaits, limits.Waits)
	limits.Message = max(limits.Message, limits.Value)
	return limits
}

// openStore returns what opens the store.
func (o *Options) openStore(log *zap.Logger) (func(context.Context) (*store.Store, error), error) {
	switch o.Store {
	case "embedded":
		if len(o.Endpoints) > 0 || o.User != "" || o.Etcd != (server.Files{}) {
			return nil, usagef("--endpoints, --user, --cacert, --cert and --key are for --store=etcd")
		}
		return store.Process{Dir: o.DataDir, Quota: o.quota(), Command: o.StoreCommand, Log: log}.Open, nil
	case "etcd":
		if len(o.Endpoints) == 0 {
			return nil, usagef("--store=etcd needs --endpoints")
		}
		tls, err := server.ClientTLS(o.Etcd)
		if err != nil {
			return nil, UsageError{err}
		}
		password, err := o.readPassword()
		if err != nil {
			return nil, err
		}
		return store.External{
			Endpoints: o.Endpoints, TLS: tls, Username: o.User, Password: password, Log: log,
		}.Open, nil
	}
	return nil, usagef("--store: %q is neither embedded nor etcd", o.Store)
}

// leastQuota is for the default number of keys, for what is kept of their history, and for what lies between.
const leastQuota = 512 << 20

// quota is how large the store's file may become: several times what its keys may be.
func (o *Options) quota() int64 {
	quota := max(leastQuota, 4*int64(o.MaxBytes))
	if o.ListenClient != "" && o.ListenProxies != "" { // each has as many
		return 2 * quota
	}
	return quota
}

// hosts are the names in URLs.
func hosts(urls []string) (all []string) {
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			all = append(all, strings.ToLower(u.Hostname()))
		}
	}
	return all
}

// readPassword returns the file's password, or that of the environment.
func (o *Options) readPassword() (string, error) {
	password := o.password
	if o.PasswordFile != "" {
		text, err := os.ReadFile(o.PasswordFile)
		if err != nil {
			return "", fmt.Errorf("reading the password for etcd: %w", err)
		}
		password = strings.TrimRight(string(text), "\r\n")
	}
	if (o.User == "") != (password == "") {
		return "", usagef("--user needs a password, and a password needs --user")
	}
	return password, nil
}
