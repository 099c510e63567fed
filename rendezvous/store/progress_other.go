//go:build !linux

package store

import "time"

// work is not known here: a store has a fixed time to open.
type work struct{}

func working(int) (work, bool) { return work{}, true }

func (work) since(work, time.Duration) bool { return false }
