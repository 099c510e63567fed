package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kind "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
)

// Controller is what must run in a cluster beside Kubernetes itself for a job's objects to mean anything.
type Controller struct {
	Name     string   `json:"name"`
	CRDs     []string `json:"crds"`
	Since    string   `json:"since"`
	Note     string   `json:"note,omitempty"`
	Requires []string `json:"requires,omitempty"` // settings of Kubernetes itself, which no command makes
	Install  []string `json:"install"`
	Check    string   `json:"check"`
}

// needed is a row of the table: a controller, and the objects, gangs and pods that call for it.
type needed struct {
	Controller
	serves     string            // what of a job calls for it, as docs/targets.md says
	kinds      map[string]string // Kind.group to the name of its CustomResourceDefinition
	gang       string            // spec.gang.scheduler
	schedulers []string          // what pods without a gang call it
	drivers    []string          // drivers of volumes
}

// controllers is all that jobs may need. Commands are those of the projects' own documents where these still do what they
// say, at the release beside whose definitions the tests hold what is rendered, or which docs/proof.md saw run; older
// releases than Since are untried.
var controllers = []needed{
	{
		Controller: Controller{
			Name: "JobSet", Since: "v0.12.0",
			Install: []string{"kubectl apply --server-side -f https://github.com/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml"},
			Check:   "kubectl get deployment -n jobset-system jobset-controller-manager",
		},
		serves: "`target: jobset`",
		kinds:  map[string]string{"JobSet.jobset.x-k8s.io": "jobsets.jobset.x-k8s.io"},
	},
	{
		Controller: Controller{
			Name: "Kubeflow Trainer", Since: "v2.3.0",
			Install: []string{`kubectl apply --server-side -k "https://github.com/kubeflow/trainer.git/manifests/overlays/manager?ref=v2.3.0"`},
			Check:   "kubectl get pods -n kubeflow-system",
		},
		serves: "`target: trainjob`, which brings its runtime along",
		kinds: map[string]string{
			"TrainJob.trainer.kubeflow.org":        "trainjobs.trainer.kubeflow.org",
			"TrainingRuntime.trainer.kubeflow.org": "trainingruntimes.trainer.kubeflow.org",
		},
	},
	{
		Controller: Controller{
			Name: "Kubeflow Training Operator", Since: "v1.9.0",
			Install: []string{`kubectl apply --server-side -k "github.com/kubeflow/training-operator.git/manifests/overlays/standalone?ref=v1.9.0"`},
			Check:   "kubectl get deployment -n kubeflow training-operator",
		},
		serves: "`target: pytorchjob`",
		kinds:  map[string]string{"PyTorchJob.kubeflow.org": "pytorchjobs.kubeflow.org"},
	},
	{
		Controller: Controller{
			Name: "Kubeflow Training Operator with MXJob", Since: "v1.8.1", Note: "it is the last release that has MXJob",
			Install: []string{`kubectl apply --server-side -k "github.com/kubeflow/training-operator.git/manifests/overlays/standalone?ref=v1.8.1"`},
			Check:   "kubectl get deployment -n kubeflow training-operator",
		},
		serves: "`target: mxjob`",
		kinds:  map[string]string{"MXJob.kubeflow.org": "mxjobs.kubeflow.org"},
	},
	{
		Controller: Controller{
			Name: "MPI Operator", Since: "v0.8.0",
			Install: []string{"kubectl apply --server-side -f https://raw.githubusercontent.com/kubeflow/mpi-operator/v0.8.0/deploy/v2beta1/mpi-operator.yaml"},
			Check:   "kubectl get deployment -n mpi-operator mpi-operator",
		},
		serves: "`target: mpijob`",
		kinds:  map[string]string{"MPIJob.kubeflow.org": "mpijobs.kubeflow.org"},
	},
	{
		Controller: Controller{
			Name: "TorchElastic's controller", Since: "v0.2.0",
			Note: "its own definition is refused since Kubernetes 1.22 and is left out here, for that of tegen's overlays/crds",
			Install: []string{
				"kubectl apply -k overlays/crds",
				"git clone --branch v0.2.2 https://github.com/pytorch/elastic.git && cd elastic/kubernetes/config/default && sed -i '/crd/d' kustomization.yaml && kubectl apply -k .",
			},
			Check: "kubectl get pods -n elastic-job",
		},
		serves: "`target: elasticjob` of torchelastic",
		kinds:  map[string]string{"ElasticJob.elastic.pytorch.org": "elasticjobs.elastic.pytorch.org"},
	},
	{
		Controller: Controller{
			Name: "DLRover's ElasticJob controller", Since: "v0.5.0",
			Note: "the definition in its manifests/bases loses suspension and the pods' annotations, so that of crd/bases is put in its place; the image is that of its main branch",
			Install: []string{
				"git clone --branch v0.6.1 https://github.com/intelligent-machine-learning/dlrover.git && cd dlrover/go/elasticjob/config && " +
					"kubectl apply --server-side -k manifests/bases && kubectl apply --server-side -f crd/bases/elastic.iml.github.io_elasticjobs.yaml",
			},
			Check: "kubectl get pods -n dlrover",
		},
		serves: "`framework: dlrover`",
		kinds:  map[string]string{"ElasticJob.elastic.iml.github.io": "elasticjobs.elastic.iml.github.io"},
	},
	{
		Controller: Controller{
			Name: "MXNet's first operator",
			Note: "it is of 2017 and was never released: its image is to be built of github.com/deepinsight/mxnet-operator, and starts on no Kubernetes " +
				"since 1.22; target: job does the same without it",
			Install: []string{"kubectl apply -k overlays/crds"},
			Check:   "kubectl get deployment mx-job-operator",
		},
		serves: "`target: mxjob-mlkube`",
		kinds:  map[string]string{"MxJob.mxnet.mlkube.io": "mxjobs.mxnet.mlkube.io", "MxJob.mlkube.io": "mxjobs.mlkube.io"},
	},
	{
		Controller: Controller{
			Name: "Volcano", Since: "v1.15.1",
			Install: []string{"helm install volcano volcano --repo https://volcano-sh.github.io/helm-charts --version 1.15.1 -n volcano-system --create-namespace"},
			Check:   "kubectl get pods -n volcano-system",
		},
		serves: "`target: vcjob`, `gang: {scheduler: volcano}`",
		kinds: map[string]string{
			"Job.batch.volcano.sh": "jobs.batch.volcano.sh", "PodGroup.scheduling.volcano.sh": "podgroups.scheduling.volcano.sh",
		},
		gang: schema.GangVolcano,
	},
	{
		Controller: Controller{
			Name: "scheduler-plugins, as a second scheduler", Since: "v0.34.7",
			Install: []string{"helm install scheduler-plugins scheduler-plugins --repo https://scheduler-plugins.sigs.k8s.io --version 0.34.7"},
			Check:   "kubectl get pods -A -l component=scheduler",
		},
		serves: "`gang: {scheduler: coscheduling}`",
		kinds:  map[string]string{"PodGroup.scheduling.x-k8s.io": "podgroups.scheduling.x-k8s.io"},
		gang:   schema.GangCoscheduling,
	},
	{
		Controller: Controller{
			Name: "Koordinator", Since: "v1.6.0",
			Note: "RELEASE is 1.6.0 for mode NonStrict, since 1.8 leaves pods beyond minAvailable pending; it is 1.8.0 for mode Strict, " +
				"with as many pods as minAvailable, since 1.6 leaves those pending that come in place of lost ones: docs/gangs.md",
			Install: []string{"helm install koordinator koordinator --repo https://koordinator-sh.github.io/charts --version RELEASE"},
			Check:   "kubectl get pods -n koordinator-system",
		},
		serves: "`gang: {scheduler: koordinator}`",
		kinds:  map[string]string{"PodGroup.scheduling.sigs.k8s.io": "podgroups.scheduling.sigs.k8s.io"},
		gang:   schema.GangKoordinator,
	},
	{
		Controller: Controller{
			Name: "Kueue", CRDs: []string{"localqueues.kueue.x-k8s.io"}, Since: "v0.19.2",
			Install: []string{"kubectl apply --server-side -f https://github.com/kubernetes-sigs/kueue/releases/download/v0.19.2/manifests.yaml"},
			Check:   "kubectl get deployment -n kueue-system kueue-controller-manager",
		},
		serves: "`gang: {scheduler: kueue}`",
		gang:   schema.GangKueue,
	},
	{
		Controller: Controller{
			Name: "Kubernetes' own gangs", Since: "1.36", Note: "they are behind feature gates that are off, and spec.kubernetesVersion says of which release",
			Requires: []string{
				"1.36: --feature-gates=GenericWorkload=true,GangScheduling=true of kube-apiserver and kube-scheduler, --runtime-config=scheduling.k8s.io/v1alpha2=true of kube-apiserver",
				"1.37: --feature-gates=GenericWorkload=true of kube-apiserver and kube-scheduler, --runtime-config=scheduling.k8s.io/v1beta1=true of kube-apiserver",
			},
			Check: "kubectl get podgroups.scheduling.k8s.io -A",
		},
		serves: "`gang: {scheduler: kubernetes}`",
		gang:   schema.GangKubernetes,
	},
	{
		Controller: Controller{
			Name: "tegen-scheduler", Note: "it is of the same release as tegen",
			Install: []string{"tegen install scheduler --image IMAGE | kubectl apply --server-side -f -"},
			Check:   "kubectl get pods -A -l app.kubernetes.io/name=tegen-scheduler",
		},
		serves:     "`gang: {scheduler: tegen}`, `placement: {scheduler: random}`",
		gang:       schema.GangTegen,
		schedulers: []string{names.Scheduler, "random"},
	},
	{
		Controller: Controller{
			Name: "Amazon EFS CSI driver", Since: "v3.4.1",
			Install: []string{"eksctl create addon --cluster CLUSTER --name aws-efs-csi-driver"},
			Check:   "kubectl get csidriver efs.csi.aws.com",
		},
		serves:  "volumes on `efs`",
		drivers: []string{"efs.csi.aws.com"},
	},
	{
		Controller: Controller{
			Name: "Amazon FSx CSI driver", Since: "v1.9.0",
			Install: []string{"eksctl create addon --cluster CLUSTER --name aws-fsx-csi-driver"},
			Check:   "kubectl get csidriver fsx.csi.aws.com",
		},
		serves:  "volumes on `fsx`",
		drivers: []string{"fsx.csi.aws.com"},
	},
}

// calls says of a controller what a job's object makes of it: whether it is needed, and for which definition.
func (n *needed) calls(obj runtime.Object, of kind.GroupVersionKind) (crd string, is bool) {
	if crd, is = n.kinds[of.Kind+"."+of.Group]; is {
		return crd, true
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
func (j *Job) require(job *schema.Job, objects []runtime.Object) {
	kinds := make([]kind.GroupVersionKind, len(objects))
	for i, obj := range objects {
		kinds[i], _ = manifest.GVK(obj) // of one without a kind there is no definition
	}
	for i := range controllers {
		n := &controllers[i]
		c, is := n.Controller, n.places(job, j.PodSets)
		c.CRDs = append([]string{}, n.CRDs...)
		c.Install = append([]string{}, n.Install...)
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

// places says of a scheduler whether a job's pods are for it: its gang, or pods without one that name it.
func (n *needed) places(job *schema.Job, sets []*PodSet) bool {
	if job.Spec.Gang.Active() { // of whom pods name the scheduler as they like
		return n.gang != "" && job.Spec.Gang.Is(n.gang)
	}
	return slices.ContainsFunc(sets, func(s *PodSet) bool { return slices.Contains(n.schedulers, s.pod.Spec.SchedulerName) })
}

// controllerRows are a job's controllers for people: what there has to be, how it is made, how it is seen.
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

// Doc is docs/targets.md.
func Doc() string {
	var b strings.Builder
	b.WriteString("# What must run in the cluster\n\nMade from the table that `tegen plan` reads (internal/plan/controllers.go); `make golden` writes it anew. Bare pods and\n" +
		"Indexed Jobs need nothing but Kubernetes. Everything else needs a controller, with definitions of its kinds, and\n" +
		"`tegen plan` lists under MUST EXIST what one job needs. Commands are those of the projects' own documents, where these\n" +
		"still do what they say; `overlays/crds` is tegen's. Releases older than the one that is named are untried here.\n")
	for i := range controllers {
		controllers[i].doc(&b)
	}
	b.WriteString("\nDLRover: see `tegen check --crds` in the README for what an older definition loses. CRDs of the two kinds whose own are\nno longer taken are in [overlays/crds](../overlays/crds).\n")
	return b.String()
}

// doc is a row's part of docs/targets.md.
func (n *needed) doc(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n- for %s\n", n.Name, n.serves)
	if n.Since != "" {
		fmt.Fprintf(b, "- from %s\n", n.Since)
	}
	if n.Note != "" {
		fmt.Fprintf(b, "- %s\n", n.Note)
	}
	var crds []string
	for _, crd := range slices.Concat(slices.Collect(maps.Values(n.kinds)), n.CRDs) {
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
