package environment

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/fence"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/rule"
)

// followers are fields of pods that tegen derives from job fields with another name, in addition to overrides.
var followers = []override{
	{template: "priority", job: "placement.priorityClass"},
	{template: "schedulerName", job: "gang"},
	{template: "imagePullSecrets", job: "imagePullSecrets"},
	{template: "initContainers", job: "sidecars images"},
	{template: "nodeSelector", job: "placement.spot placement.provisioner resources.machine"},
	{template: "tolerations", job: "placement.spot placement.provisioner resources.machine"},
	{template: "volumes", job: "code script resources"},
	{template: "resourceClaims", job: "resources"},
	{template: "resources", job: "resources"},
	{container: true, template: "volumeMounts", job: "storage code script"},
	{container: true, template: "env", job: "network rendezvous checkpoint"},
	{container: true, template: "ports", job: "metrics"},
	{container: true, template: "resources.claims", job: "resources"},
	{container: true, template: "resources.limits", job: "network.fabric"},
	{container: true, template: "securityContext", job: "network.fabric"},
}

// beside are fields of a job that decide what an override of another name decides too.
var beside = []struct{ override, job string }{
	{"resources", "resources.requests resources.limits resources.machine resources.devices resources.deviceClass " +
		"resources.deviceSelectors resources.claims resources.gpuResource"},
	{"gang", "placement.scheduler"},
	{"placement.priorityClass", "gang.priority"},
	{"network.egress", "network.allowTo rendezvous.endpoint rendezvous.companion.etcd images.fetch images.git " +
		"images.aws"},
	{"network.fabric", "resources.devices resources.machine"},
	{"workers.replicas", "workers.min workers.max"},
	{"ttlAfterFinished", "gitops"},
	{"failure.restarts", "failure.restartsPerWorker failure.restartAll failure.rules"},
	{"failure.deadline", "failure.rules"},
}

// SetFence makes the rules of an Environment with a fence.
func (env *Environment) SetFence() structural.Errors {
	switch {
	case !env.Spec.Fence:
		return nil
	case env.Spec.Namespace == "":
		return structural.Errors{env.Root.Errorf("spec.fence", "requires",
			"needs spec.namespace: the only namespace of its jobs")}
	}
	rules := fence.Environment{
		Name: env.Metadata.Name, Namespace: env.Spec.Namespace, Shm: env.Spec.Caps.Shm,
		AllowsIdentity: env.overrides("identity") != nil, ReadsStorage: env.overrides("storage") != nil,
		Caps: map[string]*resource.Quantity{
			"cpu": env.Spec.Caps.CPU, "memory": env.Spec.Caps.Memory,
			"ephemeral-storage": env.Spec.Caps.EphemeralStorage,
		},
	}
	if user := env.overrides("security.runAsUser"); user != nil {
		rules.AllowsRoot = user.Text == "0" || user.Text == "image"
	}
	if labels := env.overrides("placement.nodeSelector"); labels != nil && !env.Spec.Anywhere {
		rules.NodeSelector = map[string]string{}
		for _, f := range labels.Fields {
			rules.NodeSelector[f.Key] = f.Value.Text
		}
	}
	for _, o := range slices.Concat(overrides, followers) {
		if by := env.setBy(o); by != "" {
			rules.Template = append(rules.Template, fence.Field{
				Path: o.template, Container: o.container, Every: o.template == "volumeMounts", By: by,
			})
		}
	}
	if errs := env.againstFence(); len(errs) > 0 {
		return errs
	}
	var err error
	if env.Fence, err = rules.Policy(reflect.TypeFor[job.Job]()); err != nil {
		return structural.Errors{env.Root.Errorf("spec.fence", "policy", "%v", err)}
	}
	return nil
}

// againstFence are what an Environment itself sets and its fence refuses in every job.
func (env *Environment) againstFence() (errs structural.Errors) {
	for _, row := range []struct{ field, value string }{
		{"network.host", "true"}, {"network.policy", "false"}, {"createNamespace", "true"},
	} {
		for _, part := range []string{"defaults", "overrides"} {
			path := "spec." + part + "." + row.field
			set := env.Root.Below(strings.Split(path, ".")...)
			if set != nil && set.Text == row.value {
				errs = append(errs, env.Root.Errorf(path, "policy", "spec.fence refuses it in every job: leave it out"))
			}
		}
	}
	if env.Root.Below("spec", "defaults", "identity") != nil && env.overrides("identity") == nil {
		errs = append(errs, env.Root.Errorf("spec.defaults.identity", "policy",
			"spec.fence refuses this in every job: set it in overrides"))
	}
	if env.Root.Below("spec", "storage", "hostPath") != nil {
		errs = append(errs, env.Root.Errorf("spec.storage.hostPath", "policy",
			"spec.fence refuses directories of nodes in every job: set another kind of storage"))
	}
	return errs
}

// overrides is the value of a field of overrides, such as placement.nodeSelector; nil if it is not set.
func (env *Environment) overrides(field string) *structural.Node {
	return env.Root.Below(append([]string{"spec", "overrides"}, strings.Split(field, ".")...)...)
}

// setBy is the field of an Environment that sets what a row is about, "" if none does.
func (env *Environment) setBy(o override) string {
	for field := range strings.FieldsSeq(o.job) {
		if env.overrides(field) != nil {
			return "overrides." + field
		}
	}
	fields := map[string]string{
		"nodeSelector": "accelerator.nodeSelector", "tolerations": "accelerator.tolerations",
		"runtimeClassName": "accelerator.runtimeClass", "resources.limits": "accelerator.each",
		"resources.requests": "accelerator.each", "volumes": "storage",
	}
	if field := fields[o.template]; field != "" &&
		env.Root.Below(append([]string{"spec"}, strings.Split(field, ".")...)...) != nil {
		return field
	}
	return ""
}

// Conflicts are fields of a job, before the Environment is merged into it, that decide otherwise what overrides decide.
func (env *Environment) Conflicts(j *structural.Node) (errs structural.Errors) {
	overrides, spec := env.Root.Below("spec", "overrides"), j.Field("spec")
	if !env.Spec.Fence || overrides == nil || spec == nil || spec.Kind != yamldoc.Map {
		return nil
	}
	report := func(path, by string) {
		errs = append(errs, j.Errorf(path, "policy",
			"the Environment sets overrides.%s: leave it out (fence of Environment %s)", by, env.Metadata.Name))
	}
	for _, row := range beside {
		if env.overrides(row.override) == nil {
			continue
		}
		for field := range strings.FieldsSeq(row.job) {
			if spec.Below(strings.Split(field, ".")...) != nil && env.overrides(field) == nil {
				report("spec."+field, row.override)
			}
		}
	}
	if overrides.Field("groups") == nil {
		for i, group := range rule.GroupItems(spec) {
			sectionConflicts(group, overrides, nil, fmt.Sprintf("spec.groups[%d]", i), "", report)
		}
	}
	for _, row := range job.RoleTable {
		role := spec.Below("roles", row.Name)
		if role == nil {
			continue
		}
		own := overrides.Below("roles", row.Name)
		if own != nil && role.Field("podTemplate") != nil {
			report("spec.roles."+row.Name+".podTemplate", "roles."+row.Name)
		}
		sectionConflicts(role, overrides, own, "spec.roles."+row.Name, "", report)
	}
	return errs
}

// sectionConflicts reports fields of a group or role that overrides have for the whole job, less those of the role
// itself, which are replaced.
func sectionConflicts(section, overrides, replaced *structural.Node, path, below string, report func(path, by string)) {
	for _, f := range overrides.Fields {
		own := section.Field(f.Key)
		switch {
		case f.Key == "placement": // a section has these fields itself
			sectionConflicts(section, f.Value, replaced, path, "placement.", report)
		case own == nil, replaced != nil && replaced.Field(f.Key) != nil:
		case f.Key == "nodeSelector": // the fence demands the labels of the Environment in all pods
		case f.Key == "resources" && own.Kind == yamldoc.Map:
			for _, field := range own.Fields {
				plain := slices.Contains([]string{"cpu", "memory", "gpu", "ephemeralStorage"}, field.Key)
				if f.Value.Field(field.Key) != nil || !plain {
					report(path+".resources."+field.Key, "resources")
				}
			}
		default:
			report(path+"."+f.Key, below+f.Key)
		}
	}
}
