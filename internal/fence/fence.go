// Package fence turns an Environment with fence: true into the rules of a policy.
package fence

import (
	_ "embed"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/policy"
)

//go:embed rules.cue
var rules []byte

//go:embed user.cue
var noRoot []byte

// Environment is what a fence takes from an Environment.
type Environment struct {
	Name, Namespace string
	AllowsIdentity  bool // of a job, since the Environment replaces it
	AllowsRoot      bool // the Environment itself runs processes as root
	NodeSelector    map[string]string
	Caps            map[string]*resource.Quantity // by name of a resource; nil is no cap
	ReadsStorage    bool                          // sidecars do not write to volumes, which the Environment sets
	Shm             *resource.Quantity            // of volumes in memory; nil is no cap
	Template        []Field
}

// objects are the types of kinds with rules.
var objects = map[string]reflect.Type{
	"PersistentVolume":   reflect.TypeFor[corev1.PersistentVolume](),
	"StorageClass":       reflect.TypeFor[storagev1.StorageClass](),
	"RoleBinding":        reflect.TypeFor[rbacv1.RoleBinding](),
	"ClusterRoleBinding": reflect.TypeFor[rbacv1.ClusterRoleBinding](),
}

// Field is one that no podTemplate may set, since the Environment does.
type Field struct {
	Path      string // in the pod's spec, such as resources.limits
	Container bool   // the path is of the container that tegen renders
	Every     bool   // the path is of all containers
	By        string // field of the Environment, such as overrides.resources
}

// Policy makes the rules of an Environment, with the Go type of a job. Its violations name the Environment as the place
// of the rule.
func (env *Environment) Policy(job reflect.Type) (*policy.Policy, error) {
	name := "fence of Environment " + env.Name
	source := func(part string, text []byte) policy.Source {
		return policy.Source{Name: name + ", " + part, Scope: name, Rules: name, Text: text}
	}
	sources := []policy.Source{source("rules", rules), source("own rules", []byte(env.text()))}
	if !env.AllowsRoot {
		sources = append(sources, source("user", noRoot))
	}
	loaded, err := policy.Load(sources, policy.Types{
		Job: job, Pod: reflect.TypeFor[corev1.PodTemplateSpec](),
		Object: func(kind string) []reflect.Type { return []reflect.Type{objects[kind]} },
	})
	if err != nil {
		return nil, fmt.Errorf("rules of %s: %w", name, err)
	}
	return loaded, nil
}

// text are the rules that follow from what the Environment says.
func (env *Environment) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "job: metadata: namespace!: %q %s\n", env.Namespace,
		message("not allowed: a namespace but %s", env.Namespace))
	if !env.AllowsIdentity {
		fmt.Fprintf(&b, "job: spec: identity?: _|_ %s\n",
			message("not allowed: an identity, since the Environment sets none"))
	}
	if env.ReadsStorage {
		fmt.Fprintf(&b, "job: spec: sidecars?: [...{mounts?: [...{readOnly?: true %s}]}]\n",
			message("required: readOnly, since the Environment sets overrides.storage"))
	}
	for _, kind := range []string{"PersistentVolume", "StorageClass"} { // they have no namespace
		fmt.Fprintf(&b, "object: %s: metadata: name!: =~%q %s\n", kind, "^"+env.Namespace+"-",
			message("required: a name that starts with %s-, since the object has no namespace", env.Namespace))
	}
	for _, f := range env.Template {
		fmt.Fprintf(&b, "_template: spec?: %s\n", f.rule())
	}
	for _, key := range slices.Sorted(maps.Keys(env.NodeSelector)) {
		value := env.NodeSelector[key]
		nodes := message("required: the nodes of overrides.placement: set nodeSelector of the group or role to "+
			"%s: %s", key, value)
		fmt.Fprintf(&b, "pod: spec: nodeSelector!: {%q!: %q %s} %s\n", key, value, nodes, nodes)
	}
	limits := ""
	for _, name := range slices.Sorted(maps.Keys(env.Caps)) {
		if most := env.Caps[name]; most != nil {
			limits += fmt.Sprintf("\t%q!: >0 & <=%s %s\n", name, decimal(most),
				message("required: a limit of at most %s, the cap; set it in resources of the job or role", most))
		}
	}
	if limits != "" {
		fmt.Fprintf(&b, "pod: spec: {containers: [..._capped], initContainers?: [..._capped], resources?: _|_ %s}\n"+
			"_capped: resources: limits: {\n%s}\n",
			message("not allowed: resources of pods; set those of containers"), limits)
	}
	if env.Shm != nil {
		fmt.Fprintf(&b, "pod: spec: volumes?: [...{emptyDir?: "+
			"({medium?: \"\"} | {medium!: _, sizeLimit!: >0 & <=%s}) %s}]\n", decimal(env.Shm),
			message("required: a size of at most %s in memory, the cap of the Environment", env.Shm))
	}
	return b.String()
}

// rule forbids the field, in the form of a policy.
func (f Field) rule() string {
	rule := strings.ReplaceAll(f.Path, ".", "?: ") + "?: _|_"
	if f.Container { // the author's own containers have an image, that of tegen has none
		rule = "containers?: [...({image!: _} | {image?: _|_, " + rule + "})]"
	}
	if f.Every {
		rule = "{containers?: [...{" + f.Path + "?: _|_}], initContainers?: [...{" + f.Path + "?: _|_}]}"
	}
	rule += " " + message("not allowed: a podTemplate with %s, which the Environment sets in %s", f.Path, f.By)
	return rule
}

// decimal is a quantity as a number of CUE. AsDec changes what it is called on.
func decimal(q *resource.Quantity) string {
	c := q.DeepCopy()
	return c.AsDec().String()
}

func message(format string, args ...any) string {
	return fmt.Sprintf("@message(%q)", fmt.Sprintf(format, args...))
}
