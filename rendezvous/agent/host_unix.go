//go:build unix && !linux

package agent

import "syscall"

func attributes() *syscall.SysProcAttr { return ownGroup() }

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func signalProcess(pid int, s syscall.Signal) error { return syscall.Kill(pid, s) }

func signalGroup(pid int, s syscall.Signal) error { return syscall.Kill(-pid, s) }
