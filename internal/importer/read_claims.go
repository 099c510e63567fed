package importer

import (
	"slices"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// claims read what the workers' container claims: accelerators by a template of tegen's own, and further templates
// after which their claims are called. Any other claim stays in podTemplate.
func (d *draft) claims(pod, c view) {
	var claimed []string
	for _, r := range c.at("resources", "claims").items() {
		claimed = append(claimed, r.at("name").text())
	}
	var templates []any
	at := pod.at("resourceClaims")
	for _, r := range at.items() {
		name, template := r.at("name").text(), r.at("resourceClaimTemplateName")
		switch {
		case !slices.Contains(claimed, name):
		case name == job.ClaimOfAccelerators:
			d.deviceClass(template)
		case name == template.text():
			templates = append(templates, name)
		}
	}
	if len(templates) > 0 {
		d.set("spec.resources.claims", templates, at)
	}
}

// deviceClass reads the template of the accelerators' claim, and from an older version the release of Kubernetes.
func (d *draft) deviceClass(name view) {
	kind := apis.ClaimTemplateKind("")
	template := d.stream.find(kind.Group, kind.Kind, d.namespace(), name.text())
	if template == nil || template.view().at("metadata", "labels", names.LabelManagedBy).text() != names.ManagedBy {
		return
	}
	requests := template.view().at("spec", "spec", "devices", "requests").items()
	if len(requests) != 1 {
		return
	}
	devices := requests[0].at("exactly")
	if !devices.isSet() {
		devices = requests[0]
	}
	d.set("spec.resources.deviceClass", devices.at("deviceClassName").text(), devices)
	d.setNumber("spec.resources.gpu", devices.at("count"))
	var expressions []any
	for _, s := range devices.at("selectors").items() {
		expressions = append(expressions, s.at("cel", "expression").text())
	}
	if len(expressions) > 0 {
		d.set("spec.resources.deviceSelectors", expressions, devices.at("selectors"))
	}
	release := map[string]string{"v1beta1": "1.32", "v1beta2": "1.33"}[template.gvk.Version]
	if release != "" && !d.get("spec.kubernetesVersion").isSet() {
		d.set("spec.kubernetesVersion", release, template.view())
	}
}
