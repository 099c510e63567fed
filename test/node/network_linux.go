package node

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// One bridge for all: its address is that of the API server and of DNS, every node has a further one on it, and pods
// are plugged into it. The lab's network namespace has no other interface, so the addresses collide with none.
const (
	bridge        = "lab0"
	bridgeAddress = "10.244.0.1"
	prefix        = "/16"
)

// nodeAddress is the address of the i-th node, counted from 1.
func nodeAddress(i int) string { return fmt.Sprintf("10.244.0.%d", 1+i) }

// podRange are the first and the last address of pods on the i-th node.
func podRange(i int) (first, last string) {
	return fmt.Sprintf("10.244.%d.2", i), fmt.Sprintf("10.244.%d.254", i)
}

// setUpNetwork makes the bridge, in a network namespace that is new.
func setUpNetwork() error {
	for _, command := range []string{
		"link set lo up",
		"link add " + bridge + " type bridge",
		"addr add " + bridgeAddress + prefix + " dev " + bridge,
		"link set " + bridge + " up",
	} {
		if err := ip(command); err != nil {
			return err
		}
	}
	for file, value := range map[string]string{
		"/proc/sys/net/ipv4/ip_forward": "1",
		// A pod that reaches another of the same bridge through a Service must get its answer back through the
		// translation.
		"/proc/sys/net/bridge/bridge-nf-call-iptables": "1",
	} {
		if err := os.WriteFile(file, []byte(value), 0o644); err != nil {
			return fmt.Errorf("setting up the network (the kernel needs bridge and br_netfilter; "+
				"modprobe loads them): %w", err)
		}
	}
	return nil
}

// silence drops whatever pods of the i-th node send from now on: the kernel that they share with all others would tell
// their peers that they were killed, which no kernel does that lost its power.
func silence(i int) error {
	first, last := podRange(i)
	rules := fmt.Sprintf("table inet lost%d { chain first { type filter hook prerouting priority -400; "+
		"ip saddr %s-%s drop; }; }", i, first, last)
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("silencing a node: %w: %s", err, out)
	}
	return nil
}

func ip(command string) error {
	out, err := exec.Command("ip", strings.Fields(command)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("setting up the network: ip %s: %w: %s", command, err, out)
	}
	return nil
}
