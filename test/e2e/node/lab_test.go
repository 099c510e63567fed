package node

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/test/node"
)

// lab is a cluster with real nodes, and what the tests may do to it from outside its API.
type lab interface {
	// Kubeconfig is the path of a cluster admin's.
	Kubeconfig() string
	// Kubectl is the path of the program.
	Kubectl() string
	// Address is where pods reach what this machine serves.
	Address() string
	// Provide gives every node, also those that come later, an image under each name.
	Provide(ctx context.Context, names ...string) error
	// AddNode joins a node, which is Ready when this returns its name, and takes no pod before it has its labels and
	// taints.
	AddNode(ctx context.Context, labels map[string]string, taints []corev1.Taint) (name string, err error)
	// CutOff kills a node's kubelet, its container runtime and what runs in its pods, as a power cut would. The Node
	// object stays.
	CutOff(ctx context.Context, name string) error
	// Alias has the cluster's DNS resolve a host of the world to Address.
	Alias(ctx context.Context, host string) error
}

// connect finds the lab that the environment names; nil without one.
func connect() (lab, error) {
	if name := os.Getenv(kindEnv); name != "" {
		return newKind(context.Background(), name)
	}
	if os.Getenv(node.LabEnv) == "" {
		return nil, nil
	}
	return node.Connect()
}
