//go:build !linux && !darwin

package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// lock creates a file that must not exist yet. A killed process leaves its file behind.
func lock(dir string) (unlock func(), err error) {
	name := filepath.Join(dir, ".tegen-lock")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w, or was killed there: then remove %s", errBusy, name)
	}
	if err != nil {
		return nil, err
	}
	return func() {
		_ = f.Close()
		_ = os.Remove(name)
	}, nil
}

// syncFile has the file system keep a file. Directories cannot be synced here.
func syncFile(f *os.File) error {
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil
	}
	return f.Sync()
}
