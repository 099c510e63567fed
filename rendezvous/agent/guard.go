package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Guard ends the process groups of an agent that was killed. It reads from a pipe that the agent alone holds: +N when
// group N begins, -N when it has ended. Once the pipe ends so has the agent, and the groups left are killed. The kernel
// ends the workers themselves (prctl(2), PR_SET_PDEATHSIG); this is for the processes that they have started.
func Guard(from io.Reader) error {
	groups := map[int]bool{}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		text := lines.Text()
		n, err := strconv.Atoi(strings.TrimLeft(text, "+-"))
		switch {
		case err != nil || n <= 1: // 0 and 1 would be all processes
			return fmt.Errorf("reading %q of the agent: not a process group", text)
		case text[0] == '+':
			groups[n] = true
		default:
			delete(groups, n)
		}
	}
	var errs []error
	for n := range groups {
		if err := signalGroup(n, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("killing process group %d: %w", n, err))
		}
	}
	return errors.Join(append(errs, lines.Err())...)
}

// guard is the agent's side.
type guard struct {
	pipe *os.File
	cmd  *exec.Cmd
}

// guardVariable is set for guards alone.
const guardVariable = "TEGEN_RENDEZVOUS_GUARD"

// newGuard starts the command, in a process group of its own so that a terminal's signals pass it by.
func newGuard(command []string, start func(*exec.Cmd) error) (*guard, error) {
	if len(command) == 0 {
		return nil, nil
	}
	if os.Getenv(guardVariable) != "" { // a command that is not Guard would start itself for ever
		return nil, errors.New("starting the guard: this process is one")
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), guardVariable+"=1")
	cmd.Stdin, cmd.Stderr, cmd.SysProcAttr = read, os.Stderr, ownGroup()
	err = start(cmd)
	_ = read.Close()
	if err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	return &guard{write, cmd}, nil
}

// send writes to the guard. Where that is gone, only the kernel's signal is left.
func (g *guard) send(sign string, pid int) {
	if g != nil {
		_, _ = fmt.Fprintf(g.pipe, "%s%d\n", sign, pid)
	}
}

// close ends the guard. Its result does not matter any more.
func (g *guard) close() {
	if g != nil {
		_ = g.pipe.Close()
		_ = g.cmd.Wait()
	}
}
