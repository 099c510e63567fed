package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/fence"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// following are fields of pods that follow from fields of a job which do not have their name, beside overrides.
var following = []override{
	{false, "priority", "placement.priorityClass", false},
	{false, "initContainers", "sidecars images", true},
	{false, "imagePullSecrets", "imagePullSecrets", true},
	{false, "nodeSelector", "placement.spot placement.provisioner resources.machine", true},
	{false, "tolerations", "placement.spot placement.provisioner resources.machine", true},
	{false, "volumes", "code script resources.shm resources.ephemeralStorage", true},
	{false, "resourceClaims", "resources", true},
	{true, "resources.claims", "resources", true},
	{true, "resources.limits", "network.fabric", true},
	{true, "securityContext", "network.fabric", true},
	{true, "volumeMounts", "storage code script", true},
	{true, "env", "network rendezvous checkpoint", true},
	{true, "ports", "metrics", true},
}

// setFence makes the rules of an Environment with a fence.
func (env *Environment) setFence() Errors {
	switch {
	case !env.Spec.Fence:
		return nil
	case env.Spec.Namespace == "":
		return Errors{env.root.Errorf("spec.fence", "requires", "needs spec.namespace: the only namespace of its jobs")}
	}
	overridden := env.root.Below("spec", "overrides")
	sets := func(field ...string) bool { return overridden != nil && overridden.Below(field...) != nil }
	around := fence.Environment{
		Name: env.Metadata.Name, Namespace: env.Spec.Namespace,
		Identity: sets("identity"), User: sets("security", "runAsUser"),
		Egress: sets("network", "egress") && !sets("network", "allowTo"),
		Caps: map[string]*resource.Quantity{
			"cpu": env.Spec.Caps.CPU, "memory": env.Spec.Caps.Memory,
			"ephemeral-storage": env.Spec.Caps.EphemeralStorage,
		},
		Shm: env.Spec.Caps.Shm,
	}
	if labels := env.root.Below("spec", "overrides", "placement", "nodeSelector"); labels != nil && !env.Spec.Anywhere {
		around.NodeSelector = map[string]string{}
		for _, f := range labels.Fields {
			around.NodeSelector[f.Key] = f.Value.Text
		}
	}
	for _, o := range slices.Concat(overrides, following) {
		if by := env.sets(o); by != "" {
			around.Template = append(around.Template, fence.Field{Path: o.template, Container: o.container, By: by})
		}
	}
	var err error
	if env.fence, err = around.Policy(reflect.TypeFor[Job]()); err != nil {
		return Errors{env.root.Errorf("spec.fence", "policy", "%v", err)}
	}
	return nil
}

// sets is the field of an Environment that sets what a row is about, "" if none does.
func (env *Environment) sets(o override) string {
	spec := env.root.Field("spec")
	for field := range strings.FieldsSeq(o.job) {
		if spec.Below(append([]string{"overrides"}, strings.Split(field, ".")...)...) != nil {
			return "overrides." + field
		}
	}
	accelerator := map[string]string{
		"nodeSelector": "nodeSelector", "tolerations": "tolerations", "runtimeClassName": "runtimeClass",
	}
	if field, ok := accelerator[o.template]; ok && spec.Below("accelerator", field) != nil {
		return "accelerator." + field
	}
	if o.template == "volumes" && spec.Field("storage") != nil {
		return "storage"
	}
	return ""
}

// broughtBack are fields of groups and roles by which an author would have again what overrides replace.
func (env *Environment) broughtBack(job *structural.Node) (errs Errors) {
	overrides := env.root.Below("spec", "overrides")
	spec := job.Field("spec")
	if !env.Spec.Fence || overrides == nil || spec == nil || spec.Kind != yamldoc.Map {
		return nil
	}
	report := func(path, by string) {
		errs = append(errs, job.Errorf(path, "policy",
			"the Environment sets overrides.%s: leave it out (fence of Environment %s)", by, env.Metadata.Name))
	}
	if overrides.Field("groups") == nil {
		for i, group := range groupItems(spec) {
			again(group, overrides, fmt.Sprintf("spec.groups[%d]", i), "", report)
		}
	}
	for _, row := range roleTable {
		if role := spec.Below("roles", row.name); role != nil && overrides.Below("roles", row.name) == nil {
			again(role, overrides, "spec.roles."+row.name, "", report)
		}
	}
	return errs
}

// again reports fields of a section that overrides have for the whole job.
func again(section, overrides *structural.Node, path, below string, report func(path, by string)) {
	for _, f := range overrides.Fields {
		if f.Key == "placement" { // a section has these fields itself
			again(section, f.Value, path, "placement.", report)
			continue
		}
		own := section.Field(f.Key)
		switch {
		case own == nil, f.Key == "nodeSelector": // the fence demands the labels of the Environment in all pods
		case f.Key == "resources" && own.Kind == yamldoc.Map:
			again(own, f.Value, path+".resources", below+"resources.", report)
		case !alike(own, f.Value):
			report(path+"."+f.Key, below+f.Key)
		}
	}
}

// alike reports whether two values are written the same, wherever they are.
func alike(a, b *structural.Node) bool {
	return a.Kind == b.Kind && a.Text == b.Text && slices.EqualFunc(a.Items, b.Items, alike) &&
		slices.EqualFunc(a.Fields, b.Fields, func(a, b structural.Entry) bool {
			return a.Key == b.Key && alike(a.Value, b.Value)
		})
}
