package store

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const (
	// often is how often the server's files are looked at.
	often = time.Second
	// kept is how many revisions stay at most. A watch from before them begins anew.
	kept = 10_000
	// keptBytes is about how much of history stays where values are large; a process that starts reads it all.
	keptBytes = 24 << 20
	// keptLeast is how many revisions stay however large they are.
	keptLeast = 100
	// large is how much the file may grow by until it is compacted.
	large = 48 << 20
)

// tend compacts the server's history, until stop, by its size as well as by its length: etcd's own compactor looks each
// five minutes, in which a thousand agents that each write a state of 100 kB fill the file. etcd then refuses all
// writes, and for ever, until somebody makes room and says so; that is done here too. Files of the log that a snapshot
// has made superfluous go at once.
func (s *Store) tend(log *zap.Logger) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { purge(ctx, log, filepath.Join(s.server.Config().Dir, "member", "wal"), purgeAgain) })
	running.Go(func() {
		tick := time.NewTicker(often)
		defer tick.Stop()
		t := tender{store: s}
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := t.look(ctx); err != nil && ctx.Err() == nil {
				log.Warn("maintaining the store", zap.Error(err))
			}
		}
	})
	s.stop = func() {
		cancel()
		running.Wait()
	}
}

// purgeAgain is the pause after an error: the log grows by less than what is left free for it.
const purgeAgain = 5 * time.Second

// purge removes files of the log that a snapshot has made superfluous, until the context ends. etcd's own ends with the
// first error, which may pass.
func purge(ctx context.Context, log *zap.Logger, dir string, pause time.Duration) {
	for ctx.Err() == nil {
		// Of its own that are still in use it cannot take the lock, and stops there.
		ended, failed := fileutil.PurgeFileWithDoneNotify(zap.NewNop(), dir, "wal", 1, often, ctx.Done())
		<-ended
		select {
		case err := <-failed:
			log.Warn("removing old files of the store's log", zap.Error(err), zap.Duration("again", pause))
		default: // it ends with the context
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

type tender struct {
	store     *Store
	size      int64 // in use after the last compaction
	seen      int64 // revision then
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
	case size > t.size+large || rev-2*kept > t.compacted: // not for each revision
		if to := rev - t.keep(rev, size); to > t.compacted {
			return t.compact(ctx, to, rev)
		}
	}
	return nil
}

// keep is how many revisions are about keptBytes.
func (t *tender) keep(rev, size int64) int64 {
	if t.seen == 0 { // the file holds what an earlier process left, and nobody knows in how many revisions
		return keptLeast
	}
	each := max(1, (size-t.size)/max(1, rev-t.seen))
	return min(kept, max(keptLeast, keptBytes/each))
}

func (t *tender) compact(ctx context.Context, to, rev int64) error {
	if to > t.compacted {
		if _, err := t.store.Compact(ctx, to, clientv3.WithCompactPhysical()); err != nil && t.compacted != 0 {
			// the first may be of what an earlier process did
			return fmt.Errorf("compacting to revision %d: %w", to, err)
		}
		t.compacted = to
	}
	t.size, t.seen = t.store.server.Server.Backend().SizeInUse(), rev
	return nil
}

// makeRoom drops all history, gives the room back to the file, and ends the alarm.
func (t *tender) makeRoom(ctx context.Context, rev int64) error {
	if err := t.compact(ctx, rev, rev); err != nil {
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
