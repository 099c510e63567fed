package store

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Main is what the process of a Process does: it serves until in ends, which it does with whoever started it. Once it
// serves it writes a line to out. Its log is a JSON object a line.
func Main(e Embedded, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel(errors.New("the parent process exited"))
	}()
	s, err := e.Open(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return errors.Join(fmt.Errorf("saying that the store is open: %w", err), s.Close())
	}
	select {
	case <-ctx.Done():
		err := s.Close()
		if dir := filepath.Dir(e.Listen); strings.HasPrefix(filepath.Base(dir), tempPrefix) {
			_ = os.Remove(dir) // whoever made it may have been killed
		}
		return err
	case err = <-s.server.Err():
	case <-s.server.Server.StopNotify():
		err = errors.New("etcd has stopped")
	}
	return errors.Join(err, s.Close())
}

// garbage is how much the store's process makes, in percent of what is in use, before it collects: Go's 100 of the few
// megabytes of a store was a tenth of its work.
const garbage = "300"

// environment is that of the store's process, with the settings of Go's runtime that nobody has set. The store gets
// half of the processors: its goroutines wait for each other, and on two processors its threads mostly look for work
// that is not there. The process that asks needs the other half. With a GOMAXPROCS in the environment Go's runtime does
// not follow the limit of its cgroup: one that is changed in place counts from the store's next start.
func environment(processors int) []string {
	env := os.Environ()
	if limit := memoryOfStore(); limit > 0 {
		env = append(env, "GOMEMLIMIT="+strconv.FormatInt(limit, 10))
	}
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC="+garbage)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(max(1, processors/2)))
	}
	return env
}

// child is that process, as the one that started it sees it.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ready chan struct{} // closed once it serves
	ended chan struct{}

	mu   sync.Mutex
	last string // what it said about its end
}

func launch(log *zap.Logger, command []string) (*child, error) {
	c := &child{cmd: exec.Command(command[0], command[1:]...), ready: make(chan struct{}), ended: make(chan struct{})}
	c.cmd.Env = environment(runtime.GOMAXPROCS(0))
	apart(c.cmd)
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	said, err := c.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	c.stdin = in
	var reading sync.WaitGroup
	reading.Go(func() {
		r := bufio.NewReader(out)
		if _, err := r.ReadString('\n'); err == nil {
			close(c.ready)
		}
		_, _ = io.Copy(io.Discard, r)
	})
	reading.Go(func() {
		for r := bufio.NewReader(said); ; {
			line, err := r.ReadString('\n')
			c.hear(log, strings.TrimSpace(line))
			if err != nil {
				return
			}
		}
	})
	go func() {
		reading.Wait()
		_ = c.cmd.Wait() // the state says how it ended
		close(c.ended)
	}()
	return c, nil
}

// memoryOfStore is the part of this process's soft limit on memory that the store's process gets, and 0 without one.
// This process keeps the rest: both are in one container. A third is for the store, whose file is mapped and is no part
// of it; the keys are here, and what is under way to clients.
var memoryOfStore = sync.OnceValue(func() int64 {
	all := debug.SetMemoryLimit(-1)
	if all == math.MaxInt64 {
		return 0
	}
	debug.SetMemoryLimit(all - all/3)
	return all / 3
})

func (c *child) pid() int { return c.cmd.Process.Pid }

// hear passes a line of its log on, and remembers what it ends with. A trace of Go's is for those who look for it.
func (c *child) hear(log *zap.Logger, line string) {
	if line == "" {
		return
	}
	var said map[string]any
	if json.Unmarshal([]byte(line), &said) != nil {
		own, isOwn := strings.CutPrefix(line, "tegen-rendezvous: ") // which the one that started it says, too
		if isOwn || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			c.mu.Lock()
			if c.last == "" {
				c.last = own
			}
			c.mu.Unlock()
		}
		log.Debug("store log", zap.String("line", line))
		return
	}
	level := zapcore.ErrorLevel
	if text, _ := said["level"].(string); level.Set(text) != nil || level > zapcore.ErrorLevel {
		level = zapcore.ErrorLevel
		c.mu.Lock()
		if c.last = fmt.Sprint(said["msg"]); said["error"] != nil {
			c.last += ": " + fmt.Sprint(said["error"])
		}
		c.mu.Unlock()
	}
	if entry := log.Check(level, fmt.Sprint(said["msg"])); entry != nil {
		var fields []zap.Field
		for name, value := range said {
			if name != "msg" && name != "level" && name != "ts" && name != "caller" && name != "stacktrace" {
				fields = append(fields, zap.Any(name, value))
			}
		}
		entry.Write(fields...)
	}
}

// reason is why it has ended, once it has.
func (c *child) reason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	// as of the kernel, which needs memory
	if state := c.cmd.ProcessState.String(); c.last == "" || strings.HasPrefix(state, "signal: ") {
		return state
	}
	return c.last
}

// patience is how long a store has to write its last words.
const patience = 10 * time.Second

// end asks it to end, and waits.
func (c *child) end() {
	_ = c.stdin.Close() // it may have gone
	select {
	case <-c.ended:
	case <-time.After(patience):
		c.kill()
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have gone
	<-c.ended
}
