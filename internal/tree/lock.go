package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// lockTimeout is how long a write waits for another one to end. One of thousands of jobs takes a second or two.
var lockTimeout = 10 * time.Second

var errBusy = errors.New("another tegen is writing there")

// open creates a directory if it is missing, and locks it until release is called, which removes the created
// directories if the write failed.
func open(ctx context.Context, dir string) (*writer, func(failed bool), error) {
	var created []string
	undo := func() {
		for _, d := range created { // the deepest comes first
			_ = os.Remove(d)
		}
	}
	for start := time.Now(); ; {
		more, err := mkdir(dir)
		created = append(more, created...)
		if err != nil {
			undo()
			return nil, nil, fmt.Errorf("making a directory: %w", err)
		}
		w, unlock, err := locked(dir)
		if err == nil {
			return w, func(failed bool) {
				if failed {
					undo()
				}
				unlock()
			}, nil
		}
		switch {
		case !errors.Is(err, errBusy):
			undo()
			return nil, nil, fmt.Errorf("opening %s: %w", dir, err)
		case time.Since(start) > lockTimeout:
			return nil, nil, fmt.Errorf("writing %s: %w, and has been for %s: wait for it to end, or choose another "+
				"directory", dir, err, lockTimeout)
		}
		select {
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("writing %s: %w: nothing was written", dir, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// locked takes the lock of a directory. It is busy too where another writer removed the directory meanwhile.
func locked(dir string) (*writer, func(), error) {
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
	return &writer{dir: dir, root: root}, release, nil
}

// ifGone takes a directory that is no longer there for one that another writer removed.
func ifGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errBusy
	}
	return err
}

// mkdir is os.MkdirAll that says which directories are new, the deepest first.
func mkdir(dir string) ([]string, error) {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		missing = append(missing, d)
	}
	return missing, os.MkdirAll(dir, 0o777)
}
