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
		node := r.Root.Below("spec", "network", field)
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

// openStore is the note on a store that nothing but a NetworkPolicy keeps others from, where the job has none: "" for
// any other. Of pods on their node's network no policy holds.
func (s *Spec) openStore() string {
	z, port := &s.Rendezvous, int32(names.C10dPort)
	open := map[string]string{StoreWorker: "worker 0", StoreCompanion: "the companion", StoreEtcd: "the etcd"}[z.Store]
	guarded := s.Network.Policy && (!s.Network.Host || z.Store != StoreWorker)
	encrypted := s.MakesCertificates() || z.Store == StoreEtcd && z.Etcd.TLS != nil
	if guarded || encrypted || open == "" {
		return ""
	}
	if z.Store == StoreEtcd || z.Backend != BackendC10d {
		port = names.EtcdClientPort
	}
	field := "policy: false"
	if s.Network.Policy {
		field = "host: true"
	}
	return fmt.Sprintf("no NetworkPolicy of the job guards the rendezvous, %s on port %d. Access to it is code "+
		"execution in every worker, because torch unpickles what it reads there. Remove %s, or close the port by "+
		"other means", open, cmp.Or(z.Port, port), field)
}

// hostStore is the note on the stores beside that of the rendezvous that workers open on their node's network: each
// proxy has one for its torchrun, and torch has one for the processes of a world. Neither has a password.
func (s *Spec) hostStore() string {
	switch {
	case !s.Network.Host:
		return ""
	case s.Proxied():
		return "the store between each proxy and its torchrun listens on 127.0.0.1 of its node, without a password. " +
			"Every process on that node's network can connect to it, also other pods with hostNetwork. Access to it " +
			"is code execution in the worker, because torch unpickles what it reads there. Remove host: true, or run " +
			"no other pods with hostNetwork that you do not trust on these nodes"
	case s.Rendezvous.Store == StoreWorker: // for which there is a note
		return ""
	}
	return "no NetworkPolicy of the job guards the store that torch opens for the training processes on the node of " +
		"worker 0. Access to it is code execution in them, because torch unpickles what it reads there. Remove " +
		"host: true, or close the ports of these nodes by other means"
}

// visitedStores are notes on who else may connect to the store of worker 0: allowFrom is for all workers, by port.
func (s *Spec) visitedStores() (notes []string) {
	port := cmp.Or(s.Rendezvous.Port, int32(names.C10dPort))
	if s.Rendezvous.Store != StoreWorker || !s.Network.Policy || s.Network.Host {
		return nil
	}
	for i, p := range s.Network.AllowFrom {
		if slices.Contains(p.Ports, port) {
			notes = append(notes, fmt.Sprintf("spec.network.allowFrom[%d].ports: port %d is that of the rendezvous, "+
				"which worker 0 serves. Access to it is code execution in every worker, because torch unpickles what "+
				"it reads there. Remove this port", i, port))
		}
	}
	return notes
}

// networkNotes tell of a store that others reach, and of an identity whose provider is out of reach.
func (s *Spec) networkNotes() (notes []string) {
	n := &s.Network
	if t := rowOf(s); t != nil && t.Carries("rendezvous") && !s.WithoutRendezvous() {
		for _, note := range []string{s.openStore(), s.hostStore()} {
			if note != "" {
				notes = append(notes, "spec.network: "+note)
			}
		}
		notes = append(notes, s.visitedStores()...)
	}
	if !n.Policy || !n.limits() || s.Identity == nil || s.Identity.IRSA == nil || n.web() {
		return notes
	}
	return append(notes, fmt.Sprintf("spec.network.egress: with %s no pod reaches STS, which turns the token of "+
		"identity.irsa into credentials: add the addresses of its endpoint to allowTo, with port 443", n.Egress))
}

// metrics refuses what only a PodMonitor says.
func (r *validation) metrics() {
	// An Environment may take the PodMonitor away, and with it these.
	if n := r.Root.Below("spec", "metrics", "podMonitor"); r.Spec.Metrics == nil || n != nil && n.Text == "true" {
		return
	}
	for _, field := range []string{"path", "interval"} {
		if r.IsSet("spec.metrics." + field) {
			r.fail("spec.metrics."+field, "requires", "only a PodMonitor says it: set podMonitor: true, or leave it "+
				"out")
		}
	}
}
