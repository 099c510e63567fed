package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tegen-dev/tegen/rendezvous/keys"
	"github.com/tegen-dev/tegen/rendezvous/server"
	"github.com/tegen-dev/tegen/rendezvous/store"
	"github.com/tegen-dev/tegen/rendezvous/tcpstore"
)

const serveLong = `serve lets agents find each other through three doors:

  --listen-client  etcd's v2 keys API, for torchrun --rdzv-backend=etcd or etcd-v2
  --listen-c10d    a TCPStore, for torchrun --rdzv-backend=c10d, of any age
  --listen-status  /healthz, /readyz, /metrics and /runs

None of them asks for a password, so each is open to this machine alone unless
its flag says otherwise: --listen-c10d=:29400 is for all who reach the machine.

What the first holds is kept in an etcd server, a process that this one starts,
or in an etcd cluster that exists; then any number of replicas serve the same
runs. With that door shut (--listen-client=) no store is opened. While the disk
of --data-dir is full its writes are answered with status 507, and all else goes
on. What the second door holds is in memory, and is gone with its last
connection: torch's clients do not come back. So on the first SIGTERM it waits
for such runs, at most for --drain-timeout; on the second it ends at once.

Each flag can be set by TEGEN_RENDEZVOUS_ and its name, as
TEGEN_RENDEZVOUS_LISTEN_C10D. The password for etcd is no flag, because any
process may read those of others: it comes from TEGEN_RENDEZVOUS_PASSWORD or
from the file that --password-file names.`

const serveExample = `  # One process that keeps its data, for agents on other machines
  tegen-rendezvous serve --data-dir /var/lib/tegen-rendezvous --listen-client=:2379 --listen-c10d=:29400

  # One of several replicas in front of an etcd cluster
  tegen-rendezvous serve --listen-client=:2379 --store=etcd --endpoints=https://etcd:2379 --cacert=ca.crt --cert=tls.crt --key=tls.key \
    --advertise-client-urls=http://rendezvous:2379

  # What agents then say
  torchrun --rdzv-backend=c10d --rdzv-endpoint=rendezvous:29400 --rdzv-id=imagenet --nnodes=2:4 --max-restarts=3 train.py
  torchrun --rdzv-backend=etcd --rdzv-endpoint=rendezvous:2379 --rdzv-id=imagenet --nnodes=2:4 --max-restarts=3 train.py`

// passwordVariable is the one variable that is no flag.
const passwordVariable = prefix + "PASSWORD"

type serveOptions struct {
	store, dataDir                         string
	endpoints                              []string
	etcd, tls                              server.Files
	user, passwordFile                     string
	client, c10d, status                   string
	advertise                              []string
	drain, runTTL                          time.Duration
	logFormat, logLevel                    string
	connections, runs, keys, values, bytes int
	waits, answers                         int
}

func newServeCmd(s streams) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve rendezvous to torchrun and to agents of our own",
		Long:    serveLong,
		Example: serveExample,
		Args:    nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd); err != nil {
				return err
			}
			return runServe(o, s.err)
		},
	}
	o.flags(cmd)
	return cmd
}

func (o *serveOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.store, "store", "embedded", "where the keys API keeps its data: embedded, or etcd")
	f.StringVar(&o.dataDir, "data-dir", "tegen-rendezvous.data", "directory of the embedded store")
	f.StringSliceVar(&o.endpoints, "endpoints", nil, "URLs of the etcd cluster")
	f.StringVar(&o.etcd.CA, "cacert", "", "authority that etcd's certificate is of")
	f.StringVar(&o.etcd.Cert, "cert", "", "certificate to show to etcd")
	f.StringVar(&o.etcd.Key, "key", "", "its key")
	f.StringVar(&o.user, "user", "", "etcd user name")
	f.StringVar(&o.passwordFile, "password-file", "", "file with that user's password")
	f.StringVar(&o.client, "listen-client", "127.0.0.1:2379", "address of the keys API; :2379 for all of this machine's, empty for none")
	f.StringSliceVar(&o.advertise, "advertise-client-urls", nil, "URLs of the keys API that clients are told; default: the request's Host")
	f.StringVar(&o.c10d, "listen-c10d", "127.0.0.1:29400", "address of the TCPStore; :29400 for all of this machine's, empty for none")
	f.StringVar(&o.status, "listen-status", "127.0.0.1:2381", "address of health, metrics and runs; :2381 for all of this machine's, empty for none")
	f.StringVar(&o.tls.Cert, "tls-cert", "", "certificate of the keys API, which then speaks TLS only")
	f.StringVar(&o.tls.Key, "tls-key", "", "its key")
	f.StringVar(&o.tls.CA, "tls-client-ca", "", "authority whose certificates clients of the keys API must have")
	f.DurationVar(&o.drain, "drain-timeout", 25*time.Second, "how long to wait for runs on the TCPStore after SIGTERM")
	f.DurationVar(&o.runTTL, "run-ttl", 2*time.Hour, "time to live of an idle run on the keys API that brings none of its own (torch's bring two hours); 0: for ever")
	f.IntVar(&o.connections, "max-connections", 20000, "connections of each door")
	f.IntVar(&o.runs, "max-runs", 10000, "runs on the TCPStore")
	f.IntVar(&o.keys, "max-keys", 0, "keys of all runs on the keys API, of which one run may have half, and of each run on the TCPStore; 0: 100,000 and 1,048,576")
	f.IntVar(&o.values, "max-value-bytes", 0, "bytes in a value; 0: 1 MiB on the keys API, and 16 MiB on the TCPStore")
	f.IntVar(&o.bytes, "max-bytes", 0, "bytes of all keys and values, of which one run may have half; 0: 128 MiB on the keys API, and 512 MiB on the TCPStore")
	f.IntVar(&o.waits, "max-waits", 0, "requests of each door that wait; 0: 10,000 on the keys API, and 131,072 on the TCPStore")
	f.IntVar(&o.answers, "max-answer-bytes", 64<<20, "bytes of answers and requests of the keys API that are under way; more wait, for 10 s")
	f.StringVar(&o.logFormat, "log-format", "json", "json, or text")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	for flag, values := range map[string][]string{
		"store": {"embedded", "etcd"}, "log-format": {"json", "text"}, "log-level": {"debug", "info", "warn", "error"},
	} {
		// It only fails for flags that do not exist.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.MarkFlagDirname("data-dir")
}

// spareHeap is bytes that are allocated and never touched, so that they take no memory, but let as many more bytes of
// garbage come together before they are collected. The heap is a few megabytes, and else a fifth of the processor's time
// goes into that; a higher GOGC would do the same to a heap of half a gigabyte.
const spareHeap = 32 << 20

// runServe serves until a signal comes or a door fails.
func runServe(o serveOptions, stderr io.Writer) error {
	etcdLevel := zap.NewAtomicLevelAt(zap.WarnLevel) // etcd says much that is of no concern
	log, zapLog, err := o.logs(stderr, etcdLevel)
	if err != nil {
		return err
	}
	config, err := o.config(log, zapLog)
	if err != nil {
		return err
	}
	spare := make([]byte, spareHeap)
	defer runtime.KeepAlive(spare)
	config.Quiet = func() { etcdLevel.SetLevel(zap.DPanicLevel) }
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	early := make(chan struct{}) // a signal came while it was starting
	started := make(chan struct{})
	go func() {
		defer close(early)
		select {
		case sig := <-signals:
			signals <- sig // for whoever waits for it next
			cancel(fmt.Errorf("%s came first", sig))
		case <-started:
		}
	}()
	s, err := server.Start(ctx, config)
	close(started)
	<-early
	if err != nil {
		return err
	}
	select {
	case err = <-s.Failed():
		log.Error("listener failed", "error", err)
	case sig := <-signals:
		log.Info("shutting down", "signal", sig.String(), "timeout", o.drain.String())
	}
	return errors.Join(err, shutdown(s, o.drain, signals, log))
}

var (
	errDrained = errors.New("the drain timeout is over")
	errAgain   = errors.New("a second signal came")
)

// shutdown waits for runs. That they have not ended in time is what the timeout is for, and no error.
func shutdown(s *server.Server, limit time.Duration, signals <-chan os.Signal, log *slog.Logger) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errDrained)
	defer cancel()
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-signals:
		cut(errAgain)
		err = <-done
	}
	if errors.Is(err, errDrained) || errors.Is(err, errAgain) {
		log.Warn("runs were cut off", "error", err)
		return nil
	}
	if err == nil {
		log.Info("all is shut")
	}
	return err
}

func (o serveOptions) config(log *slog.Logger, zapLog *zap.Logger) (server.Config, error) {
	open, err := o.open(zapLog)
	if err != nil {
		return server.Config{}, err
	}
	tls, err := server.ServerTLS(o.tls)
	if err != nil {
		return server.Config{}, usageError{err}
	}
	for flag, n := range map[string]int{"max-connections": o.connections, "max-runs": o.runs, "max-keys": o.keys, "max-value-bytes": o.values, "max-bytes": o.bytes, "max-waits": o.waits, "max-answer-bytes": o.answers} {
		if n < 0 {
			return server.Config{}, usagef("--%s: %d is less than 0", flag, n)
		}
	}
	if o.runTTL != 0 && o.runTTL < time.Second { // TTLs are whole seconds
		return server.Config{}, usagef("--run-ttl: %s is less than a second, and not 0", o.runTTL)
	}
	if o.client == "" && o.c10d == "" {
		return server.Config{}, usagef("neither --listen-client nor --listen-c10d: there is nothing to serve")
	}
	limits := tcpstore.DefaultLimits()
	limits.Connections = cmp.Or(o.connections, limits.Connections)
	limits.Runs = cmp.Or(o.runs, limits.Runs)
	limits.Keys = cmp.Or(o.keys, limits.Keys)
	limits.Value = cmp.Or(o.values, limits.Value)
	limits = limits.Sized(cmp.Or(o.bytes, limits.Bytes))
	limits.Waits = cmp.Or(o.waits, limits.Waits)
	limits.Message = max(limits.Message, limits.Value)
	return server.Config{
		Store: open, Client: o.client, TLS: tls, C10d: o.c10d, Status: o.status, TCPStore: limits, Connections: o.connections, RunTTL: o.runTTL,
		Keys: keys.Options{
			Alone:     o.store == "embedded", // nobody else can write to it
			Advertise: o.advertise, MaxKeys: o.keys, MaxValue: o.values, MaxBytes: o.bytes, MaxWaits: o.waits, MaxAnswer: o.answers,
			Log: log.With("door", "etcd-v2"),
		},
		Hosts: hosts(o.advertise),
		Log:   log, Version: buildVersion(),
	}, nil
}

// open is how the store is opened.
func (o serveOptions) open(log *zap.Logger) (func(context.Context) (*store.Store, error), error) {
	switch o.store {
	case "embedded":
		if len(o.endpoints) > 0 || o.user != "" || o.etcd != (server.Files{}) {
			return nil, usagef("--endpoints, --user, --cacert, --cert and --key are for --store=etcd")
		}
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding this program: %w", err)
		}
		return store.Process{Dir: o.dataDir, Quota: o.quota(), Command: []string{self, storeCommand}, Log: log}.Open, nil
	case "etcd":
		if len(o.endpoints) == 0 {
			return nil, usagef("--store=etcd needs --endpoints")
		}
		tls, err := server.ClientTLS(o.etcd)
		if err != nil {
			return nil, usageError{err}
		}
		password, err := o.password()
		if err != nil {
			return nil, err
		}
		return store.External{Endpoints: o.endpoints, TLS: tls, Username: o.user, Password: password, Log: log}.Open, nil
	}
	return nil, usagef("--store: %q is neither embedded nor etcd", o.store)
}

// leastQuota is for the keys that are taken by default, what is kept of their history, and what lies between.
const leastQuota = 512 << 20

// quota is how large the store's file may become: several times what its keys may be.
func (o serveOptions) quota() int64 { return max(leastQuota, 4*int64(o.bytes)) }

// hosts are the names in URLs.
func hosts(urls []string) (all []string) {
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			all = append(all, strings.ToLower(u.Hostname()))
		}
	}
	return all
}

func (o serveOptions) password() (string, error) {
	password := os.Getenv(passwordVariable)
	if o.passwordFile != "" {
		text, err := os.ReadFile(o.passwordFile)
		if err != nil {
			return "", fmt.Errorf("reading the password for etcd: %w", err)
		}
		password = strings.TrimRight(string(text), "\r\n")
	}
	if (o.user == "") != (password == "") {
		return "", usagef("--user needs a password, and a password needs --user")
	}
	return password, nil
}

// logs are our own, and those of etcd.
func (o serveOptions) logs(w io.Writer, etcd zapcore.LevelEnabler) (*slog.Logger, *zap.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, nil, usagef("--log-level: %w", err)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.TimeKey, encoding.EncodeTime, encoding.EncodeLevel = "time", zapcore.RFC3339NanoTimeEncoder, zapcore.CapitalLevelEncoder
	options := &slog.HandlerOptions{Level: level}
	sink := zapcore.Lock(zapcore.AddSync(w)) // both write whole lines
	switch o.logFormat {
	case "json":
		return slog.New(slog.NewJSONHandler(sink, options)), zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoding), sink, etcd)), nil
	case "text":
		return slog.New(slog.NewTextHandler(sink, options)), zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), sink, etcd)), nil
	}
	return nil, nil, usagef("--log-format: %q is neither json nor text", o.logFormat)
}
