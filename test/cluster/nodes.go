package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GPU is the extended resource that Nodes gives to nodes.
const GPU corev1.ResourceName = "nvidia.com/gpu"

// OutcomeAnnotation ends a running pod on a node that KWOK plays: as Succeeded with the value OutcomeSucceeded, as
// Failed, exit code 1, with OutcomeFailed. It may be set on a running pod or stand in its template. Without it a pod
// runs until it is deleted, the pods of Jobs included.
const (
	OutcomeAnnotation = "tegen.dev/test-outcome"
	OutcomeSucceeded  = "succeeded"
	OutcomeFailed     = "failed"
)

const (
	// nodesTimeout is for one call: a thousand nodes take some seconds.
	nodesTimeout = 3 * time.Minute
	// nodeWriters is how many nodes are made at a time.
	nodeWriters = 16
)

// NodeOptions describe nodes that are all alike.
type NodeOptions struct {
	Count  int
	Prefix string              // of their names, "node" by default
	GPUs   int                 // nvidia.com/gpu of each node
	CPU    string              // a quantity, "96" by default
	Memory string              // a quantity, "1024Gi" by default
	Pods   int                 // how many pods fit on a node, 110 by default
	Labels map[string]string   // besides kubernetes.io/hostname, os and arch
	Taints []corev1.Taint      // they stay on the node, and AddNodes does not wait for them to go
	Other  corev1.ResourceList // further resources
}

// Nodes adds n nodes with a number of nvidia.com/gpu each and returns their names, as AddNodes does.
func (c *Cluster) Nodes(ctx context.Context, n, gpus int) ([]string, error) {
	return c.AddNodes(ctx, NodeOptions{Count: n, GPUs: gpus})
}

// AddNodes adds nodes, which KWOK plays, and returns their names when all are Ready and pods can be placed there. The
// names are <prefix>-0, <prefix>-1 and so on; later calls go on counting.
func (c *Cluster) AddNodes(ctx context.Context, o NodeOptions) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, nodesTimeout, fmt.Errorf("not done within %v", nodesTimeout))
	defer cancel()
	c.mu.Lock()
	first := c.nodes
	c.nodes += o.Count
	c.mu.Unlock()

	var nodes []*corev1.Node
	var names []string
	for i := range o.Count {
		node, err := o.node(first + i)
		if err != nil {
			return nil, err
		}
		nodes, names = append(nodes, node), append(names, node.Name)
	}
	if err := c.createNodes(ctx, nodes); err != nil {
		return nil, err
	}
	return names, c.awaitNodes(ctx, nodes)
}

// node is the i-th node of a cluster.
func (o NodeOptions) node(i int) (*corev1.Node, error) {
	name := fmt.Sprintf("%s-%d", or(o.Prefix, "node"), i)
	resources := corev1.ResourceList{}
	maps.Copy(resources, o.Other)
	for key, quantity := range map[corev1.ResourceName]string{
		corev1.ResourceCPU:    or(o.CPU, "96"),
		corev1.ResourceMemory: or(o.Memory, "1024Gi"),
	} {
		q, err := resource.ParseQuantity(quantity)
		if err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", key, name, err)
		}
		resources[key] = q
	}
	resources[corev1.ResourcePods] = *resource.NewQuantity(int64(or(o.Pods, 110)), resource.DecimalSI)
	if o.GPUs > 0 {
		resources[GPU] = *resource.NewQuantity(int64(o.GPUs), resource.DecimalSI)
	}
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		// The controller-manager would add these.
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
	}
	maps.Copy(labels, o.Labels)
	now := metav1.Now()
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels,
			// Ours plays all nodes, KWOK's own installation in a cluster those with this.
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec: corev1.NodeSpec{Taints: o.Taints},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources,
			// As KWOK would say a moment later, at the price of a write for every node.
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "played by KWOK",
				LastHeartbeatTime: now, LastTransitionTime: now,
			}},
			NodeInfo: corev1.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux", KubeletVersion: "kwok"},
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: name},
				{Type: corev1.NodeInternalIP, Address: nodeIP(i)},
			},
		},
	}, nil
}

// nodeIP is the address of the i-th node. Not a loopback address: a pod on the host's network has its node's, and
// endpoints must not have such a one.
func nodeIP(i int) string { return fmt.Sprintf("172.20.%d.%d", (i+1)>>8&0xff, (i+1)&0xff) }

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

func (c *Cluster) createNodes(ctx context.Context, nodes []*corev1.Node) error {
	todo := make(chan *corev1.Node, len(nodes))
	for _, node := range nodes {
		todo <- node
	}
	close(todo)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for range min(nodeWriters, len(nodes)) {
		wg.Go(func() {
			for node := range todo {
				if _, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
					mu.Lock()
					errs = append(errs, fmt.Errorf("making node %s: %w", node.Name, err))
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// awaitNodes waits until the apiserver's memory, which the scheduler sees too, has the nodes, Ready and without a taint
// that says otherwise.
func (c *Cluster) awaitNodes(ctx context.Context, nodes []*corev1.Node) error {
	for {
		// Version 0 is answered from the apiserver's memory.
		list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err == nil {
			waiting := map[string]bool{}
			for _, node := range nodes {
				waiting[node.Name] = true
			}
			for _, node := range list.Items {
				if usable(&node) {
					delete(waiting, node.Name)
				}
			}
			if len(waiting) == 0 {
				return nil
			}
			for name := range waiting {
				err = fmt.Errorf("%d of %d are not Ready or still have a taint that says so, such as %s",
					len(waiting), len(nodes), name)
				break
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for nodes: %w: %w; %s ends:\n%s", context.Cause(ctx), err, c.logPath(kwok),
				tail(c.logPath(kwok), tailLines))
		case <-time.After(pollInterval + time.Duration(len(nodes))*time.Millisecond/2):
		}
	}
}

func usable(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
