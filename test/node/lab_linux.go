package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tegen-dev/tegen/test/cluster"
)

// nodeName is the name of the i-th node, counted from 1. Every lab has the first.
func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

const (
	// startTimeout is for one part of the lab: a multiple of what it takes on a machine that compiles meanwhile.
	startTimeout = 3 * time.Minute
	// commandGrace is how long the command may take to end on a signal, its cleanups included.
	commandGrace = time.Minute
	pollInterval = 100 * time.Millisecond
	// interrupted is the exit status of a program that ^C ended.
	interrupted = 130
)

// lab is a running one, from inside.
type lab struct {
	spec     Spec
	cluster  *cluster.Cluster
	progress io.Writer

	mu      sync.Mutex
	nodes   []*node
	aliases []string

	watched []*cluster.Process // beside the control plane's own

	naming   sync.Mutex // of images
	provided []string   // names that images have on every node
}

// Inside is what runs in the namespaces that Run made. It returns the status to exit with, and everything else of the
// lab ends when its process does.
func Inside(ctx context.Context, file string, progress io.Writer) (status int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("starting a lab: %w", err)
	}
	l := &lab{progress: progress}
	if err := json.Unmarshal(text, &l.spec); err != nil {
		return 0, fmt.Errorf("starting a lab: %w", err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := errors.Join(ownMounts(), setUpNetwork()); err != nil {
		return 0, err
	}
	defer func() {
		if ctx.Err() != nil {
			status, err = interrupted, nil // what failed, failed for that
		}
	}()
	begin := time.Now()
	l.cluster, err = cluster.Up(ctx, cluster.Options{
		Address: bridgeAddress,
		Dir:     filepath.Join(l.spec.Dir, "control-plane"),
	}, progress)
	if err != nil {
		return 0, err
	}
	running, end := context.WithCancel(ctx)
	defer func() { end(); err = errors.Join(err, l.cluster.Down()) }()
	if err := l.start(running); err != nil {
		return 0, err
	}
	_, _ = fmt.Fprintf(progress, "the lab is ready after %.1f s\n", time.Since(begin).Seconds())
	return l.run(ctx)
}

// start brings up what a control plane alone lacks.
func (l *lab) start(ctx context.Context) error {
	if err := l.startDNS(ctx); err != nil {
		return err
	}
	if err := l.startProxy(ctx); err != nil {
		return err
	}
	if _, err := l.addNode(ctx); err != nil {
		return err
	}
	if err := l.cluster.StartStorage(ctx, filepath.Join(l.spec.Dir, "volumes"), l.progress); err != nil {
		return err
	}
	about, err := json.Marshal(info{l.cluster.Kubeconfig(), l.spec.Programs[cluster.Kubectl], bridgeAddress})
	if err != nil {
		return fmt.Errorf("saying where the lab is: %w", err)
	}
	if err := os.WriteFile(filepath.Join(l.spec.Dir, infoFile), about, 0o600); err != nil {
		return fmt.Errorf("saying where the lab is: %w", err)
	}
	return l.serve(ctx)
}

// run runs the command, or waits for an interrupt where there is none.
func (l *lab) run(ctx context.Context) (int, error) {
	if len(l.spec.Command) == 0 {
		_, _ = fmt.Fprintf(l.progress, "press ^C to stop; elsewhere, as root:\n"+
			"  nsenter --net=/proc/$(cat %[1]s)/ns/net env %[2]s=%[3]s KUBECONFIG=%[4]s PATH=%[5]s:$PATH bash\n",
			filepath.Join(l.spec.Dir, "pid"), LabEnv, l.spec.Dir, l.cluster.Kubeconfig(),
			filepath.Dir(l.spec.Programs[cluster.Kubectl]))
		select {
		case <-ctx.Done():
			return interrupted, nil
		case <-l.cluster.Broken():
			return 0, l.cluster.Err()
		}
	}
	cmd := exec.CommandContext(ctx, l.spec.Command[0], l.spec.Command[1:]...)
	cmd.Env = append(os.Environ(), LabEnv+"="+l.spec.Dir, "KUBECONFIG="+l.cluster.Kubeconfig())
	if cmd.Err != nil { // kubectl need not be on the machine's own PATH
		cmd.Path, cmd.Err = filepath.Join(filepath.Dir(l.spec.Programs[cluster.Kubectl]), cmd.Args[0]), nil
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = commandGrace
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("running %s in the lab: %w", l.spec.Command[0], err)
	}
	for _, p := range l.watched {
		select {
		case <-p.Done():
			return 0, fmt.Errorf("a program of the lab ended on its own; its log is %s", p.Log())
		default:
		}
	}
	return 0, l.cluster.Err()
}

// startDNS starts CoreDNS beside the nodes.
func (l *lab) startDNS(ctx context.Context) error {
	hosts, config := filepath.Join(l.spec.Dir, "hosts"), filepath.Join(l.spec.Dir, "Corefile")
	if err := os.WriteFile(hosts, nil, 0o644); err != nil {
		return fmt.Errorf("starting CoreDNS: %w", err)
	}
	text := fmt.Sprintf(corefile, bridgeAddress, hosts, l.cluster.Kubeconfig())
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return fmt.Errorf("starting CoreDNS: %w", err)
	}
	p, err := l.cluster.Run(ctx, "coredns", l.spec.Programs[cluster.CoreDNS], "-conf", config)
	if err != nil {
		return err
	}
	l.watched = append(l.watched, p)
	return await(ctx, "CoreDNS (its log is "+p.Log()+")", p.Done(), func() error {
		connection, err := net.DialTimeout("tcp", net.JoinHostPort(bridgeAddress, "53"), time.Second)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

func (l *lab) startProxy(ctx context.Context) error {
	config := filepath.Join(l.spec.Dir, "kube-proxy.yaml")
	text := fmt.Sprintf(proxyConfig, nodeName(1), l.cluster.Kubeconfig())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("starting kube-proxy: %w", err)
	}
	p, err := l.cluster.Run(ctx, cluster.KubeProxy, l.spec.Programs[cluster.KubeProxy], "--config="+config)
	if err != nil {
		return err
	}
	l.watched = append(l.watched, p)
	return await(ctx, "kube-proxy (its log is "+p.Log()+")", p.Done(), func() error {
		connection, err := net.DialTimeout("tcp", proxyHealth, time.Second)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// alias makes DNS resolve one more name to the bridge.
func (l *lab) alias(host string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.aliases, host) {
		return nil
	}
	var text []byte
	for _, host := range append(l.aliases, host) {
		text = fmt.Appendf(text, "%s %s\n", bridgeAddress, host)
	}
	// Whoever reads the file reads all of it.
	file := filepath.Join(l.spec.Dir, "hosts")
	if err := errors.Join(os.WriteFile(file+".new", text, 0o644), os.Rename(file+".new", file)); err != nil {
		return fmt.Errorf("adding a name to DNS: %w", err)
	}
	l.aliases = append(l.aliases, host)
	return nil
}

// await polls until a probe succeeds, the time is up, or what is waited for has ended.
func await(ctx context.Context, what string, ended <-chan struct{}, probe func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not done within %v", startTimeout))
	defer cancel()
	for {
		err := probe()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: %w", what, context.Cause(ctx), err)
		case <-ended:
			return fmt.Errorf("waiting for %s: it ended: %w", what, err)
		case <-time.After(pollInterval):
		}
	}
}
