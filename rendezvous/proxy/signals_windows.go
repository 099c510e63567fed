package proxy

import (
	"os"
	"syscall"
)

var (
	forwarded = []os.Signal{os.Interrupt}
	apart     *syscall.SysProcAttr
)

func handOn(command *os.Process, sig os.Signal) error { return command.Signal(sig) }
