package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// often is how often the server's file is looked at.
	often = time.Second
	// kept is how many revisions stay. A watch from before them begins anew.
	kept = 10_000
	// keptLarge is how many stay where they are large: waits of the v2 API may begin so far back.
	keptLarge = 1_000
	// large is how much a file may grow by until fewer revisions stay.
	large = 256 << 20
)

// tend compacts the server's history, until stop, by its size as well as by its length: etcd's own compactor looks each
// five minutes, in which a thousand agents that each write a state of 100 kB fill the file. etcd then refuses all writes,
// and for ever, until somebody makes room and says so; that is done here too.
func (s *Store) tend(log *zap.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(often)
		defer tick.Stop()
		t := tender{store: s, size: s.server.Server.Backend().SizeInUse()}
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := t.look(ctx); err != nil && ctx.Err() == nil {
				log.Warn("looking after the store", zap.Error(err))
			}
		}
	})
	s.stop = func() {
		cancel()
		running.Wait()
	}
}

type tender struct {
	store     *Store
	size      int64 // in use after the last compaction
	compacted int64 // revision
}

func (t *tender) look(ctx context.Context) error {
	server := t.store.server.Server
	full := false
	for _, a := range server.Alarms() {
		full = full || a.Alarm == etcdserverpb.AlarmType_NOSPACE
	}
	rev, size := server.KV().Rev(), server.Backend().SizeInUse()
	switch {
	case full:
		return t.makeRoom(ctx, rev)
	case size > t.size+large && rev-keptLarge > t.compacted:
		return t.compact(ctx, rev-keptLarge)
	case rev-2*kept > t.compacted: // not for each revision
		return t.compact(ctx, rev-kept)
	}
	return nil
}

func (t *tender) compact(ctx context.Context, rev int64) error {
	if rev > t.compacted {
		if _, err := t.store.Compact(ctx, rev, clientv3.WithCompactPhysical()); err != nil && t.compacted != 0 {
			return fmt.Errorf("compacting to revision %d: %w", rev, err) // the first may be of what an earlier process did
		}
		t.compacted = rev
	}
	t.size = t.store.server.Server.Backend().SizeInUse()
	return nil
}

// makeRoom drops all history, gives the room back to the file, and ends the alarm.
func (t *tender) makeRoom(ctx context.Context, rev int64) error {
	if err := t.compact(ctx, rev); err != nil {
		return err
	}
	if err := t.store.server.Server.Backend().Defrag(); err != nil {
		return fmt.Errorf("defragmenting: %w", err)
	}
	if _, err := t.store.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("ending the alarm: %w", err)
	}
	return nil
}
