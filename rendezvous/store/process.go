package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// Process is an Embedded in a process of its own, so that its end, on a full disk or on data that is damaged, is not
// that of this process: what else it serves goes on, requests for the store are refused, and the store is started
// again. It ends with this process, however that ends.
type Process struct {
	Dir     string
	Quota   int64
	Command []string      // calls Main with the arguments that are added: directory, socket, quota
	Stall   time.Duration // how long it may be opening without any progress; 0 for 30 s
	Log     *zap.Logger
}

// pauses between two starts of a store that has ended.
const (
	firstPause = 200 * time.Millisecond
	longPause  = 5 * time.Second
)

// supervisor starts the process and starts it again.
type supervisor struct {
	Process
	socket string
	own    string // directory that is removed at the end
	child  *child
}

// Open starts the process, and returns once the store answers, however long that takes while it advances.
func (p Process) Open(ctx context.Context) (*Store, error) {
	p.Log, p.Stall = logger(p.Log), cmp.Or(p.Stall, 30*time.Second)
	s := &supervisor{Process: p}
	if err := s.place(); err != nil {
		return nil, err
	}
	var err error
	if s.child, err = s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.clear())
	}
	client, err := s.client()
	if err != nil {
		s.child.end()
		return nil, errors.Join(fmt.Errorf("opening the store in %s: %w", s.Dir, err), s.clear())
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var tending sync.WaitGroup
	tending.Go(func() { s.tend(running) })
	return &Store{
		Client: client,
		room:   sparing(lookAgain, func() error { return room(s.Dir) }),
		after: func() error { // once the client has gone, or the server would wait for it
			cancel()
			tending.Wait()
			s.child.end()
			return s.clear()
		},
	}, nil
}

// longestSocket is what fits into an address of a socket (unix(7)).
const longestSocket = 100

// notInURL is what a socket's path may not have: it is part of a URL, of a pattern of files, and of a target of gRPC.
const notInURL = `%?#[]*\`

// place finds a directory for the socket: that of the data, which nobody else may enter, or where its path is too long
// or is no part of a URL a new one.
func (s *supervisor) place() error {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return fmt.Errorf("finding the directory of the store: %w", err)
	}
	s.Dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil { // as etcd wants it
		return fmt.Errorf("making the directory of the store: %w", err)
	}
	// A name of its own: the store of a process that was killed may still be ending, and takes its socket away then.
	name := strings.ToLower(rand.Text()[:8]) + socketSuffix
	if s.socket = filepath.Join(dir, name); len(s.socket) <= longestSocket && !strings.ContainsAny(dir, notInURL) {
		_, err := sweep(dir)
		return err
	}
	sweepTemp()
	if s.own, err = os.MkdirTemp("", tempPrefix); err != nil {
		return fmt.Errorf("making a directory for the store's socket: %w", err)
	}
	s.socket = filepath.Join(s.own, name)
	return nil
}

const (
	socketSuffix = ".store.sock"
	tempPrefix   = "tegen-store-" // of directories for sockets
)

// young is a socket between bind and listen, at which nobody listens yet, with time to spare.
const young = 10 * time.Second

// sweep removes sockets that nobody listens at any more, and says whether there were any.
func sweep(dir string) (found bool, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return false, fmt.Errorf("looking for sockets of earlier stores: %w", err)
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if !strings.HasSuffix(path, socketSuffix) {
			continue
		}
		if info, err := f.Info(); err != nil || time.Since(info.ModTime()) < young {
			continue
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			_ = c.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			found = os.Remove(path) == nil || found // a file without content, should it stay
		}
	}
	return found, nil
}

// sweepTemp removes directories of stores that were killed with whoever started them. One without a socket may be of a
// store that is about to start; where only the other one was killed, the store has removed it (Main).
func sweepTemp() {
	all, _ := os.ReadDir(os.TempDir()) // without them there is nothing to remove
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		dir := filepath.Join(os.TempDir(), e.Name())
		if found, _ := sweep(dir); found { // others' cannot be read
			_ = os.Remove(dir) // it is not empty where another socket is in use
		}
	}
}

func (s *supervisor) clear() error {
	if s.own == "" {
		return nil
	}
	return os.RemoveAll(s.own)
}

func (s *supervisor) client() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{"unix://" + s.socket}, Logger: s.Log, DialTimeout: dialTimeout,
		// it comes back at once, or not for long
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstPause / 4, Multiplier: 1.6, MaxDelay: firstPause},
			MinConnectTimeout: dialTimeout,
		})},
	})
}

// begin starts the process and waits until the store answers. It gives up one that does not advance any more.
func (s *supervisor) begin(ctx context.Context) (*child, error) {
	c, err := launch(s.Log, append(append([]string(nil), s.Command...), s.Dir, s.socket, fmt.Sprint(s.Quota)))
	if err != nil {
		return nil, fmt.Errorf("starting the store: %w", err)
	}
	tick := time.NewTicker(min(time.Second, s.Stall/4))
	defer tick.Stop()
	before, at := work{}, time.Now()
	for {
		select {
		case <-c.ready:
			return c, nil
		case <-c.ended:
			return nil, s.why(c)
		case <-ctx.Done():
			c.kill()
			return nil, fmt.Errorf("opening the store in %s: %w", s.Dir, context.Cause(ctx))
		case now := <-tick.C:
			if w, ok := working(c.pid()); ok && w.since(before, now.Sub(at)) {
				before, at = w, now
			} else if now.Sub(at) > s.Stall {
				c.kill()
				return nil, fmt.Errorf("opening the store in %s: it has not advanced for %s; perhaps another process "+
					"uses the directory, or its disk does not answer", s.Dir, s.Stall)
			}
		}
	}
}

// why tells a store that has no room from one whose data cannot be read.
func (s *supervisor) why(c *child) error {
	said := c.reason()
	if err := room(s.Dir); err != nil || strings.Contains(said, "no space left on device") {
		return fmt.Errorf("opening the store in %s: %w (%s)", s.Dir, cmp.Or(err, ErrFull), said)
	}
	return fmt.Errorf("opening the store in %s: %s; if its data is damaged, move the directory away to begin with an "+
		"empty store", s.Dir, said)
}

// tend starts the process again whenever it has ended.
func (s *supervisor) tend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.child.ended:
		}
		if ctx.Err() != nil {
			return
		}
		s.Log.Error("store exited; restarting", zap.String("dir", s.Dir), zap.String("reason", s.child.reason()))
		for pause := firstPause; ; pause = min(2*pause, longPause) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			c, err := s.begin(ctx)
			if err == nil {
				s.child = c
				s.Log.Warn("store restarted", zap.String("dir", s.Dir))
				break
			}
			if ctx.Err() == nil {
				s.Log.Error("restarting the store failed", zap.Error(err))
			}
		}
	}
}
