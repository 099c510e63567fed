package store

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrFull says that the store's disk has no room for another write.
var ErrFull = errors.New("the disk of the store is full")

// reserve is what must be free for a write to be taken: two files of the log, one of which etcd makes ahead, and what
// its database grows by until the next look. Where a write of etcd's own fails, etcd ends.
const reserve = 3 * segmentBytes

// room asks the file system that a directory is on.
func room(dir string) error {
	free, ok := free(dir)
	if ok && free < reserve {
		return fmt.Errorf("%w: %d MiB are free at %s, and it takes writes while there are %d", ErrFull, free>>20, dir,
			int64(reserve)>>20)
	}
	return nil
}

// lookAgain is how often the disk is looked at, however many writes ask: a store that takes 100 MB a second writes a
// fiftieth of the reserve meanwhile.
const lookAgain = 10 * time.Millisecond

// sparing asks no more often than each interval, and says what it heard last.
func sparing(interval time.Duration, ask func() error) func() error {
	var mu sync.Mutex
	var last time.Time
	var heard error
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); last.IsZero() || now.Sub(last) >= interval {
			last, heard = now, ask()
		}
		return heard
	}
}
