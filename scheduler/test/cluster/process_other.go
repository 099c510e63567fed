//go:build !linux

package cluster

import "syscall"

// Nothing is started on other systems, where up refuses.
func diesWithUs() *syscall.SysProcAttr { return nil }

// Not every system has those of Linux.
const pauseSignal, resumeSignal = syscall.SIGTERM, syscall.SIGTERM
