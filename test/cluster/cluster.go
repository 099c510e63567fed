// Package cluster runs a real Kubernetes control plane on this machine, within seconds and without root: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, and KWOK, which plays nodes and the pods on them.
//
// In go Options; out comes a Cluster with an admin's kubeconfig and clients. The programs are the versions of
// binaries.mod, built once by go build and kept in the user's cache folder; TEGEN_CLUSTER_BIN may name a folder that
// holds them already. They listen on free ports of the loopback interface, so that clusters run side by side.
//
// What always holds: every wait has a deadline and its error names the program and the end of its log; programs are
// stopped by process id and die with the process that started them, even where that is killed; nothing outside the
// cluster's own folder is written. No kubelet runs: a pod's containers are words in its status.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options of a control plane. The zero value is etcd, kube-apiserver, kube-controller-manager, the stock
// kube-scheduler and KWOK, with every feature gate and API at its default.
type Options struct {
	// Gates are feature gates of kube-apiserver, kube-controller-manager and kube-scheduler.
	Gates map[string]bool
	// APIs are group/versions to serve besides the default ones, such as "scheduling.k8s.io/v1alpha2".
	APIs []string
	// NoScheduler leaves the stock kube-scheduler out.
	NoScheduler bool
	// NoControllers leaves kube-controller-manager out. Then nobody makes ServiceAccounts, and pods are admitted
	// without.
	NoControllers bool
	// Address, where one is set, is an address of this machine that kube-apiserver listens on, so that real nodes can
	// join. Then KWOK is left out, the Service "kubernetes" leads there, and the loss of a node is noticed as it is by
	// default. The zero value is the loopback interface, and no node can reach it.
	Address string
	// Args are further arguments by program ("kube-apiserver"); they take the place of the package's own of
	// the same flag, as --flag=value.
	Args map[string][]string
	// Dir is where logs, kubeconfig and data go. By default it is a new folder for temporary files, which Down removes;
	// a folder named here stays.
	Dir string
}

// Cluster is a running control plane.
type Cluster struct {
	dir        string
	temporary  bool // dir goes when the cluster does
	kubeconfig string
	config     *rest.Config
	client     kubernetes.Interface
	dynamic    dynamic.Interface

	etcd      *Process
	apiserver *Process
	clients   []*Process // controller-manager, scheduler, KWOK

	mu      sync.Mutex
	others  []*Process // started by Run
	nodes   int        // how many nodes AddNodes has named
	stopped bool

	broken     chan struct{} // closed when a program of the control plane ends on its own
	breakOnce  sync.Once
	brokenName string
}

// Start runs a control plane for a test and stops it at the test's Cleanup. A test that failed gets the end of every
// log and keeps the folder. A program of the control plane that ends on its own during the test fails it. Where the
// programs must be built first, it says so at once (see progress), not at the end of the test.
func Start(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	if runtime.GOOS != "linux" {
		tb.Skip("a control plane for tests runs on Linux only")
	}
	if err := ensure(tb.Context(), liveProgress(), programNames(o)...); err != nil {
		tb.Fatal(err)
	}
	c, err := Up(tb.Context(), o, testLog{tb})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Err(); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			c.temporary = false
			for _, p := range c.processes() {
				tb.Logf("%s ends:\n%s", p.Log(), tail(p.Log(), tailLines))
			}
			tb.Logf("logs and data are kept in %s", c.dir)
		}
		if err := c.Down(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Up runs a control plane until Down. The context bounds the start alone. Progress says what is built and when which
// program was ready. On an error everything that was started is stopped again and the logs stay; the error says where.
func Up(ctx context.Context, o Options, progress io.Writer) (*Cluster, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("a control plane for tests runs on Linux only")
	}
	if err := ensure(ctx, progress, programNames(o)...); err != nil {
		return nil, err
	}
	// A port that was free when it was chosen can be taken by the time it is listened on.
	const attempts = 3
	for attempt := 1; ; attempt++ {
		c, err := up(ctx, o, progress)
		if err == nil {
			return c, nil
		}
		if attempt == attempts || !errors.Is(err, errPortTaken) {
			return nil, err
		}
		say(progress, "starting again on other ports: %v", err)
	}
}

// At is a control plane that somebody else runs, with a folder in which Run keeps logs. Down stops what Run started.
func At(dir, kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for logs: %w", err)
	}
	c := &Cluster{dir: dir, kubeconfig: kubeconfig, broken: make(chan struct{})}
	return c, c.makeClients(config)
}

// up is one attempt of Up.
func up(ctx context.Context, o Options, progress io.Writer) (_ *Cluster, err error) {
	c := &Cluster{dir: o.Dir, temporary: o.Dir == "", broken: make(chan struct{})}
	if c.temporary {
		if c.dir, err = os.MkdirTemp("", "tegen-cluster-"); err != nil {
			return nil, fmt.Errorf("making a folder for the cluster: %w", err)
		}
	}
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return nil, fmt.Errorf("naming the cluster's folder: %w", err)
	}
	for _, sub := range []string{"logs", "certs"} {
		if err := os.MkdirAll(filepath.Join(c.dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("making a folder for the cluster: %w", err)
		}
	}
	if err := c.start(ctx, o, progress); err != nil {
		// What a failed start leaves is what explains it, unless it is about to be tried again.
		c.temporary = c.temporary && errors.Is(err, errPortTaken)
		if down := c.Down(); down != nil {
			err = fmt.Errorf("%w; then %w", err, down)
		}
		return nil, fmt.Errorf("starting a control plane in %s: %w", c.dir, err)
	}
	return c, nil
}

// Down stops everything by process id and returns when all of it has ended: what Run started, then the clients of the
// apiserver, then the apiserver, which hangs where etcd goes before it, then etcd. Each gets some seconds to end before
// it is killed. A temporary folder is removed. Further calls do nothing.
func (c *Cluster) Down() error {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.stopped = true
	others := slices.Clone(c.others)
	c.mu.Unlock()

	err := errors.Join(stopAll(others), stopAll(c.clients), c.apiserver.Stop(), c.etcd.Stop())
	if err == nil && c.temporary {
		err = os.RemoveAll(c.dir)
	}
	if err != nil {
		return fmt.Errorf("stopping the control plane in %s: %w", c.dir, err)
	}
	return nil
}

// Kubeconfig is the path of a kubeconfig of a cluster admin.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// Config is a cluster admin's, without a rate limit on the side of the client. Every call returns a copy.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Client speaks to the APIs that Kubernetes comes with.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Dynamic speaks to every API.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Dir is the folder of logs (logs/<program>.log), kubeconfig and data.
func (c *Cluster) Dir() string { return c.dir }

// Broken is closed when a program of the control plane ends on its own; Err then says which.
func (c *Cluster) Broken() <-chan struct{} { return c.broken }

// Err is an error where a program of the control plane has ended on its own.
func (c *Cluster) Err() error {
	select {
	case <-c.broken:
		log := c.logPath(c.brokenName)
		return fmt.Errorf("%s ended on its own; %s ends:\n%s", c.brokenName, log, tail(log, tailLines))
	default:
		return nil
	}
}

// processes are all programs, in the order of their start.
func (c *Cluster) processes() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := append([]*Process{c.etcd, c.apiserver}, c.clients...)
	return slices.DeleteFunc(append(all, c.others...), func(p *Process) bool { return p == nil })
}

func (c *Cluster) logPath(name string) string { return filepath.Join(c.dir, "logs", name+".log") }

// testLog is a test's log as a writer of lines.
type testLog struct{ tb testing.TB }

func (l testLog) Write(text []byte) (int, error) {
	l.tb.Helper()
	l.tb.Logf("%s", text)
	return len(text), nil
}
