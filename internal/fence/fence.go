// Package fence makes rules of an Environment with fence: true, by which no job leaves what the Environment says.
package fence

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/policy"
)

// rules are those of every fence. docs/environments.md lists what they forbid.
const rules = `
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
	hostUsers?:   true  @message("a fence leaves the users of pods to the cluster")
	nodeName?:    _|_   @message("a fence leaves the choice of nodes to the scheduler")
	automountServiceAccountToken!: false @message("a fence allows no token of the API: these pods get one")
	ephemeralContainers?: _|_ @message("a fence allows no ephemeral containers")
	securityContext?: {_profiles, sysctls?: _|_ @message("a fence allows no settings of the kernel")}
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
		_profiles
		privileged?:               false     @message("a fence allows no privileged containers")
		allowPrivilegeEscalation!: false     @message("a fence allows no privilege escalation")
		procMount?:                "Default" @message("a fence allows no other view of /proc")
		capabilities?: add?: [..."IPC_LOCK"] @message("a fence allows no capability but IPC_LOCK")
	} @message("a fence demands allowPrivilegeEscalation: false")
}

_profiles: {
	seccompProfile?:  type!: "RuntimeDefault" | "Localhost" @message("a fence demands a seccomp profile")
	appArmorProfile?: type!: "RuntimeDefault" | "Localhost" @message("a fence demands an AppArmor profile")
	seLinuxOptions?: _|_ @message("a fence leaves SELinux to the cluster")
	windowsOptions?: hostProcess?: false @message("a fence allows no processes of the node")
}

object: PersistentVolume: spec: {
	hostPath?: _|_ @message("a fence allows no directories of nodes")
	local?:    _|_ @message("a fence allows no disks of nodes")
}
`

// noRoot are further rules, unless the Environment itself says which user processes have.
const noRoot = `
pod: spec: {
	securityContext!: {_user, runAsNonRoot!: true @message("a fence allows no root: set security.runAsUser")}
	containers: [...{securityContext?: _user}]
	initContainers?: [...{securityContext?: _user}]
}

_user: {
	runAsUser?:    !=0  @message("a fence allows no root")
	runAsNonRoot?: true @message("a fence allows no root")
}
`

// Environment is what a fence takes from an Environment.
type Environment struct {
	Name, Namespace string
	Identity        bool // it sets one; jobs cannot
	User            bool // it sets the user of processes, which may be root
	Egress          bool // it closes connections; jobs make no exceptions
	Sidecars        bool // it sets them; no podTemplate changes init containers that have their image elsewhere
	NodeSelector    map[string]string
	Caps            map[string]*resource.Quantity // by name of a resource; nil is no cap
	Shm             *resource.Quantity            // of volumes in memory; nil is no cap
	Template        []Field
}

// Field is one that no podTemplate may set, since the Environment does.
type Field struct {
	Path      string // in the pod's spec, such as resources.limits
	Container bool   // the path is of the container that tegen renders
	By        string // field of the Environment, such as overrides.resources
}

// Policy makes the rules of an Environment, with the Go type of a job. Its violations name the Environment as the place
// of the rule.
func (env *Environment) Policy(job reflect.Type) (*policy.Policy, error) {
	name := "fence of Environment " + env.Name
	loaded, err := policy.Load([]policy.Source{
		{Name: name, Scope: name, Rules: name, Text: []byte(rules)},
		{Name: name + ", own rules", Scope: name, Rules: name, Text: []byte(env.text())},
	}, policy.Types{
		Job: job, Pod: reflect.TypeFor[corev1.PodTemplateSpec](),
		Object: func(string) []reflect.Type { return []reflect.Type{reflect.TypeFor[corev1.PersistentVolume]()} },
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
		message("a fence allows no namespace but %s", env.Namespace))
	if !env.Identity {
		fmt.Fprintf(&b, "job: spec: identity?: {irsa?: _|_, podIdentity?: _|_, serviceAccount?: _|_} %s\n",
			message("a fence allows no identity but that of the Environment, which sets none"))
	}
	if !env.User {
		b.WriteString(noRoot)
	}
	if env.Egress {
		fmt.Fprintf(&b, "job: spec: network?: allowTo?: _|_ %s\n",
			message("a fence allows no exceptions of overrides.network.egress: the Environment sets allowTo"))
	}
	if env.Sidecars {
		fmt.Fprintf(&b, "_template: spec?: initContainers?: [...{image!: _ %s}]\n",
			message("a fence allows no podTemplate to change containers of the Environment"))
	}
	for _, f := range env.Template {
		fmt.Fprintf(&b, "_template: spec?: %s\n", f.rule())
	}
	for _, key := range slices.Sorted(maps.Keys(env.NodeSelector)) {
		value := env.NodeSelector[key]
		fmt.Fprintf(&b, "pod: spec: nodeSelector!: %q!: %q %s\n", key, value, message("a fence demands the nodes of "+
			"overrides.placement: set nodeSelector of the group or role to %s: %s", key, value))
	}
	limits := ""
	for _, name := range slices.Sorted(maps.Keys(env.Caps)) {
		if most := env.Caps[name]; most != nil {
			limits += fmt.Sprintf("\t%q!: <=%s %s\n", name, most.AsDec(),
				message("a fence demands a limit of at most %s, the cap of the Environment", most))
		}
	}
	if limits != "" {
		fmt.Fprintf(&b, "pod: spec: {containers: [..._capped], initContainers?: [..._capped], resources?: _|_ %s}\n"+
			"_capped: resources: limits: {\n%s}\n",
			message("a fence with caps allows no resources of pods: set those of containers"), limits)
	}
	if env.Shm != nil {
		fmt.Fprintf(&b, "pod: spec: volumes?: [...{emptyDir?: "+
			"({medium?: \"\"} | {medium!: _, sizeLimit!: <=%s}) %s}]\n", env.Shm.AsDec(),
			message("a fence demands a size of at most %s for memory, the cap of the Environment", env.Shm))
	}
	return b.String()
}

// rule forbids the field, in the form of a policy.
func (f Field) rule() string {
	rule := strings.ReplaceAll(f.Path, ".", "?: ") + "?: _|_"
	if f.Container { // the author's own containers have an image, that of tegen has none
		rule = "containers?: [...({image!: _} | {image?: _|_, " + rule + "})]"
	}
	rule += " " + message("a fence allows no podTemplate to set %s, which the Environment sets in %s", f.Path, f.By)
	return rule
}

func message(format string, args ...any) string {
	return fmt.Sprintf("@message(%q)", fmt.Sprintf(format, args...))
}
