package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/test/node/image"
)

// kindEnv names a kind cluster to use in place of a lab; KUBECONFIG is its admin's. test/node/kind.sh makes one.
const kindEnv = "TEGEN_NODE_KIND"

// kindCluster is a kind cluster with further nodes, which nothing is placed on until somebody asks for one.
type kindCluster struct {
	name    string
	address string

	mu      sync.Mutex
	nodes   []string // those that run
	spare   []string // those of them that nobody has asked for
	aliases []string
}

// workerImage is what kind.sh has built; all but those of this repository can be pulled.
const workerImage = "tegen-test-worker:1"

// newKind prepares a kind cluster: further nodes are cordoned, and hosts of its docker network are looked up.
func newKind(ctx context.Context, name string) (*kindCluster, error) {
	k := &kindCluster{name: name}
	out, err := output(ctx, "docker", "network", "inspect", "kind", "--format",
		"{{range .IPAM.Config}}{{.Gateway}} {{end}}")
	if err != nil {
		return nil, err
	}
	if k.address, err = firstIPv4(out); err != nil {
		return nil, err
	}
	nodes, err := output(ctx, "kind", "get", "nodes", "--name", name)
	if err != nil {
		return nil, err
	}
	for node := range strings.FieldsSeq(nodes) {
		k.nodes = append(k.nodes, node)
		if strings.Contains(node, "worker") {
			if _, err := output(ctx, "kubectl", "cordon", node); err != nil {
				return nil, err
			}
			k.spare = append(k.spare, node)
		}
	}
	return k, nil
}

func (k *kindCluster) Kubeconfig() string { return os.Getenv("KUBECONFIG") }

func (k *kindCluster) Kubectl() string { return "kubectl" }

func (k *kindCluster) Address() string { return k.address }

// Provide loads the images that no registry has; the kubelets pull the others. Those of this repository are on the
// nodes, as their archives brought them, and get a further name.
func (k *kindCluster) Provide(ctx context.Context, names ...string) error {
	for _, name := range names {
		if of := image.For(name); slices.Contains([]string{image.Rendezvous, image.Scheduler}, of) {
			if err := k.tag(ctx, "docker.io/library/"+of+":latest", name); err != nil {
				return err
			}
			continue
		}
		from := kindImage(name)
		if from == "" {
			continue
		}
		if _, err := output(ctx, "docker", "tag", from, name); err != nil {
			return err
		}
		k.mu.Lock()
		nodes := strings.Join(k.nodes, ",")
		k.mu.Unlock()
		if _, err := output(ctx, "kind", "load", "docker-image", "--name", k.name, "--nodes", nodes, name); err != nil {
			return err
		}
	}
	return nil
}

// tag gives an image that the nodes have a further name, as the kubelet asks for it.
func (k *kindCluster) tag(ctx context.Context, from, name string) error {
	full, err := reference.ParseDockerRef(name)
	if err != nil {
		return fmt.Errorf("naming an image %q: %w", name, err)
	}
	k.mu.Lock()
	nodes := slices.Clone(k.nodes)
	k.mu.Unlock()
	for _, node := range nodes {
		if _, err := output(ctx, "docker", "exec", node, "ctr", "--namespace=k8s.io", "images", "tag", "--force", from,
			full.String()); err != nil {
			return err
		}
	}
	return nil
}

// kindImage is the image of docker that stands for one of a bundle; none for one that can be pulled.
func kindImage(name string) string {
	if image.For(name) != image.Worker || strings.Contains(name, "curlimages/") {
		return ""
	}
	return workerImage
}

// AddNode lets pods onto one of the nodes that the cluster was made with.
func (k *kindCluster) AddNode(ctx context.Context, labels map[string]string, taints []corev1.Taint) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.spare) == 0 {
		return "", errors.New("adding a node: the kind cluster has no more")
	}
	node := k.spare[0]
	k.spare = k.spare[1:]
	for key, value := range labels {
		if _, err := output(ctx, "kubectl", "label", "node", node, key+"="+value); err != nil {
			return "", err
		}
	}
	for i := range taints {
		if _, err := output(ctx, "kubectl", "taint", "node", node, taints[i].ToString()); err != nil {
			return "", err
		}
	}
	if _, err := output(ctx, "kubectl", "uncordon", node); err != nil {
		return "", err
	}
	// A controller lifts the taint that a cordoned node has.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(poll) {
		keys, err := output(ctx, "kubectl", "get", "node", node, "--output=jsonpath={.spec.taints[*].key}")
		if err == nil && !strings.Contains(keys, corev1.TaintNodeUnschedulable) {
			return node, nil
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("adding a node: %s still has the taints %q: %w", node, keys, err)
		}
	}
}

// CutOff kills the container that is the node.
func (k *kindCluster) CutOff(ctx context.Context, name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nodes = slices.DeleteFunc(k.nodes, func(node string) bool { return node == name })
	_, err := output(ctx, "docker", "kill", name)
	return err
}

// Alias puts a host into the configuration of the cluster's CoreDNS.
func (k *kindCluster) Alias(ctx context.Context, host string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.aliases = append(k.aliases, host)
	config, err := output(ctx, "kubectl", "--namespace=kube-system", "get", "configmap", "coredns",
		"--output=jsonpath={.data.Corefile}")
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"data":{"Corefile":%q}}`, withHosts(config, k.address, k.aliases))
	if _, err := output(ctx, "kubectl", "--namespace=kube-system", "patch", "configmap", "coredns", "--patch",
		patch); err != nil {
		return err
	}
	if _, err := output(ctx, "kubectl", "--namespace=kube-system", "rollout", "restart",
		"deployment", "coredns"); err != nil {
		return err
	}
	_, err = output(ctx, "kubectl", "--namespace=kube-system", "rollout", "status", "deployment", "coredns",
		"--timeout=2m")
	return err
}

const hostsBlock = "    hosts {\n"

// withHosts is a Corefile whose server resolves hosts to an address, in place of those that an earlier call put there.
func withHosts(config, address string, hosts []string) string {
	if before, rest, ok := strings.Cut(config, hostsBlock); ok {
		_, after, _ := strings.Cut(rest, "    }\n")
		config = before + after
	}
	block := hostsBlock
	for _, host := range hosts {
		block += "        " + address + " " + host + "\n"
	}
	block += "        fallthrough\n    }\n"
	first, rest, _ := strings.Cut(config, "\n")
	return first + "\n" + block + rest
}

// firstIPv4 is the first IPv4 address of a list.
func firstIPv4(list string) (string, error) {
	for field := range strings.FieldsSeq(list) {
		if ip := net.ParseIP(field); ip != nil && ip.To4() != nil {
			return field, nil
		}
	}
	return "", fmt.Errorf("looking for the address of kind's network: no IPv4 gateway in %q", list)
}

// output runs a program and returns what it prints.
func output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var words strings.Builder
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w: %s", program, strings.Join(args, " "), err, &words)
	}
	return strings.TrimSpace(string(out)), nil
}

func TestWithHosts(t *testing.T) {
	t.Parallel()
	const config = ".:53 {\n    errors\n    ready\n}\n"
	once := withHosts(config, "172.18.0.1", []string{"a.example"})
	want := ".:53 {\n    hosts {\n        172.18.0.1 a.example\n        fallthrough\n    }\n    errors\n    ready\n}\n"
	if once != want {
		t.Errorf("got:\n%s\nwant:\n%s", once, want)
	}
	twice := withHosts(once, "172.18.0.1", []string{"a.example", "b.example"})
	want = strings.Replace(want, "a.example\n", "a.example\n        172.18.0.1 b.example\n", 1)
	if twice != want {
		t.Errorf("got:\n%s\nwant:\n%s", twice, want)
	}
}

func TestKindImage(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"ghcr.io/acme/resnet:1.4.0":                 workerImage,
		"docker.io/curlimages/curl:8.11.1":          "",
		"quay.io/coreos/etcd:v3.5.21":               "",
		"registry.k8s.io/kubectl:v1.36.3":           "",
		"torchelastic/examples:0.1.0rc1":            workerImage,
		"registry.example:5000/team/train@sha256:0": workerImage,
	} {
		if got := kindImage(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestFirstIPv4(t *testing.T) {
	t.Parallel()
	if got, err := firstIPv4("fc00:f853:ccd:e793::1 172.18.0.1 "); got != "172.18.0.1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := firstIPv4("fc00::1 <no value>"); err == nil {
		t.Errorf("got %q of a network without IPv4", got)
	}
}
