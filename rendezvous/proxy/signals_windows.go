package proxy

import (
	"os"
	"syscall"
)

var (
	forwarded = []os.Signal{os.Interrupt}
	apart     *syscall.SysProcAttr
)
