package importer

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// peers reads what a policy that tegen rendered says beside the job itself.
func (d *draft) peers(policy *object) {
	spec := policy.view().at("spec")
	for i, rule := range spec.at("ingress").items() {
		if item := peerItem(rule.at("from").items(), rule); i > 0 && item != nil {
			d.add("spec.network.allowFrom", item, rule)
		}
	}
	rules := spec.at("egress").items()
	if !slices.Contains(spec.at("policyTypes").texts(), "Egress") {
		d.set("spec.network.egress", job.EgressNamespace, spec)
		return
	}
	if len(rules) == 0 || len(rules[0].at("to").items()) == 0 { // everywhere
		return
	}
	word := job.EgressClosed
	if rules[0].at("to").items()[0].at("namespaceSelector").isSet() {
		word = job.EgressCluster
	}
	d.set("spec.network.egress", word, spec)
	if !slices.ContainsFunc(rules, linkLocal) && d.get("spec.identity.nodeRole").isSet() {
		delete(d.get("spec").mapping(), "identity") // the ServiceAccount alone does not show an identity
	}
	for _, rule := range rules[1:] {
		agent := rule.at("to").items()
		if len(agent) > 0 && agent[0].at("ipBlock", "cidr").text() == "169.254.170.23/32" &&
			d.get("spec.identity.nodeRole").isSet() { // the ServiceAccount alone does not show an identity
			d.set("spec.identity", tree{"podIdentity": tree{}}, rule)
		}
		if item := peerItem(rule.at("to").items(), rule); item != nil && !linkLocal(rule) {
			d.add("spec.network.allowTo", item, rule)
		}
	}
}

// linkLocal says whether a rule is for what hands out the pods' cloud identity, on the node itself.
func linkLocal(rule view) bool {
	return slices.ContainsFunc(rule.at("to").items(), func(to view) bool {
		cidr := to.at("ipBlock", "cidr").text()
		return cidr == "169.254.170.23/32" || cidr == "169.254.169.254/32"
	})
}

// peerItem is a rule of one peer in the schema's words, nil for one that admits everybody.
func peerItem(all []view, rule view) tree {
	if len(all) == 0 {
		return nil
	}
	item, ports := tree{}, []any{}
	for _, p := range rule.at("ports").items() {
		if n, ok := p.at("port").number(); ok {
			ports = append(ports, n)
		}
	}
	item["ports"] = ports
	from := all[0]
	if cidr := from.at("ipBlock", "cidr"); cidr.isSet() {
		item["cidr"] = cidr.text()
		return item
	}
	labels := from.at("namespaceSelector", "matchLabels").mapping()
	if name, ok := labels[corev1.LabelMetadataName].(string); ok && len(labels) == 1 {
		item["namespace"] = name
	} else if len(labels) > 0 {
		item["namespaceLabels"] = labels
	}
	if pods := from.at("podSelector", "matchLabels").mapping(); len(pods) > 0 {
		item["pods"] = pods
	}
	return item
}

// metrics reads the port of that name, and the PodMonitor beside it.
func (d *draft) metrics() {
	port := trainingContainer(d.template.at("spec")).at("ports").item("name", "metrics").at("containerPort")
	if !d.setNumber("spec.metrics.port", port) {
		return
	}
	kind := apis.PodMonitorKind
	monitor := d.stream.find(kind.Group, kind.Kind, d.namespace(), d.name()+"-worker")
	if monitor == nil || monitor.view().at("metadata", "labels", names.LabelManagedBy).text() != "tegen" {
		return
	}
	d.set("spec.metrics.podMonitor", true, monitor.view())
	at := monitor.view().at("spec", "podMetricsEndpoints").items()
	if len(at) == 0 {
		return
	}
	if where := at[0].at("path").text(); where != "/metrics" {
		d.set("spec.metrics.path", where, at[0].at("path"))
	}
	d.set("spec.metrics.interval", at[0].at("interval").text(), at[0].at("interval"))
}
