package cluster

import (
	"errors"
	"os"
	"syscall"
)

// diesWithUs makes the kernel kill the program when the thread that started it ends, be it by SIGKILL.
func diesWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// resumeSignal lets a program run on that was paused, as a user of command up may do.
const resumeSignal = syscall.SIGCONT

// tryLock takes the lock of an open file, which ends with the file or the process; false says that another has it.
func tryLock(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
