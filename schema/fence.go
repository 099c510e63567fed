package schema

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// fenceRules are the rules of every fence. docs/environments.md lists what they forbid.
const fenceRules = `
job: spec: {
	createNamespace?: false @message("a fence allows no Namespace: create it for the job")
	network?: {
		host?:   false @message("a fence allows no host network")
		policy?: true  @message("a fence demands NetworkPolicies")
	}
	storage?: [...{hostPath?: _|_ @message("a fence allows no directories of nodes")}]
	podTemplate?: _template
	groups?: [...{podTemplate?: _template}]
	roles?: {
		server?:    _role
		scheduler?: _role
		launcher?:  _role
		etcd?:      _role
		companion?: _role
		helper?:    _role
	}
}

_role: podTemplate?: _template

_template: spec?: serviceAccountName?: _|_ @message("a fence allows no other account: the Environment sets identity")

pod: spec: {
	hostNetwork?: false @message("a fence allows no host network")
	hostPID?:     false @message("a fence allows no processes of the node")
	hostIPC?:     false @message("a fence allows no memory of the node")
	nodeName?:    _|_   @message("a fence leaves the choice of nodes to the scheduler")
	automountServiceAccountToken!: false @message("a fence allows no token of the API: these pods get one")
	ephemeralContainers?: _|_ @message("a fence allows no ephemeral containers")
	containers: [..._container]
	initContainers?: [..._container]
	volumes?: [...{
		hostPath?: _|_ @message("a fence allows no directories of nodes")
		projected?: sources?: [...{
			serviceAccountToken?: _|_ @message("a fence allows no token of the API")
		}]
	}]
}

_container: {
	ports?: [...{hostPort?: _|_ @message("a fence allows no ports of nodes")}]
	securityContext!: {
		privileged?:               false @message("a fence allows no privileged containers")
		allowPrivilegeEscalation!: false @message("a fence allows no privilege escalation")
		procMount?:                "Default"
		capabilities?: add?: [..."IPC_LOCK"] @message("a fence allows no capability but IPC_LOCK")
		windowsOptions?: hostProcess?: false
	}
}

object: PersistentVolume: spec: {
	hostPath?: _|_ @message("a fence allows no directories of nodes")
	local?:    _|_ @message("a fence allows no disks of nodes")
}
`

// fenceTypes are what the rules constrain.
func fenceTypes() policy.Types {
	return policy.Types{
		Job: reflect.TypeFor[Job](), Pod: reflect.TypeFor[corev1.PodTemplateSpec](),
		Object: func(string) []reflect.Type { return []reflect.Type{reflect.TypeFor[corev1.PersistentVolume]()} },
	}
}

// setFence makes the rules of an Environment with a fence.
func (env *Environment) setFence() Errors {
	switch {
	case !env.Spec.Fence:
		return nil
	case env.Spec.Namespace == "":
		return Errors{env.root.Errorf("spec.fence", "requires", "needs spec.namespace: the only namespace of its jobs")}
	}
	name := "fence of Environment " + env.Metadata.Name
	fence, err := policy.Load([]policy.Source{
		{Name: name, Scope: name, Rules: name, Text: []byte(fenceRules)},
		{Name: name + ", own rules", Scope: name, Rules: name, Text: []byte(env.fenceText())},
	}, fenceTypes())
	if err != nil {
		return Errors{env.root.Errorf("spec.fence", "fence", "%v", err)}
	}
	env.fence = fence
	return nil
}

// fenceText are the rules that follow from an Environment.
func (env *Environment) fenceText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "job: metadata: namespace!: %q @message(%q)\n", env.Spec.Namespace,
		"a fence allows no namespace but "+env.Spec.Namespace)
	if env.root.Below("spec", "overrides", "identity") == nil {
		b.WriteString("job: spec: identity?: {irsa?: _|_, podIdentity?: _|_, serviceAccount?: _|_} " +
			"@message(\"a fence allows no identity but that of the Environment, which sets none\")\n")
	}
	b.WriteString(env.fencedTemplates())
	caps := ""
	for _, limit := range []struct {
		name string
		most *resource.Quantity
	}{
		{"cpu", env.Spec.Caps.CPU}, {"memory", env.Spec.Caps.Memory},
		{"ephemeral-storage", env.Spec.Caps.EphemeralStorage},
	} {
		if limit.most != nil {
			caps += fmt.Sprintf("\t%q!: <=%s @message(%q)\n", limit.name, limit.most.AsDec(),
				fmt.Sprintf("a fence demands a limit of at most %s, the cap of the Environment", limit.most))
		}
	}
	if caps != "" {
		b.WriteString("pod: spec: {containers: [..._capped], initContainers?: [..._capped]}\n" +
			"_capped: resources: limits: {\n" + caps + "}\n")
	}
	if shm := env.Spec.Caps.Shm; shm != nil {
		fmt.Fprintf(&b, "pod: spec: volumes?: [...{emptyDir?: ({medium?: !=\"Memory\"} | {medium!: \"Memory\", "+
			"sizeLimit!: <=%s}) @message(%q)}]\n", shm.AsDec(),
			fmt.Sprintf("a fence demands a size of at most %s for memory, the cap of the Environment", shm))
	}
	return b.String()
}

// fencedTemplates are rules for podTemplates: none sets again what the Environment sets.
func (env *Environment) fencedTemplates() string {
	var b strings.Builder
	for _, o := range overrides {
		by := env.sets(o)
		if by == "" {
			continue
		}
		rule := o.template
		if i := strings.LastIndex(rule, "."); i >= 0 {
			rule = rule[:i] + "?: " + rule[i+1:]
		}
		rule += fmt.Sprintf("?: _|_ @message(%q)", "a fence allows no podTemplate to set what the Environment sets in "+by)
		if o.container { // tegen's own has no image in a podTemplate
			rule = "containers?: [...({image!: _} | {image?: _|_, " + rule + "}) @message(" +
				strconv.Quote("a fence allows no podTemplate to set "+o.template+", which the Environment sets in "+by) + ")]"
		}
		fmt.Fprintf(&b, "_template: spec?: %s\n", rule)
	}
	return b.String()
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
		errs = append(errs, job.Errorf(path, "policy", "the Environment sets overrides.%s: leave it out (fence of Environment %s)",
			by, env.Metadata.Name))
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
		case own == nil:
		case f.Key == "resources" && own.Kind == yamldoc.Map:
			again(own, f.Value, path+".resources", below+"resources.", report)
		case own.Kind != f.Value.Kind || own.Text != f.Value.Text || len(own.Fields)+len(own.Items) > 0:
			report(path+"."+f.Key, below+f.Key)
		}
	}
}
