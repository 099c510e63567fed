//go:build unix

package proxy

import (
	"os"
	"syscall"
)

var forwarded = []os.Signal{
	syscall.SIGTERM, os.Interrupt, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// apart starts the command in a process group, so that it receives a terminal's signal once and not twice.
var apart = &syscall.SysProcAttr{Setpgid: true}

// handOn forwards a signal. Signals of a terminal's keys go to all processes of the group, as without a proxy.
func handOn(command *os.Process, sig os.Signal) error {
	if sig == os.Interrupt || sig == syscall.SIGQUIT {
		return syscall.Kill(-command.Pid, sig.(syscall.Signal))
	}
	return command.Signal(sig)
}
