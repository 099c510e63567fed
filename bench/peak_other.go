//go:build !linux

package main

import (
	"errors"
	"os"
)

// peakMemory is known on Linux only: other systems count in other units, or not at all.
func peakMemory(*os.ProcessState) (int64, error) {
	return 0, errors.New("reading a process's memory: the bench runs on Linux")
}
