//go:build linux || darwin

package tree

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the lock that the directory itself is: there is no file to be left behind, and a process that is killed
// holds nothing. File systems without such locks, as some of networks are, have none here either.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(errBusy, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// syncFile has the file system keep a file, or the names in a directory. File systems that cannot sync a directory, as
// some of networks, do not need to.
func syncFile(f *os.File) error {
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}
