package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/test/ports"
)

// The programs, named as their files are.
const (
	etcd              = "etcd"
	apiserver         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"
)

// The programs of real nodes. kubectl is here because people apply bundles with it.
const (
	Kubelet   = "kubelet"
	KubeProxy = "kube-proxy"
	Kubectl   = "kubectl"
	CoreDNS   = "coredns"
	Etcd      = etcd
	Etcd35    = "etcd-3.5" // with the v2 API
)

// The programs that keep a cluster at what git says; package gitops starts them.
const (
	SourceController    = "source-controller"
	KustomizeController = "kustomize-controller"
	ArgoCD              = "argocd" // its controllers and servers are one program
)

// The controllers of custom resources that StartOperators starts.
const (
	JobSet             = "jobset"
	Trainer            = "trainer"
	TrainingOperator   = "training-operator"
	TrainingOperator18 = "training-operator-1.8" // the last with MXJobs
)

// programNames are the programs that the options ask for.
func programNames(o Options) []string {
	names := []string{etcd, apiserver}
	if !o.NoControllers {
		names = append(names, controllerManager)
	}
	if !o.NoScheduler {
		names = append(names, scheduler)
	}
	if o.Address == "" {
		names = append(names, kwok)
	}
	return names
}

// RealNodes are the programs of a control plane that real nodes join.
func RealNodes() []string { return programNames(Options{Address: "any"}) }

// layout is what the programs' flags name: ports of 127.0.0.1 and files of the cluster's folder.
type layout struct {
	dir                                                      string
	address                                                  string // of kube-apiserver
	etcdPort, peerPort, apiPort, cmPort, schedPort, kwokPort int
}

func newLayout(dir, address string) (layout, error) {
	free, err := ports.Free(6)
	if err != nil {
		return layout{}, err
	}
	return layout{
		dir: dir, address: cmp.Or(address, "127.0.0.1"), etcdPort: free[0], peerPort: free[1], apiPort: free[2],
		cmPort: free[3], schedPort: free[4], kwokPort: free[5],
	}, nil
}

func (l layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.dir}, elem...)...)
}

func (l layout) apiURL() string {
	return "https://" + net.JoinHostPort(l.address, strconv.Itoa(l.apiPort))
}

func loopback(scheme string, port int) string {
	return scheme + "://127.0.0.1:" + strconv.Itoa(port)
}

// args are the arguments of one program under the options, the caller's own last.
func (l layout) args(program string, o Options) []string {
	var args []string
	switch program {
	case etcd:
		args = l.etcdArgs()
	case apiserver:
		args = l.apiserverArgs(o)
	case controllerManager:
		args = l.controllerManagerArgs(o)
	case scheduler:
		args = l.schedulerArgs()
	case kwok:
		args = l.kwokArgs()
	}
	if gates := gateFlag(o.Gates); gates != "" && strings.HasPrefix(program, "kube-") {
		args = append(args, gates)
	}
	return replaced(args, o.Args[program])
}

// replaced are arguments with the caller's in place of those of the same flags: a list set twice would be both.
func replaced(args, own []string) []string {
	flag := func(arg string) string {
		name, _, _ := strings.Cut(arg, "=")
		return name
	}
	args = slices.DeleteFunc(args, func(arg string) bool {
		return slices.ContainsFunc(own, func(o string) bool { return flag(o) == flag(arg) })
	})
	return append(args, own...)
}

func (l layout) etcdArgs() []string {
	client, peer := loopback("http", l.etcdPort), loopback("http", l.peerPort)
	return []string{
		"--name=tegen",
		"--data-dir=" + l.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=tegen=" + peer,
		"--log-level=warn",
		"--unsafe-no-fsync", // the data does not outlive the cluster
		// 8 GiB: a benchmark writes more than the default of 2 between two compactions
		"--quota-backend-bytes=8589934592",
	}
}

func (l layout) apiserverArgs(o Options) []string {
	args := []string{
		"--etcd-servers=" + loopback("http", l.etcdPort),
		"--bind-address=" + l.address,
		"--advertise-address=" + l.address,
		"--secure-port=" + strconv.Itoa(l.apiPort),
		"--cert-dir=" + l.path("certs"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.path("service-account.key"),
		"--service-account-signing-key-file=" + l.path("service-account.key"),
		"--authorization-mode=RBAC",
		"--token-auth-file=" + l.path("tokens.csv"),
		"--allow-privileged=true", // so that it is Pod Security, not the apiserver, that refuses a pod
		// The defaults of 400 and 200 are for a machine that serves more than one benchmark.
		"--max-requests-inflight=2000",
		"--max-mutating-requests-inflight=1000",
	}
	var without []string
	if o.Address == "" {
		args = append(args, "--endpoint-reconciler-type=none") // endpoints on the loopback interface are not valid
		// It taints every new node, for the controller-manager to lift the taint of one that is ready. That was the
		// larger part of adding a thousand nodes, which KWOK makes ready from the start.
		without = append(without, "TaintNodesByCondition")
	} else {
		args = append(args, "--kubelet-preferred-address-types=InternalIP") // nobody resolves the nodes' names
	}
	if o.NoControllers {
		without = append(without, "ServiceAccount")
	}
	if len(without) > 0 {
		args = append(args, "--disable-admission-plugins="+strings.Join(without, ","))
	}
	if len(o.APIs) > 0 {
		args = append(args, "--runtime-config="+strings.Join(o.APIs, "=true,")+"=true")
	}
	return args
}

func (l layout) controllerManagerArgs(o Options) []string {
	kubeconfig := l.path("kubeconfig")
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(l.cmPort),
		"--leader-elect=false",
		"--service-account-private-key-file=" + l.path("service-account.key"),
		"--root-ca-file=" + l.path("certs", "apiserver.crt"),
		"--flex-volume-plugin-dir=" + l.path("volume-plugins"), // it makes its default, a folder of the machine
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
	if o.Address == "" {
		args = append(args,
			"--node-monitor-grace-period=1h", // see node-heartbeat in kwok.yaml
			// It tells kubelets, of which there are none, how long to cache a Secret, with a write for every node.
			"--controllers=*,-ttl-controller",
		)
	}
	return args
}

func (l layout) schedulerArgs() []string {
	kubeconfig := l.path("kubeconfig")
	return []string{
		"--config=" + l.path("scheduler.yaml"),
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(l.schedPort),
	}
}

// schedulerConfig gives the stock scheduler a client that is not what limits a benchmark.
func (l layout) schedulerConfig() string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 1000, burst: 2000}
`, l.path("kubeconfig"))
}

func (l layout) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + l.path("kubeconfig"),
		"--config=" + l.path("kwok.yaml"),
		"--manage-all-nodes=true",
		"--cidr=10.244.0.0/16",
		"--node-ip=" + nodeIP(1<<16-2),
		"--node-lease-duration-seconds=0", // see node-heartbeat in kwok.yaml
		"--server-address=127.0.0.1:" + strconv.Itoa(l.kwokPort),
		"--v=WARN",
	}
}

// gateFlag is the flag that sets feature gates, in the order of their names; nothing without a gate.
func gateFlag(gates map[string]bool) string {
	if len(gates) == 0 {
		return ""
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		all = append(all, name+"="+strconv.FormatBool(gates[name]))
	}
	return "--feature-gates=" + strings.Join(all, ",")
}
