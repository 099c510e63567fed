package store

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// Embedded is a server of one member in this process. Where its disk is full or its data is damaged etcd ends the whole
// process, in half a hundred places: use Process where there is anything else in it that is to live on.
type Embedded struct {
	Dir    string // where its data is kept; what an earlier server left there is continued
	Listen string // host:port, or the path of a socket, for other processes; none by default
	// bytes of its file, beyond which it refuses writes until there is room again; etcd's default of 2 GiB
	Quota int64
	Log   *zap.Logger
}

// What etcd keeps of its log is for members that lag behind, and for its own restart. Its defaults, 10,000 entries
// until a snapshot and 5,000 beyond, are all in memory: 640 MB where each is a state of 43 kB, as 300 agents of torch
// have it. A store of one member has nobody to catch up, and a snapshot of etcd 3.6 is a record of a few kilobytes and
// a sync.
const (
	snapshotEntries = 200
	catchUpEntries  = 50
	// segmentBytes is the size of a file of the log, of which there are at least two; etcd has 64 MB.
	segmentBytes = 16 << 20
)

var segments sync.Once // etcd has it as a variable of the process

func (e Embedded) config() *embed.Config {
	segments.Do(func() { wal.SegmentSizeBytes = segmentBytes })
	local := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	clients := url.URL{Scheme: "http", Host: cmp.Or(e.Listen, local.Host)}
	if filepath.IsAbs(e.Listen) {
		clients = url.URL{Scheme: "unix", Path: e.Listen}
	}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = "tegen", e.Dir
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{clients}, []url.URL{local}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{local}, []url.URL{local}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger(e.Log))
	cfg.EnableGRPCGateway = false                      // clients speak gRPC
	cfg.WarningUnaryRequestDuration = 10 * time.Second // without it each request is one that took too long
	cfg.QuotaBackendBytes = e.Quota
	cfg.SnapshotCount, cfg.SnapshotCatchUpEntries = snapshotEntries, catchUpEntries
	cfg.MaxSnapFiles = 2
	cfg.MaxWalFiles = 0 // tend removes them: etcd looks each 30 s, in which a gigabyte may come together
	return cfg
}

// Open starts the server and waits until it serves. Where nobody else is to reach it, it listens on loopback ports that
// the system chooses: this process talks to it without them.
func (e Embedded) Open(ctx context.Context) (*Store, error) {
	if err := os.MkdirAll(e.Dir, 0o700); err != nil { // as etcd wants it
		return nil, fmt.Errorf("making the directory of the store: %w", err)
	}
	server, err := start(ctx, e.config())
	if err != nil {
		return nil, fmt.Errorf("starting etcd in %s: %w", e.Dir, err)
	}
	select {
	case <-server.Server.ReadyNotify():
		s := &Store{
			Client: v3client.New(server.Server), server: server,
			room: sparing(lookAgain, func() error { return room(e.Dir) }),
		}
		s.tend(logger(e.Log))
		return s, nil
	case err = <-server.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	server.Close()
	return nil, fmt.Errorf("starting etcd in %s: %w", e.Dir, err)
}

// start is embed.StartEtcd until the context ends: it waits for as long as another process holds the directory.
func start(ctx context.Context, cfg *embed.Config) (*embed.Etcd, error) {
	type result struct {
		server *embed.Etcd
		err    error
	}
	started := make(chan result, 1)
	go func() {
		server, err := embed.StartEtcd(cfg)
		started <- result{server, err}
	}()
	select {
	case r := <-started:
		return r.server, r.err
	case <-ctx.Done():
		go func() { // if it still starts
			if r := <-started; r.err == nil {
				r.server.Close()
			}
		}()
		return nil, fmt.Errorf("it did not start, perhaps because another process uses the directory: %w",
			context.Cause(ctx))
	}
}
