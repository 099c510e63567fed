package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// cgroup is a group of processes whose memory is limited as a container's is.
type cgroup struct {
	dir string
	two bool // version 2

	stop chan struct{}
	done sync.WaitGroup
	most atomic.Int64 // peak bytes of memory that cannot be reclaimed
}

// errNoCgroup says that none can be made here: that takes root, and a hierarchy that is mounted for writing.
var errNoCgroup = errors.New("no cgroup with a memory limit can be made here")

// newCgroup makes a group below the root of the hierarchy.
func newCgroup(limit int64) (*cgroup, error) {
	name := "tegen-bench-" + strconv.Itoa(os.Getpid())
	g := &cgroup{dir: filepath.Join("/sys/fs/cgroup/memory", name), stop: make(chan struct{})}
	files := [][2]string{{"memory.limit_in_bytes", fmt.Sprint(limit)}}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		g.two, g.dir = true, filepath.Join("/sys/fs/cgroup", name)
		if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+memory"), 0o644); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoCgroup, err)
		}
		files = [][2]string{{"memory.max", fmt.Sprint(limit)}, {"memory.swap.max", "0"}}
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoCgroup, err)
	}
	for _, f := range files {
		err := os.WriteFile(filepath.Join(g.dir, f[0]), []byte(f[1]), 0o644)
		if err != nil && !strings.HasPrefix(f[0], "memory.swap") { // a kernel without swap has no limit of it
			return nil, errors.Join(fmt.Errorf("%w: %w", errNoCgroup, err), os.Remove(g.dir))
		}
	}
	g.done.Go(g.watch)
	return g, nil
}

// inside is a command that runs in the group from its first instruction on.
func (g *cgroup) inside(command []string) []string {
	return append([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(g.dir, "cgroup.procs")}, command...)
}

// watch records the peak of memory in use without the page cache, which the kernel drops where it needs room.
func (g *cgroup) watch() {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-g.stop:
			return
		case <-tick.C:
			field := map[bool]string{true: "anon", false: "rss"}[g.two]
			g.most.Store(max(g.most.Load(), g.number("memory.stat", field)))
		}
	}
}

// killed is how many processes the limit has ended.
func (g *cgroup) killed() int64 {
	if g.two {
		return g.number("memory.events", "oom_kill")
	}
	return g.number("memory.oom_control", "oom_kill")
}

func (g *cgroup) number(file, name string) int64 {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

// remove takes the group away, whose processes have ended.
func (g *cgroup) remove() error {
	close(g.stop)
	g.done.Wait()
	var err error
	for range 50 { // those that were killed are still being taken apart
		if err = os.Remove(g.dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}
