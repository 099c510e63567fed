package cluster

import "syscall"

// diesWithUs makes the kernel kill the program when the thread that started it ends, be it by SIGKILL.
func diesWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// The signals that pause a program and let it run on.
const pauseSignal, resumeSignal = syscall.SIGSTOP, syscall.SIGCONT
