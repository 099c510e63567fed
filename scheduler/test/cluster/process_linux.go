package cluster

import "syscall"

// diesWithUs makes the kernel kill the program when the thread that started it ends, be it by SIGKILL.
func diesWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
