package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// lockTimeout is how long a write waits for another one to end. One of thousands of jobs takes a second or two.
var lockTimeout = 10 * time.Second

var errBusy = errors.New("another tegen is writing there")

// openAll opens places in the order of their names, so that two writes never wait for each other.
func openAll(ctx context.Context, places []Place) ([]*writer, func(failed bool), error) {
	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(places[a].Dir, places[b].Dir) })
	writers := make([]*writer, len(places))
	release := func(failed bool) {
		for _, i := range slices.Backward(order) { // the first may have created what the others are in
			if writers[i] != nil {
				writers[i].release(failed)
			}
		}
	}
	for _, i := range order {
		w, err := open(ctx, places[i])
		if err != nil {
			release(true)
			return nil, nil, err
		}
		writers[i] = w
	}
	return writers, release, nil
}

// open creates the directory of a place if it is missing, and locks it until release is called, which removes the
// created directories if the write failed. It completes a write that was stopped there, or in the directory around it.
func open(ctx context.Context, place Place) (*writer, error) {
	dir := place.Dir
	var created []string
	undo := func() {
		for _, d := range created { // the deepest comes first
			_ = os.Remove(d)
		}
	}
	failed := func(err error) (*writer, error) {
		undo()
		return nil, err
	}
	completed := false
	for start := time.Now(); ; {
		more, err := mkdir(dir)
		created = append(more, created...)
		if err != nil {
			return failed(fmt.Errorf("making a directory: %w", err))
		}
		root, unlock, err := locked(dir)
		if above := filepath.Join(dir, ".."); err == nil && isUnfinished(above) {
			unlock() // it may concern this directory too
			outer, err := open(ctx, Place{Dir: above})
			if err != nil {
				return failed(err)
			}
			outer.release(false)
			completed = true
			continue
		}
		if err == nil {
			w := &writer{Place: place, root: &disk{root}, release: func(wrong bool) {
				if wrong {
					undo()
				}
				unlock()
			}}
			there, err := w.complete()
			if err == nil {
				err = w.sweep()
			}
			if err != nil {
				w.release(true)
				return nil, err
			}
			w.completed = there || completed
			return w, nil
		}
		switch {
		case !errors.Is(err, errBusy):
			return failed(fmt.Errorf("opening %s: %w", dir, err))
		case time.Since(start) > lockTimeout:
			// whoever has the lock may be about to write into a directory that was created here
			return nil, fmt.Errorf("writing %s: %w, and has been for %s: wait for it to end, or choose another "+
				"directory", dir, err, lockTimeout)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("writing %s: %w: nothing was written", dir, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// locked takes the lock of a directory. It is busy too where another writer removed the directory meanwhile.
func locked(dir string) (*os.Root, func(), error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, ifGone(err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, nil, errors.Join(ifGone(err), root.Close())
	}
	release := func() {
		unlock()
		_ = root.Close() // everything in it is closed
	}
	opened, err := root.Stat(".")
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(dir); err == nil && !os.SameFile(opened, there) {
			err = errBusy
		}
	}
	if err != nil {
		release()
		return nil, nil, ifGone(err)
	}
	return root, release, nil
}

// ifGone takes a directory that is no longer there for one that another writer removed.
func ifGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errBusy
	}
	return err
}
