package main

import (
	"errors"
	"os"
	"syscall"
)

// peakMemory is the most memory that a process had resident, in bytes.
func peakMemory(p *os.ProcessState) (int64, error) {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, errors.New("reading a process's memory: the system gave no usage")
	}
	return usage.Maxrss << 10, nil // Linux counts in KiB
}
