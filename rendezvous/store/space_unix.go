//go:build linux || darwin

package store

import "syscall"

// free is how many bytes others than root may still write.
func free(dir string) (int64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false // it is the store that says so
	}
	return int64(s.Bavail) * int64(s.Bsize), true //nolint:unconvert // their types differ from system to system
}
