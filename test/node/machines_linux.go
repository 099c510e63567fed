package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/test/cluster"
	"github.com/tegen-dev/tegen/test/node/image"
)

// pauseImage holds a pod's namespaces.
var pauseImage = image.Reference("pause")

// node is one node of a lab.
type node struct {
	name       string
	index      int // counted from 1
	dir        string
	cgroup     string
	kubeconfig string
	process    *os.Process   // the first one; nil before it starts
	done       chan struct{} // closed when its first process has ended
	up         bool          // its images can be named; see lab.naming
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

func (n *node) socket() string { return n.path("c.sock") }

// addNode starts a node, with further flags of its kubelet, waits until pods can be placed there and returns its name.
func (l *lab) addNode(ctx context.Context, flags ...string) (string, error) {
	n, err := l.newNode()
	if err != nil {
		return "", err
	}
	if err := l.prepare(n, flags); err != nil {
		close(n.done) // it never ran
		return "", err
	}
	err = await(ctx, n.name, n.done, func() error {
		node, err := l.cluster.Client().CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return ready(node)
	})
	if err != nil {
		_ = n.process.Kill() // nobody learns its name; it may have ended
		return "", fmt.Errorf("%w; %s", err, n.logs())
	}
	l.naming.Lock()
	defer l.naming.Unlock()
	n.up = true
	return n.name, n.tag(ctx, l.provided, l.spec.Shipped)
}

// prepare makes what a node needs and starts it.
func (l *lab) prepare(n *node, flags []string) error {
	now := time.Now()
	_ = os.Chtimes(l.spec.Template, now, now) // it is in use, see removeUnused
	if err := errors.Join(makeCgroup(n.cgroup), n.writeConfig(l.cluster.Kubeconfig())); err != nil {
		return err
	}
	if err := link(l.spec.Template, n.path("containerd")); err != nil {
		return err
	}
	return l.boot(n, flags)
}

func (l *lab) newNode() (*node, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := len(l.nodes) + 1
	if err := ip("addr replace " + nodeAddress(i) + prefix + " dev " + bridge); err != nil {
		return nil, err
	}
	n := &node{
		name: nodeName(i), index: i, done: make(chan struct{}),
		dir: filepath.Join(l.spec.Dir, fmt.Sprint("n", i)), cgroup: fmt.Sprintf("%s/n%d", l.spec.Cgroup, i),
	}
	l.nodes = append(l.nodes, n)
	return n, nil
}

// boot starts the node's first process.
func (l *lab) boot(n *node, flags []string) error {
	var imports []string
	for _, a := range l.spec.Shipped {
		imports = append(imports, a.File)
	}
	text, err := json.Marshal(machine{
		Dir: n.dir, Socket: n.socket(), Imports: imports,
		Kubelet: append([]string{
			l.spec.Programs[cluster.Kubelet], "--config=" + n.path("kubelet.yaml"), "--kubeconfig=" + n.kubeconfig,
			"--hostname-override=" + n.name, "--node-ip=" + nodeAddress(n.index), "--v=2",
		}, flags...),
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", n.name, err)
	}
	file := n.path("machine.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("starting %s: %w", n.name, err)
	}
	log, err := os.Create(n.path("init.log"))
	if err != nil {
		return fmt.Errorf("starting %s: %w", n.name, err)
	}
	cmd := isolated(exec.Command("/proc/self/exe", NodeArg, file), 0)
	cmd.Stdout, cmd.Stderr = log, log
	started, ended := make(chan error, 1), make(chan error, 1)
	go startAndWait(cmd, started, ended)
	if err := <-started; err != nil {
		return errors.Join(fmt.Errorf("starting %s: %w", n.name, err), log.Close())
	}
	n.process = cmd.Process
	go func() {
		if err := <-ended; err != nil {
			_, _ = fmt.Fprintln(log, err)
		}
		_ = log.Close()
		close(n.done)
	}()
	return nil
}

func (n *node) alive() bool {
	select {
	case <-n.done:
		return false
	default:
		return true
	}
}

// outlives says whether the node still runs after a while: what fails on one that was cut off is of no matter.
func (n *node) outlives(d time.Duration) bool {
	select {
	case <-n.done:
		return false
	case <-time.After(d):
		return true
	}
}

// cutOff takes the node's pods from the network and kills its first process, and the kernel everything else on it.
func (l *lab) cutOff(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.nodes {
		if n.name != name || !n.up || !n.alive() {
			continue
		}
		if err := silence(n.index); err != nil {
			return fmt.Errorf("cutting off %s: %w", name, err)
		}
		if err := n.process.Kill(); err != nil {
			return fmt.Errorf("cutting off %s: %w", name, err)
		}
		<-n.done
		return nil
	}
	return fmt.Errorf("cutting off %s: no such node runs", name)
}

// provide gives images further names, on the nodes that run and on those to come. Whoever asks for a name that somebody
// else has asked for waits until it is there.
func (l *lab) provide(ctx context.Context, names []string) error {
	l.naming.Lock()
	defer l.naming.Unlock()
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(l.provided, name) })
	l.mu.Lock()
	nodes := slices.Clone(l.nodes)
	l.mu.Unlock()
	for _, n := range nodes {
		if n.up && n.alive() {
			if err := n.tag(ctx, names, l.spec.Shipped); err != nil && n.outlives(time.Second) {
				return err
			}
		}
	}
	l.provided = append(l.provided, names...)
	return nil
}

// tag gives images further names on one node.
func (n *node) tag(ctx context.Context, names []string, shipped []image.Archive) error {
	for _, name := range names {
		full, err := reference.ParseDockerRef(name) // as the kubelet and its runtime read it
		if err != nil {
			return fmt.Errorf("naming an image %q: %w", name, err)
		}
		from := image.Reference(image.For(name))
		if i := slices.IndexFunc(shipped, func(a image.Archive) bool { return a.Image == image.For(name) }); i >= 0 {
			if slices.Contains(shipped[i].Names, full.String()) {
				continue // it came with this one
			}
			from = shipped[i].Names[0]
		}
		out, err := exec.CommandContext(ctx, "ctr", "--address", n.socket(), "--namespace", "k8s.io",
			"images", "tag", "--force", from, full.String()).CombinedOutput()
		if err != nil {
			return fmt.Errorf("naming an image %q on %s: %w: %s", name, n.name, err, out)
		}
	}
	return nil
}

// logs says where a node's logs are, and how its first process ended where it has.
func (n *node) logs() string {
	text, err := os.ReadFile(n.path("init.log"))
	if err != nil {
		text = []byte(err.Error())
	}
	return fmt.Sprintf("logs are in %s: %s", n.dir, strings.TrimSpace(string(text)))
}

// ready is an error where a node takes no pods yet.
func ready(node *corev1.Node) error {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("it is not ready: %s", condition.Message)
		}
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return errors.New("it is tainted as not ready")
		}
	}
	return nil
}
