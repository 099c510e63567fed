// Package node runs a Kubernetes cluster with real nodes on one Linux machine: the control plane of test/cluster, and
// for every node a containerd and a kubelet that start real containers, with kube-proxy, CoreDNS and a bridge between
// them.
//
// Such a lab lives in namespaces of its own: network, mounts and processes. What it does to the network, to mounts and
// to firewall rules ends with it, whatever ends it; what it cannot keep to itself, cgroups and a few sysctls of the
// kernel, is put back by the process outside, or, where that was killed, by the next lab. It needs root, and no
// network.
//
// The command cmd/lab starts one around another command, such as a test binary, which finds it by Connect.
package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
)

// LabEnv names the folder of a running lab, for what runs inside it.
const LabEnv = "TEGEN_NODE_LAB"

// ErrNoLab says that this process does not run inside a lab.
var ErrNoLab = errors.New(LabEnv + " is not set: run the tests with 'make e2e-node'")

// Client is a running lab, seen from a process inside it.
type Client struct {
	dir  string
	http *http.Client
	info info
}

// info is what a lab says of itself.
type info struct {
	Kubeconfig string `json:"kubeconfig"`
	Kubectl    string `json:"kubectl"`
	Address    string `json:"address"`
}

const (
	infoFile      = "lab.json"
	controlSocket = "control.sock"
)

// Connect finds the lab that this process runs in.
func Connect() (*Client, error) {
	dir := os.Getenv(LabEnv)
	if dir == "" {
		return nil, ErrNoLab
	}
	c := &Client{dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, infoFile))
	if err != nil {
		return nil, fmt.Errorf("looking for a lab: %w", err)
	}
	if err := json.Unmarshal(text, &c.info); err != nil {
		return nil, fmt.Errorf("reading what the lab says of itself: %w", err)
	}
	socket := filepath.Join(dir, controlSocket)
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	return c, nil
}

// Kubeconfig is the path of a cluster admin's kubeconfig.
func (c *Client) Kubeconfig() string { return c.info.Kubeconfig }

// Kubectl is the path of kubectl.
func (c *Client) Kubectl() string { return c.info.Kubectl }

// Address is the IP address under which pods reach the processes of the lab.
func (c *Client) Address() string { return c.info.Address }

// Provide makes every node have an image under each of the names, nodes that join later too. image.For says which.
func (c *Client) Provide(ctx context.Context, names ...string) error {
	return c.call(ctx, "provide", names, nil)
}

// AddNode adds a node with labels and taints and returns its name when it is Ready.
func (c *Client) AddNode(ctx context.Context, labels map[string]string, taints []corev1.Taint) (name string,
	err error,
) {
	var flags, texts []string
	if len(labels) > 0 {
		flags = append(flags, "--node-labels="+k8slabels.FormatLabels(labels))
	}
	for i := range taints {
		texts = append(texts, taints[i].ToString())
	}
	if len(texts) > 0 {
		flags = append(flags, "--register-with-taints="+strings.Join(texts, ",")) // the last of several holds
	}
	err = c.call(ctx, "add", flags, &name)
	return name, err
}

// CutOff ends a node as a power cut does: kubelet, runtime and pods are gone at once, without notice. Its Node stays.
func (c *Client) CutOff(ctx context.Context, name string) error {
	return c.call(ctx, "cut", []string{name}, nil)
}

// Alias makes the cluster's DNS resolve a host name to Address, so that a test can serve what a manifest downloads.
func (c *Client) Alias(ctx context.Context, host string) error {
	return c.call(ctx, "alias", []string{host}, nil)
}

// call asks the lab for something, waits until it is done and reads the answer where one is wanted.
func (c *Client) call(ctx context.Context, what string, names []string, answer any) error {
	asking := func(err error) error {
		return fmt.Errorf("asking the lab to %s %s: %w", what, strings.Join(names, " "), err)
	}
	body, err := json.Marshal(names)
	if err != nil {
		return asking(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://lab/"+what, bytes.NewReader(body))
	if err != nil {
		return asking(err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return asking(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err == nil && response.StatusCode/100 != 2 {
		err = errors.New(strings.TrimSpace(string(text)))
	}
	if err == nil && answer != nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		return asking(err)
	}
	return nil
}
