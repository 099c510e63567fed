package schema

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tegen-dev/tegen/internal/names"
)

var networkRules = []rule{
	{(*validation).policies, "network"},
	{(*validation).peers, "network"},
	{(*validation).outside, "network script identity"},
	{(*validation).metrics, "metrics"},
}

// limits says whether egress is closed to more than the job itself needs.
func (n *Network) limits() bool { return n.Egress == EgressCluster || n.Egress == EgressClosed }

// policies refuses what no NetworkPolicy says.
func (r *validation) policies() {
	n := &r.Spec.Network
	written := func(field string) bool {
		node := r.root.Below("spec", "network", field)
		return node != nil && !node.Merged && node.At.Line > 0 // no default
	}
	for _, field := range []string{"allowFrom", "egress", "allowTo"} {
		if !n.Policy && written(field) && written("policy") {
			r.fail("spec.network."+field, "requires", "a NetworkPolicy says it, and policy is false: leave one out")
		}
	}
	if n.Host && n.limits() {
		r.fail("spec.network.egress", "requires", "pods on their node's network connect as the node does, which no "+
			"NetworkPolicy closes: leave it out, or host")
	}
	if len(n.AllowTo) > 0 && !n.limits() {
		r.fail("spec.network.allowTo", "requires", "egress %s lets them connect there already: set egress: closed, or "+
			"leave it out", n.Egress)
	}
}

// peers refuses a peer that is nobody, or two things at a time.
func (r *validation) peers() {
	n := &r.Spec.Network
	for field, list := range map[string][]Peer{"allowFrom": n.AllowFrom, "allowTo": n.AllowTo} {
		for i, p := range list {
			at := fmt.Sprintf("spec.network.%s[%d]", field, i)
			pods := p.Namespace != "" || len(p.NamespaceLabels) > 0 || len(p.Pods) > 0
			switch {
			case p.CIDR != "" && pods:
				r.fail(at+".cidr", "one-of", "addresses or pods: give each an item of its own")
			case p.CIDR == "" && !pods:
				r.fail(at, "requires", "says of nobody: give namespace, namespaceLabels, pods or cidr")
			case p.Namespace != "" && len(p.NamespaceLabels) > 0:
				r.fail(at+".namespaceLabels", "one-of", "only one of namespace, namespaceLabels may be given")
			}
			if prefix, err := netip.ParsePrefix(p.CIDR); p.CIDR != "" && (err != nil || prefix != prefix.Masked()) {
				r.fail(at+".cidr", "format", "%q is no range of addresses: write its first address and the length, "+
					"such as 10.0.0.0/16", p.CIDR)
			}
		}
	}
}

// outside refuses a job whose pods fetch their script from where they may not connect to.
func (r *validation) outside() {
	if n := &r.Spec.Network; n.Policy && n.limits() && r.Spec.Script != nil && r.Spec.Script.S3 != "" && !n.web() {
		r.fail("spec.network.egress", "requires", "with %s no worker reaches S3, where spec.script is: add to allowTo "+
			"the addresses of its endpoint, with port 443", n.Egress)
	}
}

// web says whether port 443 is open to some addresses.
func (n *Network) web() bool { return n.opens(443) }

// opens says whether a port is open to some addresses.
func (n *Network) opens(port int32) bool {
	return slices.ContainsFunc(n.AllowTo, func(p Peer) bool { return p.CIDR != "" && slices.Contains(p.Ports, port) })
}

// openStore is the store of a job without users or certificates, which a NetworkPolicy alone can guard, and its port.
// It is "" if there is none.
func openStore(s *Spec) (who string, port int32) {
	z, t := &s.Rendezvous, rowOf(s)
	who = map[string]string{StoreWorker: "worker 0", StoreCompanion: "the companion", StoreEtcd: "the etcd"}[z.Store]
	encrypted := z.Store == StoreCompanion && s.Proxied() || z.Store == StoreEtcd && z.Etcd.TLS != nil
	if encrypted || s.WithoutRendezvous() || t == nil || !t.Carries("rendezvous") {
		return "", 0
	}
	port = names.C10dPort
	if z.Store == StoreEtcd || z.Backend != BackendC10d {
		port = names.EtcdClientPort
	}
	return who, cmp.Or(z.Port, port)
}

// accessNotes tell of stores that others reach: access to a store is code execution in every worker.
func accessNotes(s *Spec) (notes []string) {
	const danger = "Access to it is code execution in every worker, because torch unpickles what it reads there"
	n := &s.Network
	who, port := openStore(s)
	switch {
	case who == "":
	case !n.Policy:
		notes = append(notes, fmt.Sprintf("spec.network: no NetworkPolicy of the job guards the rendezvous, %s on "+
			"port %d. %s. Remove policy: false, or close the port by other means", who, port, danger))
	case n.Host && s.Rendezvous.Store == StoreWorker: // no policy holds for pods on their node's network
		notes = append(notes, fmt.Sprintf("spec.network: no NetworkPolicy of the job guards the rendezvous, %s on "+
			"port %d. %s. Remove host: true, or close the port by other means", who, port, danger))
	default:
		for i, p := range n.AllowFrom {
			if slices.Contains(p.Ports, port) {
				notes = append(notes, fmt.Sprintf("spec.network.allowFrom[%d].ports: %d is the port of the "+
					"rendezvous, %s. %s. Remove the port unless you trust these pods with that", i, port, who, danger))
			}
		}
	}
	if n.Host && s.Proxied() {
		notes = append(notes, "spec.network.host: the store that a proxy serves on 127.0.0.1 is open to all processes "+
			"on the node's network, also of other pods. "+danger+". Remove host: true, or keep such pods off these "+
			"nodes")
	}
	return notes
}

// networkNotes tell of a store that others reach, and of an identity whose provider is out of reach.
func (s *Spec) networkNotes() (notes []string) {
	n := &s.Network
	notes = accessNotes(s)
	if !n.Policy || !n.limits() || s.Identity == nil || s.Identity.IRSA == nil || n.web() {
		return notes
	}
	return append(notes, fmt.Sprintf("spec.network.egress: with %s no pod reaches STS, which turns the token of "+
		"identity.irsa into credentials: add the addresses of its endpoint to allowTo, with port 443", n.Egress))
}

// metrics refuses what only a PodMonitor says.
func (r *validation) metrics() {
	// An Environment may take the PodMonitor away, and with it these.
	if n := r.root.Below("spec", "metrics", "podMonitor"); r.Spec.Metrics == nil || n != nil && n.Text == "true" {
		return
	}
	for _, field := range []string{"path", "interval"} {
		if r.isSet("spec.metrics." + field) {
			r.fail("spec.metrics."+field, "requires", "only a PodMonitor says it: set podMonitor: true, or leave it "+
				"out")
		}
	}
}
