// Package cluster starts the control plane of the repository's tests, and the programs and nodes that a test adds to
// it. It runs test/cluster/cmd/up as a program and imports nothing of it: the scheduler is a module of its own. Outside
// of a checkout of the whole repository there is no control plane to start.
package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// up is the command that starts the control plane, below the root of the repository.
const up = "test/cluster/cmd/up"

// upGrace is how long up may take to stop its programs one after the other.
const upGrace = 30 * time.Second

const pollInterval = 25 * time.Millisecond

// Cluster is a running control plane.
type Cluster struct {
	dir        string
	temporary  bool
	kubeconfig string
	config     *rest.Config
	client     kubernetes.Interface
	dynamic    dynamic.Interface

	mu     sync.Mutex
	up     *Process
	others []*Process // started by Run
	nodes  int        // number of nodes that AddNodes has named
}

// Start runs a control plane without nodes and without a scheduler for a test, and stops it at the test's Cleanup. args
// are further flags of up.
func Start(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	c, err := Up(tb.Context(), os.Stderr, args...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Err(); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			c.temporary = false
			tb.Logf("logs and data are kept in %s", c.dir)
		}
		if err := c.Down(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Up does the same until Down. The context bounds the start alone. Progress gets what up reports.
func Up(ctx context.Context, progress io.Writer, args ...string) (*Cluster, error) {
	root, err := Root("tegen")
	if err != nil {
		return nil, err
	}
	program, err := Build(ctx, "tegen", up)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tegen-scheduler-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the control plane: %w", err)
	}
	c, err := At(dir, "")
	if err != nil {
		return nil, err
	}
	c.temporary = true
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	args = append([]string{"--dir", filepath.Join(dir, "up"), "--nodes", "0", "--no-scheduler"}, args...)
	c.up, err = startProcess("up", c.logPath("up"), program, args, func(cmd *exec.Cmd) {
		cmd.Dir, cmd.Stdout, cmd.Stderr = root, in, io.MultiWriter(cmd.Stderr, progress)
	})
	if err := errors.Join(err, in.Close()); err != nil {
		return nil, err
	}
	c.up.grace = upGrace
	if c.kubeconfig, err = readKubeconfig(ctx, out); err == nil {
		err = c.connect()
	}
	if err != nil {
		err = fmt.Errorf("starting the control plane: %w; %s ends:\n%s", err, c.logPath("up"), tail(c.logPath("up")))
		return nil, errors.Join(err, c.up.Stop())
	}
	return c, nil
}

// readKubeconfig waits for the line in which up prints the path, once everything is ready.
func readKubeconfig(ctx context.Context, out io.ReadCloser) (path string, err error) {
	found := make(chan string, 1)
	go func() {
		defer out.Close()
		defer close(found)
		for lines := bufio.NewScanner(out); lines.Scan(); { // until up ends, which must not wait for a reader
			if path, ok := strings.CutPrefix(lines.Text(), "export KUBECONFIG="); ok {
				found <- path
			}
		}
	}()
	select {
	case path, ok := <-found:
		if !ok {
			return "", errors.New("up has ended")
		}
		return path, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// At connects to a control plane that something else runs. The folder gets the logs of what Run starts.
func At(dir, kubeconfig string) (*Cluster, error) {
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("creating a folder for logs: %w", err)
	}
	c := &Cluster{dir: dir, kubeconfig: kubeconfig}
	if kubeconfig == "" {
		return c, nil
	}
	return c, c.connect()
}

func (c *Cluster) connect() (err error) {
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c.config.QPS, c.config.Burst, c.config.UserAgent = -1, -1, "tegen-test"
	typed := rest.CopyConfig(c.config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	if c.client, err = kubernetes.NewForConfig(typed); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(c.config); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return nil
}

// Down stops what Run started, then the control plane. A temporary folder is removed.
func (c *Cluster) Down() error {
	c.mu.Lock()
	others := slices.Clone(c.others)
	c.mu.Unlock()
	var errs []error
	for _, p := range others {
		errs = append(errs, p.Stop())
	}
	err := errors.Join(append(errs, c.up.Stop())...)
	if err == nil && c.temporary {
		err = os.RemoveAll(c.dir)
	}
	if err != nil {
		return fmt.Errorf("stopping the control plane in %s: %w", c.dir, err)
	}
	return nil
}

// Err returns an error if the control plane has ended by itself.
func (c *Cluster) Err() error {
	if c.up == nil || c.up.alive() {
		return nil
	}
	return fmt.Errorf("the control plane has ended; %s ends:\n%s", c.up.log, tail(c.up.log))
}

// Kubeconfig is the path of a cluster admin's.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// Config is a cluster admin's, without a rate limit in the client. Each call returns a copy.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Client is a client of Kubernetes' own APIs.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Dynamic is a client of any API.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Dir is the folder for the files of tests; logs of programs are in its folder logs, those of the control plane in
// up/logs.
func (c *Cluster) Dir() string { return c.dir }

func (c *Cluster) logPath(name string) string { return filepath.Join(c.dir, "logs", name+".log") }

// Pid is the process ID of a program of the control plane, such as "kwok".
func (c *Cluster) Pid(name string) (int, error) {
	text, err := os.ReadFile(filepath.Join(c.dir, "up", "logs", name+".pid"))
	if err != nil {
		return 0, fmt.Errorf("reading the process ID of %s: %w", name, err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		return 0, fmt.Errorf("reading the process ID of %s: %w", name, err)
	}
	return pid, nil
}

// Signal sends a signal to a program of the control plane.
func (c *Cluster) Signal(name string, s syscall.Signal) error {
	pid, err := c.Pid(name)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, s); err != nil {
		return fmt.Errorf("sending %v to %s (process %d): %w", s, name, pid, err)
	}
	return nil
}

// Define creates CustomResourceDefinitions and waits until they are served.
func (c *Cluster) Define(ctx context.Context, crds ...*unstructured.Unstructured) error {
	definitions := c.dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	for _, crd := range crds {
		if _, err := definitions.Create(ctx, crd, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("defining %s: %w", crd.GetName(), err)
		}
	}
	for _, crd := range crds {
		served := func(ctx context.Context) (bool, error) {
			got, err := definitions.Get(ctx, crd.GetName(), metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			conditions, _, err := unstructured.NestedSlice(got.Object, "status", "conditions")
			return slices.ContainsFunc(conditions, func(c any) bool {
				condition, _ := c.(map[string]any)
				return condition["type"] == "Established" && condition["status"] == "True"
			}), err
		}
		if err := wait.PollUntilContextTimeout(ctx, pollInterval, time.Minute, true, served); err != nil {
			return fmt.Errorf("waiting for %s: %w", crd.GetName(), err)
		}
	}
	return nil
}

// FreePort returns a port of 127.0.0.1 on which nothing listens. It is below those that the system gives to outgoing
// connections, so that none of them takes it before the program under test does.
func FreePort() (int, error) {
	for range 100 {
		port := 12000 + rand.IntN(18000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("looking for a free port: none of 100 from 12000 to 29999 is")
}

// Program returns the path of a program of the control plane, which up builds first if needed.
func Program(ctx context.Context, progress io.Writer, name string) (string, error) {
	program, err := Build(ctx, "tegen", up)
	if err != nil {
		return "", err
	}
	root, err := Root("tegen")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, "--build", name)
	cmd.Dir, cmd.Stderr = root, progress
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	return string(bytes.TrimSpace(out)), nil
}
