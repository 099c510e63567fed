package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kind "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// Controller is what must run in a cluster beside Kubernetes itself for a job's objects to have an effect.
type Controller struct {
	Name     string   `json:"name"`
	CRDs     []string `json:"crds"`
	Since    string   `json:"since"`
	Note     string   `json:"note,omitempty"`
	Requires []string `json:"requires,omitempty"` // settings of Kubernetes itself, which no command makes
	Install  []string `json:"install"`
	Check    string   `json:"check"`
}

// needed is a controller with the objects, gangs and pods that need it.
type needed struct {
	*apis.Controller
	kinds      []kind.GroupKind // of custom resources
	crds       []string         // definitions of what no job renders but the gang needs
	schedulers []string         // what pods without a gang call it
	drivers    []string         // drivers of volumes
}

// controllers is all that jobs may need, in the order of reports: those of kinds first, then schedulers and drivers.
var controllers = append(ofKinds(), []needed{
	{
		Controller: &apis.Controller{
			Name: "Koordinator", Since: "v1.6.0",
			Note: "the release follows from the mode: 1.6.0 for NonStrict, since 1.8 leaves pods beyond " +
				"minAvailable pending; 1.8.0 for Strict, with as many pods as minAvailable, " +
				"since 1.6 leaves those pending that come in place of lost ones: docs/gangs.md",
			Install: []string{
				"helm install koordinator koordinator --repo https://koordinator-sh.github.io/charts --version RELEASE",
			},
			Check:  "kubectl get pods -n koordinator-system",
			Serves: "`gang: {scheduler: koordinator}`",
			Gang:   job.GangKoordinator,
		},
		kinds: []kind.GroupKind{{Group: "scheduling.sigs.k8s.io", Kind: "PodGroup"}},
	},
	{
		Controller: &apis.Controller{
			Name: "Kueue", Since: "v0.19.2",
			Install: []string{
				"kubectl apply --server-side " +
					"-f https://github.com/kubernetes-sigs/kueue/releases/download/v0.19.2/manifests.yaml",
			},
			Check:  "kubectl get deployment -n kueue-system kueue-controller-manager",
			Serves: "`gang: {scheduler: kueue}`",
			Gang:   job.GangKueue,
		},
		crds: []string{"localqueues.kueue.x-k8s.io"},
	},
	{
		Controller: &apis.Controller{
			Name: "Kubernetes' own gangs", Since: "1.36",
			Note: "they are behind feature gates that are off, and spec.kubernetesVersion says of which release",
			Requires: []string{
				"1.36: --feature-gates=GenericWorkload=true,GangScheduling=true of kube-apiserver and " +
					"kube-scheduler, --runtime-config=scheduling.k8s.io/v1alpha2=true of kube-apiserver",
				"1.37: --feature-gates=GenericWorkload=true of kube-apiserver and kube-scheduler, " +
					"--runtime-config=scheduling.k8s.io/v1beta1=true of kube-apiserver",
			},
			Check:  "kubectl get podgroups.scheduling.k8s.io -A",
			Serves: "`gang: {scheduler: kubernetes}`",
			Gang:   job.GangKubernetes,
		},
	},
	{
		Controller: &apis.Controller{
			Name: "tegen-scheduler", Note: "it is of the same release as tegen",
			Install: []string{"tegen install scheduler --image IMAGE | kubectl apply --server-side -f -"},
			Check:   "kubectl get pods -A -l app.kubernetes.io/name=tegen-scheduler",
			Serves:  "`gang: {scheduler: tegen}`, `placement: {scheduler: random}`",
			Gang:    job.GangTegen,
		},
		schedulers: []string{names.Scheduler, "random"},
	},
	{
		Controller: &apis.Controller{
			Name: "Amazon EFS CSI driver", Since: "v3.4.1",
			Install: []string{"eksctl create addon --cluster CLUSTER --name aws-efs-csi-driver"},
			Check:   "kubectl get csidriver efs.csi.aws.com",
			Serves:  "volumes on `efs`",
		},
		drivers: []string{"efs.csi.aws.com"},
	},
	{
		Controller: &apis.Controller{
			Name: "Amazon FSx CSI driver", Since: "v1.9.0",
			Install: []string{"eksctl create addon --cluster CLUSTER --name aws-fsx-csi-driver"},
			Check:   "kubectl get csidriver fsx.csi.aws.com",
			Serves:  "volumes on `fsx`",
		},
		drivers: []string{"fsx.csi.aws.com"},
	},
}...)

// Installed are the commands that install a controller of docs/targets.md, and the settings of Kubernetes that no
// command makes; none where there is no such name.
func Installed(name string) []string {
	for _, n := range controllers {
		if n.Name == name {
			return slices.Concat(n.Install, n.Requires)
		}
	}
	return nil
}

// ofKinds are the controllers that stand beside the kinds of custom resources.
func ofKinds() (all []needed) {
	for _, k := range apis.Kinds {
		if k.Controller == nil {
			continue
		}
		i := slices.IndexFunc(all, func(n needed) bool { return n.Controller == k.Controller })
		if i < 0 {
			i, all = len(all), append(all, needed{Controller: k.Controller})
		}
		all[i].kinds = append(all[i].kinds, k.GroupKind())
	}
	return all
}

// calls reports whether an object needs the controller, and by which definition.
func (n *needed) calls(obj runtime.Object, of kind.GroupVersionKind) (crd string, is bool) {
	if slices.Contains(n.kinds, of.GroupKind()) {
		return apis.CRD(of.GroupKind()), true
	}
	switch o := obj.(type) {
	case *corev1.PersistentVolume:
		return "", o.Spec.CSI != nil && slices.Contains(n.drivers, o.Spec.CSI.Driver)
	case *storagev1.StorageClass:
		return "", slices.Contains(n.drivers, o.Provisioner)
	}
	return "", false
}

// require notes what the objects, the gang and the pods of a job need, in the order of the table.
func (j *Job) require(tj *job.Job, objects []runtime.Object) {
	kinds := make([]kind.GroupVersionKind, len(objects))
	for i, obj := range objects {
		kinds[i], _ = manifest.GVK(obj) // of one without a kind there is no definition
	}
	for i := range controllers {
		n := &controllers[i]
		is := n.places(tj, j.PodSets)
		c := Controller{
			Name: n.Name, CRDs: append([]string{}, n.crds...), Since: n.Since, Note: n.Note, Requires: n.Requires,
			Install: install(n, tj), Check: n.Check,
		}
		for i, obj := range objects {
			crd, called := n.calls(obj, kinds[i])
			is = is || called
			if crd != "" && !slices.Contains(c.CRDs, crd) {
				c.CRDs = append(c.CRDs, crd)
			}
		}
		if is {
			j.Controllers = append(j.Controllers, c)
		}
	}
}

// install are the commands for a job; Koordinator's release follows from the gang, and a release of tegen has an image.
func install(n *needed, j *job.Job) []string {
	commands := append([]string{}, n.Install...)
	if g := j.Spec.Gang; n.Gang == job.GangKoordinator && g.Is(job.GangKoordinator) {
		release := map[string]string{"NonStrict": "1.6.0", "Strict": "1.8.0"}[g.Mode]
		for i := range commands {
			commands[i] = strings.ReplaceAll(commands[i], "RELEASE", release)
		}
	}
	if n.Gang == job.GangTegen && names.ReleasedScheduler != "" {
		commands[0] = strings.Replace(commands[0], " --image IMAGE", "", 1)
	}
	return commands
}

// places reports whether a scheduler places a job's pods: its gang, or pods without one that name it.
func (n *needed) places(j *job.Job, sets []*PodSet) bool {
	if j.Spec.Gang.Active() { // of whom pods name the scheduler as they like
		return n.Gang != "" && j.Spec.Gang.Is(n.Gang)
	}
	return slices.ContainsFunc(sets, func(s *PodSet) bool {
		return slices.Contains(n.schedulers, s.pod.Spec.SchedulerName)
	})
}

// controllerRows are a job's controllers in text: what there has to be, how it is installed, how it is checked.
func (j *Job) controllerRows() (rows [][]string) {
	for _, c := range j.Controllers {
		for _, crd := range c.CRDs {
			rows = append(rows, []string{"CustomResourceDefinition/" + crd})
		}
		rows = append(rows, []string{strings.TrimSpace(c.Name + " " + c.Since)})
		if c.Note != "" {
			rows = append(rows, []string{"  note: " + c.Note})
		}
		for _, setting := range c.Requires {
			rows = append(rows, []string{"  requires: " + setting})
		}
		for _, command := range c.Install {
			rows = append(rows, []string{"  install: " + command})
		}
		rows = append(rows, []string{"  check: " + c.Check})
	}
	return rows
}

const docHead = "# What must run in the cluster\n\n" +
	"Made from the tables that `tegen plan` reads (internal/apis/kinds.go, internal/plan/controllers.go); `make\n" +
	"golden` writes it anew. Bare pods and Indexed Jobs need nothing but Kubernetes. Everything else needs a\n" +
	"controller, with definitions of its kinds, and `tegen plan` lists under MUST EXIST what one job needs.\n" +
	"Commands are those of the projects' own documents, where these still work; `overlays/crds` is tegen's.\n" +
	"Releases older than the one that is named are untried here.\n"

// Doc is docs/targets.md.
func Doc() string {
	var b strings.Builder
	b.WriteString(docHead)
	for i := range controllers {
		controllers[i].doc(&b)
	}
	b.WriteString("\nDLRover: see `tegen check --crds` in [check.md](check.md) for what an older definition loses. " +
		"CRDs of the two kinds whose own are\nno longer taken are in [overlays/crds](../overlays/crds).\n")
	return b.String()
}

// doc is a row's part of docs/targets.md.
func (n *needed) doc(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n- for %s\n", n.Name, n.Serves)
	if n.Since != "" {
		fmt.Fprintf(b, "- from %s\n", n.Since)
	}
	if n.Note != "" {
		fmt.Fprintf(b, "- %s\n", n.Note)
	}
	var crds []string
	for _, k := range n.kinds {
		crds = append(crds, "`"+apis.CRD(k)+"`")
	}
	for _, crd := range n.crds {
		crds = append(crds, "`"+crd+"`")
	}
	if slices.Sort(crds); len(crds) > 0 {
		fmt.Fprintf(b, "- definitions: %s\n", strings.Join(crds, ", "))
	}
	for _, setting := range n.Requires {
		release, flags, _ := strings.Cut(setting, ": ")
		fmt.Fprintf(b, "- requires in %s: %s\n", release, flags)
	}
	b.WriteString("\n```sh\n")
	for _, command := range n.Install {
		b.WriteString(command + "\n")
	}
	fmt.Fprintf(b, "%s # there it is\n```\n", n.Check)
}
