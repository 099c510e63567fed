//go:build unix

package proxy

import (
	"os"
	"syscall"
)

var forwarded = []os.Signal{
	syscall.SIGTERM, os.Interrupt, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// apart gives the command a process group, so that what a terminal sends to both of us reaches it once.
var apart = &syscall.SysProcAttr{Setpgid: true}

// handOn hands a signal on: those that a terminal sends by its keys to the whole group, as it would have.
func handOn(command *os.Process, sig os.Signal) error {
	if sig == os.Interrupt || sig == syscall.SIGQUIT {
		return syscall.Kill(-command.Pid, sig.(syscall.Signal))
	}
	return command.Signal(sig)
}
