package node

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// isolated makes a command the first process of new namespaces: what it starts ends with it, and what it mounts too. It
// ends with the thread that starts it.
func isolated(cmd *exec.Cmd, more uintptr) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | more,
		Pdeathsig:  syscall.SIGKILL,
		// An interrupt on the terminal reaches the outermost process alone, which passes it on.
		Setpgid: true,
	}
	return cmd
}

// startAndWait starts a command and waits for its end, on one thread that lives as long as the command does.
func startAndWait(cmd *exec.Cmd, started, done chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	started <- err
	if err == nil {
		done <- cmd.Wait()
	}
}

// ownMounts keeps mounts of this mount namespace to itself, and gives it a /proc of its process namespace.
func ownMounts() error {
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("keeping mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return nil
}

// reap waits for one of the children of a process that is the first of its namespace, orphans that it inherited
// included, and returns which.
func reap() (pid int, status syscall.WaitStatus, err error) {
	for {
		pid, err = syscall.Wait4(-1, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return pid, status, err
		}
	}
}
