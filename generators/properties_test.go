package generators_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// properties hold for whatever any job renders to. Each returns what is wrong, so that TestPropertiesCatch can show
// that it is able to.
var properties = map[string]func(j *job.Job, objs []runtime.Object) []string{
	"names":       dnsNames,
	"namespaces":  namespaces,
	"kept":        keptData,
	"selectors":   selectors,
	"claims":      claimTemplates,
	"references":  references,
	"restricted":  restrictedPods,
	"limits":      limits,
	"helpers":     helpersAsLittle,
	"accelerator": acceleratorLimits,
	"images":      images,
	"secrets":     secrets,
	"shm":         sharedMemory,
	"scripts":     shellScripts,
	"environment": environmentOrder,
	"ports":       openPorts,
}

func TestProperties(t *testing.T) {
	eachJob(t, func(t *testing.T, j *job.Job, objs []runtime.Object) {
		for name, check := range properties {
			for _, wrong := range check(j, objs) {
				t.Errorf("%s: %s: %s", j.Metadata.Name, name, wrong)
			}
		}
	})
}

func dnsNames(_ *job.Job, objs []runtime.Object) (wrong []string) {
	bad := func(what, name string, msgs []string) {
		for _, m := range msgs {
			wrong = append(wrong, fmt.Sprintf("%s %q: %s", what, name, m))
		}
	}
	for _, obj := range objs {
		var labels []map[string]string
		switch o := obj.(type) {
		case *corev1.Service:
			bad("Service", o.Name, validation.IsDNS1035Label(o.Name))
		case *corev1.Pod:
			bad("Pod", o.Name, validation.IsDNS1123Label(o.Name))
		case *batchv1.Job: // every pod carries the Job's name in a label, and its own is <job>-<index>
			bad("Job", o.Name, validation.IsDNS1123Label(o.Name))
			if n := o.Spec.Completions; n != nil {
				hostname := fmt.Sprintf("%s-%d", o.Name, *n-1)
				bad("hostname", hostname, validation.IsDNS1123Label(hostname))
			}
			labels = append(labels, o.Spec.Template.Labels)
		case *appsv1.StatefulSet:
			bad("StatefulSet", o.Name, validation.IsDNS1123Label(fmt.Sprintf("%s-%d", o.Name, *o.Spec.Replicas-1)))
			bad("revision label", o.Name, validation.IsValidLabelValue(o.Name+"-0123456789"))
			labels = append(labels, o.Spec.Template.Labels)
		case *corev1.Namespace:
			bad("Namespace", o.Name, validation.IsDNS1123Label(o.Name))
		}
		m, ok := obj.(interface {
			GetName() string
			GetLabels() map[string]string
			GetAnnotations() map[string]string
		})
		if !ok {
			wrong = append(wrong, fmt.Sprintf("%T has no metadata", obj))
			continue
		}
		bad(fmt.Sprintf("%T", obj), m.GetName(), validation.IsDNS1123Subdomain(m.GetName()))
		for _, l := range append(labels, m.GetLabels()) {
			for k, v := range l {
				bad("label", k, validation.IsQualifiedName(k))
				bad("label "+k, v, validation.IsValidLabelValue(v))
			}
		}
		for k := range m.GetAnnotations() {
			bad("annotation", k, validation.IsQualifiedName(k))
		}
	}
	for _, obj := range objs {
		if w := apis.WorkloadOf(obj); w != nil {
			for _, made := range w.Services() {
				for name := range made.Names() {
					bad("Service", name, validation.IsDNS1035Label(name))
				}
			}
			for _, set := range w.PodSets() {
				name := set.Name
				if set.Numbered {
					name += fmt.Sprintf("-%d", set.First+set.Numbers()-1)
				}
				// Kubernetes' own controllers make room for the random end
				if !apis.IsBuiltIn(reflect.TypeOf(obj).Elem().Name()) {
					name += strings.Repeat("-abcde", set.Random) // JobSet's webhook counts it
				}
				bad("pod", name, validation.IsDNS1123Label(name))
			}
		}
	}
	for _, p := range pods(objs) {
		if p.spec.Subdomain != "" {
			bad("subdomain of "+p.from, p.spec.Subdomain, validation.IsDNS1123Label(p.spec.Subdomain))
		}
		for _, v := range p.spec.Volumes {
			bad("volume of "+p.from, v.Name, validation.IsDNS1123Label(v.Name))
		}
		for _, c := range p.containers() {
			bad("container of "+p.from, c.Name, validation.IsDNS1123Label(c.Name))
			for _, e := range c.Env {
				bad("variable of "+p.from, e.Name, validation.IsEnvVarName(e.Name))
				if host, _, ok := strings.Cut(e.Value, ":"); ok && strings.HasSuffix(e.Name, "RDZV_ENDPOINT") {
					bad("endpoint", host, validation.IsDNS1123Subdomain(host))
					for label := range strings.SplitSeq(host, ".") {
						bad("endpoint's label", label, validation.IsDNS1123Label(label))
					}
				}
			}
		}
	}
	return wrong
}

func namespaces(j *job.Job, objs []runtime.Object) (wrong []string) {
	for _, obj := range objs {
		m := obj.(interface {
			GetName() string
			GetNamespace() string
			GetLabels() map[string]string
		})
		want := j.Metadata.Namespace
		switch obj.(type) {
		case *corev1.Namespace, *corev1.PersistentVolume, *storagev1.StorageClass:
			want = ""
			if m.GetLabels()["tegen.dev/namespace"] != j.Metadata.Namespace {
				wrong = append(wrong, fmt.Sprintf("%T %s does not say whose it is", obj, m.GetName()))
			}
		}
		if m.GetNamespace() != want {
			wrong = append(wrong, fmt.Sprintf("%T %s is in namespace %q, want %q", obj, m.GetName(), m.GetNamespace(),
				want))
		}
		l := m.GetLabels()
		of := names.JobOf(func(key string) string { return l[key] })
		if of != j.Metadata.Name || l["app.kubernetes.io/managed-by"] != "tegen" {
			wrong = append(wrong, fmt.Sprintf("%T %s lacks the job's labels: %v", obj, m.GetName(), l))
		}
	}
	return wrong
}

// keptData are those objects that stay when the job goes: the Namespace, and what volumes consist of, unless their
// author says otherwise. They have what keeps reconcilers from pruning them, and not the label by which people delete a
// job; all others have that label, and nothing that keeps them. The scheduler, which is of no job, has no such label.
func keptData(j *job.Job, objs []runtime.Object) (wrong []string) {
	goes, claimOf := map[string]bool{}, map[string]string{}
	if j != nil {
		for i := range j.Spec.Storage {
			v := &j.Spec.Storage[i]
			goes[v.ClaimName(j)] = v.OnDelete == "delete"
		}
	}
	for _, claim := range all[*corev1.PersistentVolumeClaim](objs) {
		if class := claim.Spec.StorageClassName; class != nil {
			claimOf[*class] = claim.Name
		}
	}
	for _, obj := range objs {
		want := false
		switch o := obj.(type) {
		case *corev1.Namespace:
			want = true
		case *corev1.PersistentVolumeClaim:
			want = !goes[o.Name]
		case *corev1.PersistentVolume:
			want = !goes[o.Spec.ClaimRef.Name]
		case *storagev1.StorageClass:
			want = !goes[claimOf[o.Name]]
		}
		m := obj.(metav1.Object)
		_, selected := m.GetLabels()["tegen.dev/job"]
		_, data := m.GetLabels()["tegen.dev/data"]
		options := strings.Split(m.GetAnnotations()["argocd.argoproj.io/sync-options"], ",")
		argo := slices.Contains(options, "Prune=false") && slices.Contains(options, "Delete=false") &&
			m.GetAnnotations()["argocd.argoproj.io/compare-options"] == "IgnoreExtraneous"
		flux := m.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"] == "disabled"
		if data != want || argo != want || flux != want || selected != (j != nil && !want) {
			wrong = append(wrong, fmt.Sprintf("%T %s is kept: want %t, labels %v, annotations %v", obj, m.GetName(),
				want, m.GetLabels(), m.GetAnnotations()))
		}
	}
	return wrong
}

// selectors holds every selector against the pods: each selects some, and never those of another component.
func selectors(_ *job.Job, objs []runtime.Object) (wrong []string) {
	selected := func(labels map[string]string) (from []string) {
		for _, p := range pods(objs) {
			if contains(p.labels, labels) {
				from = append(from, p.from)
			}
		}
		return from
	}
	for _, obj := range objs {
		var labels map[string]string
		var name, component string
		switch o := obj.(type) {
		case *corev1.Service:
			labels, name, component = o.Spec.Selector, "Service "+o.Name, o.Labels["app.kubernetes.io/component"]
		case *policyv1.PodDisruptionBudget:
			labels, name, component = o.Spec.Selector.MatchLabels, "budget "+
				o.Name, o.Labels["app.kubernetes.io/component"]
		case *networkingv1.NetworkPolicy:
			labels, name, component = o.Spec.PodSelector.MatchLabels, "policy "+
				o.Name, o.Labels["app.kubernetes.io/component"]
		case *appsv1.StatefulSet:
			if !contains(o.Spec.Template.Labels, o.Spec.Selector.MatchLabels) {
				wrong = append(wrong, "StatefulSet "+o.Name+" does not select its own pods")
			}
			continue
		default:
			continue
		}
		from := selected(labels)
		if len(labels) == 0 || len(from) == 0 {
			wrong = append(wrong, fmt.Sprintf("%s selects no pod with %v", name, labels))
		}
		for _, p := range pods(objs) {
			if slices.Contains(from, p.from) && p.labels["app.kubernetes.io/component"] != component {
				wrong = append(wrong, fmt.Sprintf("%s of %s selects %s", name, component, p.from))
			}
		}
	}
	return wrong
}

// claimTemplates have what an API server would add to them: Argo CD would find them changed after each sync.
func claimTemplates(_ *job.Job, objs []runtime.Object) (wrong []string) {
	for _, set := range all[*appsv1.StatefulSet](objs) {
		for _, claim := range set.Spec.VolumeClaimTemplates {
			if claim.APIVersion != "v1" || claim.Kind != "PersistentVolumeClaim" {
				wrong = append(wrong, fmt.Sprintf("StatefulSet %s: claim %s is of kind %q and version %q", set.Name,
					claim.Name, claim.Kind, claim.APIVersion))
			}
		}
	}
	return wrong
}

func contains(labels, want map[string]string) bool {
	for k, v := range want {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func references(_ *job.Job, objs []runtime.Object) (wrong []string) {
	for _, b := range refs.Check(objs) {
		wrong = append(wrong, b.String())
	}
	return wrong
}

// restrictedPods is the restricted Pod Security Standard, rule by rule
// (kubernetes.io/docs/concepts/security/pod-security-standards). The node's network is what an author asks for against
// it. Rights that an author leaves to his image, or takes, are those of pods that run it.
func restrictedPods(j *job.Job, objs []runtime.Object) (wrong []string) {
	sec := &j.Spec.Security
	for _, p := range pods(objs) {
		if job.Trains(p.role()) && (!sec.Restricted || sec.RunAsUser.Number == nil) {
			continue
		}
		for _, w := range restricted(p.spec) {
			if j.Spec.Network.Host && (strings.Contains(w, "its host") || strings.Contains(w, "host port")) {
				continue
			}
			if fabricNeeds(j, p, w) {
				continue
			}
			wrong = append(wrong, p.from+": "+w)
		}
	}
	return wrong
}

// fabricNeeds says whether a worker does against the standard what its fabric cannot do without.
func fabricNeeds(j *job.Job, p pod, wrong string) bool {
	f := j.Fabric()
	return f != nil && p.role() == job.RoleWorker &&
		(f.LocksMemory() && strings.HasSuffix(wrong, "IPC_LOCK") || strings.Contains(wrong, "volume fabric-"))
}

func restricted(p corev1.PodSpec) (wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if p.HostNetwork || p.HostPID || p.HostIPC {
		fail("shares a namespace with its host")
	}
	for _, v := range p.Volumes {
		s := v.VolumeSource
		if s.ConfigMap == nil && s.CSI == nil && s.DownwardAPI == nil && s.EmptyDir == nil && s.Ephemeral == nil &&
			s.Image == nil && // since Kubernetes 1.33
			s.PersistentVolumeClaim == nil && s.Projected == nil && s.Secret == nil {
			fail("volume %s is of a type that is not allowed: %+v", v.Name, s)
		}
	}
	pod := p.SecurityContext
	if pod == nil {
		pod = &corev1.PodSecurityContext{}
	}
	if pod.SELinuxOptions != nil || pod.WindowsOptions != nil || len(pod.Sysctls) > 0 || pod.AppArmorProfile != nil {
		fail("sets kernel options")
	}
	if pod.RunAsUser != nil && *pod.RunAsUser == 0 {
		fail("runs as root")
	}
	for _, c := range slices.Concat(p.InitContainers, p.Containers) {
		s := c.SecurityContext
		if s == nil {
			s = &corev1.SecurityContext{}
		}
		nonRoot, seccomp, capabilities := s.RunAsNonRoot, s.SeccompProfile, s.Capabilities
		if nonRoot == nil {
			nonRoot = pod.RunAsNonRoot
		}
		if seccomp == nil {
			seccomp = pod.SeccompProfile
		}
		if capabilities == nil {
			capabilities = &corev1.Capabilities{}
		}
		if nonRoot == nil || !*nonRoot {
			fail("container %s may run as root", c.Name)
		}
		if s.RunAsUser != nil && *s.RunAsUser == 0 {
			fail("container %s runs as root", c.Name)
		}
		if seccomp == nil || seccomp.Type != corev1.SeccompProfileTypeRuntimeDefault &&
			seccomp.Type != corev1.SeccompProfileTypeLocalhost {
			fail("container %s has no seccomp profile", c.Name)
		}
		if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
			fail("container %s may escalate its privileges", c.Name)
		}
		if s.Privileged != nil && *s.Privileged {
			fail("container %s is privileged", c.Name)
		}
		if !slices.Contains(capabilities.Drop, "ALL") {
			fail("container %s keeps capabilities", c.Name)
		}
		for _, added := range capabilities.Add {
			if added != "NET_BIND_SERVICE" {
				fail("container %s adds capability %s", c.Name, added)
			}
		}
		if s.ProcMount != nil || s.SELinuxOptions != nil || s.WindowsOptions != nil || s.AppArmorProfile != nil {
			fail("container %s sets kernel options", c.Name)
		}
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				fail("container %s takes host port %d", c.Name, port.HostPort)
			}
		}
	}
	return wrong
}

// tegens are the containers that tegen makes; an author's podTemplate may bring others.
var tegens = func() []string {
	names := []string{
		job.ContainerFetch, job.ContainerGenerate, job.ContainerStore,
		"install-launcher", "wait-for-dataset", "fetch-script",
	}
	for _, role := range schema.RoleNames() {
		names = append(names, containersOf(role)...)
	}
	return names
}()

// limits: a container's requests equal its limits, unless its author says otherwise of its role. It may have neither
// of local disk.
func limits(j *job.Job, objs []runtime.Object) (wrong []string) {
	for _, p := range pods(objs) {
		for _, c := range p.containers() {
			// An installation has no job.
			tegens := slices.Contains(tegens, c.Name) || j != nil && j.Spec.Group(c.Name) != nil
			if !tegens || j != nil && saysOtherwise(j, p, c.Name) {
				continue
			}
			for _, name := range []corev1.ResourceName{
				corev1.ResourceCPU, corev1.ResourceMemory,
				corev1.ResourceEphemeralStorage,
			} {
				limit, ok := c.Resources.Limits[name]
				request := c.Resources.Requests[name]
				if name == corev1.ResourceEphemeralStorage && !ok && request.IsZero() {
					continue
				}
				if !ok || limit.Sign() <= 0 || limit.Cmp(request) != 0 {
					wrong = append(wrong, fmt.Sprintf("%s: container %s: %s: request %s, limit %s", p.from, c.Name,
						name, request.String(), limit.String()))
				}
			}
		}
	}
	return wrong
}

// helpersAsLittle: a pod asks for what its greediest init container does, so tegen's own ask for no more CPU than what
// they prepare.
func helpersAsLittle(_ *job.Job, objs []runtime.Object) (wrong []string) {
	for _, p := range pods(objs) {
		var most resource.Quantity
		for _, c := range p.spec.Containers {
			most.Add(*c.Resources.Requests.Cpu())
		}
		for _, c := range p.spec.InitContainers {
			if cpu := c.Resources.Requests.Cpu(); slices.Contains(tegens, c.Name) && cpu.Cmp(most) > 0 {
				wrong = append(wrong, fmt.Sprintf("%s: init container %s asks for %s of CPU, the pod's own for %s",
					p.from, c.Name, cpu, &most))
			}
		}
	}
	return wrong
}

// acceleratorLimits: an extended resource is an integer under limits alone, and only workers hold one.
func acceleratorLimits(j *job.Job, objs []runtime.Object) (wrong []string) {
	for _, p := range pods(objs) {
		for _, c := range p.containers() {
			for name := range c.Resources.Requests {
				// Whose master reads it there.
				if strings.Contains(string(name), "/") && j.Spec.Framework != job.FrameworkDLRover {
					wrong = append(wrong, fmt.Sprintf("%s: container %s requests %s", p.from, c.Name, name))
				}
			}
			trains := slices.Contains(trainers, c.Name) && p.labels["app.kubernetes.io/component"] == "worker"
			accelerator, count := corev1.ResourceName(j.Spec.Resources.GPUResource), j.Spec.Resources.GPU
			if j.Spec.Resources.DeviceClass != "" {
				count = 0 // a claim has them
			}
			if g := j.Spec.Group(c.Name); g != nil {
				trains, accelerator, count = true, corev1.ResourceName(g.Resources.GPUResource), g.Resources.GPU
			}
			for name, q := range c.Resources.Limits {
				if strings.Contains(string(name), "/") && !trains {
					wrong = append(wrong, fmt.Sprintf("%s: container %s has %s %s, want none", p.from, c.Name, &q,
						name))
				}
			}
			if got := c.Resources.Limits[accelerator]; trains && got.Value() != count {
				wrong = append(wrong, fmt.Sprintf("%s: container %s has %s accelerators, want %d", p.from, c.Name,
					&got, count))
			}
		}
	}
	return wrong
}

func images(_ *job.Job, objs []runtime.Object) (wrong []string) {
	for _, p := range pods(objs) {
		for _, c := range p.containers() {
			name := c.Image[strings.LastIndex(c.Image, "/")+1:]
			if !strings.ContainsAny(name, ":@") || strings.HasSuffix(name, ":latest") ||
				strings.Contains(name, ":latest@") {
				wrong = append(wrong, fmt.Sprintf("%s: image %s is not pinned", p.from, c.Image))
			}
		}
	}
	return wrong
}

// secrets: tegen handles names of Secrets, never their content.
func secrets(_ *job.Job, objs []runtime.Object) (wrong []string) {
	for _, obj := range objs {
		if s, ok := obj.(*corev1.Secret); ok && len(s.Data)+len(s.StringData) > 0 {
			wrong = append(wrong, "renders Secret "+s.Name)
		}
	}
	return wrong
}

func sharedMemory(tj *job.Job, objs []runtime.Object) (wrong []string) {
	if tj != nil && tj.Spec.Resources.Shm.None {
		return nil
	}
	for _, p := range pods(objs) {
		for _, c := range p.containers() {
			if !slices.Contains(trainers, c.Name) {
				continue
			}
			i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/dev/shm" })
			if i < 0 {
				wrong = append(wrong, p.from+": nothing at /dev/shm")
				continue
			}
			j := slices.IndexFunc(p.spec.Volumes,
				func(v corev1.Volume) bool { return v.Name == c.VolumeMounts[i].Name })
			dir := p.spec.Volumes[j].EmptyDir
			if dir == nil || dir.Medium != corev1.StorageMediumMemory || dir.SizeLimit == nil ||
				!c.Resources.Limits.Memory().IsZero() && dir.SizeLimit.Cmp(*c.Resources.Limits.Memory()) > 0 {
				wrong = append(wrong, fmt.Sprintf("%s: /dev/shm is %+v, with memory %s", p.from, dir,
					c.Resources.Limits.Memory()))
			}
		}
	}
	return wrong
}

// shellScripts hold nothing that another program than the shell would read first: ${ is Flux's, $( followed by a name
// and $$ are the kubelet's.
func shellScripts(j *job.Job, objs []runtime.Object) (wrong []string) {
	for _, p := range pods(objs) {
		for _, c := range p.containers() {
			if len(c.Command) < 3 || c.Command[1] != "-c" || !slices.Contains(tegens, c.Name) ||
				slices.Contains(j.Spec.Command, c.Command[2]) {
				continue
			}
			script := c.Command[2]
			wrong = append(wrong, foreignSyntax(p.from+": the script of "+c.Name, script)...)
			if isShell := c.Command[0] == "sh"; isShell && !strings.HasPrefix(script, "set -eu\n") {
				wrong = append(wrong, fmt.Sprintf("%s: the script of %s goes on after a failure", p.from, c.Name))
			}
		}
	}
	for _, obj := range objs {
		if m, ok := obj.(*corev1.ConfigMap); ok {
			for name, script := range m.Data {
				wrong = append(wrong, foreignSyntax(m.Name+"/"+name, script)...)
			}
		}
	}
	return wrong
}

func foreignSyntax(what, script string) (wrong []string) {
	script = strings.ReplaceAll(script, "$((", "")
	for _, taken := range []string{"${", "$(", "$$", "`"} {
		if strings.Contains(script, taken) {
			wrong = append(wrong, what+" holds "+taken)
		}
	}
	return wrong
}

var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)`)

// environmentOrder: the kubelet replaces $(NAME) in a value only where NAME stands before it.
func environmentOrder(_ *job.Job, objs []runtime.Object) (wrong []string) {
	for _, p := range pods(objs) {
		for _, c := range p.containers() {
			set := map[string]bool{}
			check := func(where, value string) {
				for _, m := range reference.FindAllStringSubmatch(value, -1) {
					if !set[m[1]] {
						wrong = append(wrong, fmt.Sprintf("%s: container %s: %s refers to %s, which is not set "+
							"before it", p.from, c.Name, where, m[1]))
					}
				}
			}
			for _, e := range c.Env {
				if set[e.Name] {
					wrong = append(wrong, fmt.Sprintf("%s: container %s sets %s twice", p.from, c.Name, e.Name))
				}
				check(e.Name, e.Value)
				set[e.Name] = true
			}
			for _, word := range slices.Concat(c.Command, c.Args) {
				check("command", word)
			}
		}
	}
	return wrong
}
