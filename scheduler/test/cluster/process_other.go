//go:build !linux

package cluster

import "syscall"

// Nothing is started on other systems, where up refuses.
func diesWithUs() *syscall.SysProcAttr { return nil }
