package agent

import (
	"os"
	"syscall"
)

// Windows has neither signals nor process groups: workers are killed.

func attributes() *syscall.SysProcAttr { return nil }

func ownGroup() *syscall.SysProcAttr { return nil }

func signalProcess(pid int, _ syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

func signalGroup(int, syscall.Signal) error { return nil }
