//go:build !linux

package agent

import (
	"os/exec"
	"syscall"
)

// host starts and reaps processes. Only Linux has death signals and subreapers: elsewhere workers outlive an agent that
// was killed, unless its guard ends them.
type host struct{ guard *guard }

func newHost(guardCommand []string) (*host, error) {
	h := &host{}
	var err error
	h.guard, err = newGuard(guardCommand, (*exec.Cmd).Start)
	return h, err
}

func (h *host) start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	h.guard.send("+", cmd.Process.Pid)
	return nil
}

// reap is done by exitCode.
func (h *host) reap(cmd *exec.Cmd) error {
	h.guard.send("-", cmd.Process.Pid)
	return nil
}

func (h *host) close() { h.guard.close() }

func groupAlive(map[int]bool) bool { return false }

func exitCode(cmd *exec.Cmd) int {
	_ = cmd.Wait() // what went wrong is in its state
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return -int(s.Signal())
	}
	return cmd.ProcessState.ExitCode()
}
