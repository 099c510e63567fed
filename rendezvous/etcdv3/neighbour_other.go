//go:build !linux

package etcdv3

import (
	"syscall"
	"time"
)

// limitSilence leaves silent machines to their leases: the time that a system has by itself for a dial is longer.
func limitSilence(syscall.RawConn, time.Duration) {}
