//go:build linux || darwin

package store

import (
	"os/exec"
	"syscall"
)

// apart keeps signals of a terminal from it: it ends after the one that started it, which still writes.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
