package node

import (
	"fmt"
	"os"
	"path/filepath"
)

// writeConfig writes what the programs of a node read. The values without a word here are what every such cluster has.
func (n *node) writeConfig(kubeconfig string) error {
	first, last := podRange(n.index)
	files := map[string]string{
		"cni/10-lab.conflist": fmt.Sprintf(cniConfig, bridge, n.path("ipam"), "10.244.0.0"+prefix, first, last,
			bridgeAddress),
		"containerd.toml": fmt.Sprintf(containerdConfig, n.path("containerd"), n.socket(),
			n.path("opt"), pauseImage, n.path("cni")),
		"resolv.conf": "nameserver " + bridgeAddress + "\n",
		"kubelet.yaml": fmt.Sprintf(kubeletConfig, nodeAddress(n.index), n.socket(),
			bridgeAddress, n.path("resolv.conf"),
			n.cgroup, n.path("volume-plugins")),
	}
	for name, text := range files {
		path := n.path(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("preparing %s: %w", n.name, err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("preparing %s: %w", n.name, err)
		}
	}
	n.kubeconfig = kubeconfig
	return nil
}

const cniConfig = `{"cniVersion": "0.4.0", "name": "lab", "plugins": [{
  "type": "bridge", "bridge": %q, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": %q,
    "ranges": [[{"subnet": %q, "rangeStart": %q, "rangeEnd": %q}]],
    "routes": [{"dst": "0.0.0.0/0", "gw": %q}]}
}]}
`

// Roots without CAP_SYS_RESOURCE, as in many containers and virtual machines, may not lower a process's OOM score.
const containerdConfig = `version = 2
root = %q
state = "/run/containerd"
[grpc]
  address = %q
[plugins."io.containerd.internal.v1.opt"]
  path = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`

// Whoever is inside the lab is its admin: the kubelet asks nobody. CPU quotas are not enforced: requests equal limits
// in a bundle, they must be small for many pods to fit on two cores, and importing torch would take minutes.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://%[2]s
clusterDNS: [%[3]s]
clusterDomain: cluster.local
resolvConf: %[4]s
cgroupDriver: cgroupfs
cgroupRoot: %[5]s
volumePluginDir: %[6]s
failCgroupV1: false
cpuCFSQuota: false
failSwapOn: false
healthzPort: 0
oomScoreAdj: 0
makeIPTablesUtilChains: false
imagePullCredentialsVerificationPolicy: NeverVerify
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%, nodefs.inodesFree: 1%%}
`

// kube-proxy stands for all nodes: they share one network namespace.
const proxyHealth = "127.0.0.1:10256"

const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: %[1]s
clusterCIDR: 10.244.0.0/16
metricsBindAddress: 127.0.0.1:10249
healthzBindAddress: ` + proxyHealth + `
clientConnection: {kubeconfig: %[2]q}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
oomScoreAdj: 0
`

const corefile = `.:53 {
  bind %[1]s
  errors
  hosts %[2]s {
    reload 500ms
    ttl 1
    fallthrough
  }
  kubernetes cluster.local {
    kubeconfig %[3]s tegen-test
    ttl 30
  }
}
`
