package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kind "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
)

// Controller is what must run in a cluster beside Kubernetes itself for a job's objects to mean anything.
type Controller struct {
	Name    string   `json:"name"`
	CRDs    []string `json:"crds"`
	Since   string   `json:"since"`
	Install []string `json:"install"`
	Check   string   `json:"check"`
}

// needed is a row of the table: a controller, and the objects and gangs that call for it.
type needed struct {
	Controller
	serves  string            // what of a job calls for it, as docs/targets.md says
	kinds   map[string]string // Kind.group to the name of its CustomResourceDefinition
	gang    string            // spec.gang.scheduler
	drivers []string          // drivers of volumes
}

// controllers is all that jobs may need. Commands are those of the projects' own documents, at the release beside whose
// definitions the tests hold what is rendered, or which docs/proof.md saw run; older releases than Since are untried.
var controllers = []needed{
	{
		Controller{
			"JobSet", nil, "v0.12.0",
			[]string{"kubectl apply --server-side -f https://github.com/kubernetes-sigs/jobset/releases/download/v0.12.0/manifests.yaml"},
			"kubectl get deployment -n jobset-system jobset-controller-manager",
		},
		"`target: jobset`",
		map[string]string{"JobSet.jobset.x-k8s.io": "jobsets.jobset.x-k8s.io"},
		"", nil,
	},
	{
		Controller{
			"Kubeflow Trainer", nil, "v2.3.0",
			[]string{`kubectl apply --server-side -k "https://github.com/kubeflow/trainer.git/manifests/overlays/manager?ref=v2.3.0"`},
			"kubectl get pods -n kubeflow-system",
		},
		"`target: trainjob`, which brings its runtime along",
		map[string]string{
			"TrainJob.trainer.kubeflow.org": "trainjobs.trainer.kubeflow.org", "TrainingRuntime.trainer.kubeflow.org": "trainingruntimes.trainer.kubeflow.org",
		},
		"", nil,
	},
	{
		Controller{
			"Kubeflow Training Operator", nil, "v1.9.0",
			[]string{`kubectl apply --server-side -k "github.com/kubeflow/training-operator.git/manifests/overlays/standalone?ref=v1.9.0"`},
			"kubectl get deployment -n kubeflow training-operator",
		},
		"`target: pytorchjob`",
		map[string]string{"PyTorchJob.kubeflow.org": "pytorchjobs.kubeflow.org"},
		"", nil,
	},
	{
		Controller{
			"Kubeflow Training Operator with MXJob", nil, "v1.8.1, the last release that has it",
			[]string{`kubectl apply --server-side -k "github.com/kubeflow/training-operator.git/manifests/overlays/standalone?ref=v1.8.1"`},
			"kubectl get deployment -n kubeflow training-operator",
		},
		"`target: mxjob`",
		map[string]string{"MXJob.kubeflow.org": "mxjobs.kubeflow.org"},
		"", nil,
	},
	{
		Controller{
			"MPI Operator", nil, "v0.8.0",
			[]string{"kubectl apply --server-side -f https://raw.githubusercontent.com/kubeflow/mpi-operator/v0.8.0/deploy/v2beta1/mpi-operator.yaml"},
			"kubectl get deployment -n mpi-operator mpi-operator",
		},
		"`target: mpijob`",
		map[string]string{"MPIJob.kubeflow.org": "mpijobs.kubeflow.org"},
		"", nil,
	},
	{
		Controller{
			"TorchElastic's controller", nil, "v0.2.0; its own definition is refused since Kubernetes 1.22, that of overlays/crds is not",
			[]string{
				"kubectl apply -k overlays/crds",
				"git clone https://github.com/pytorch/elastic.git && cd elastic/kubernetes && kustomize build config/default | kubectl apply -f - # less its definition",
			},
			"kubectl get pods -n elastic-job",
		},
		"`target: elasticjob` of torchelastic",
		map[string]string{"ElasticJob.elastic.pytorch.org": "elasticjobs.elastic.pytorch.org"},
		"", nil,
	},
	{
		Controller{
			"DLRover's ElasticJob controller", nil, "v0.5.0; the definition in config/manifests/bases loses suspension and the pods' annotations, that in config/crd/bases does not",
			[]string{
				"git clone https://github.com/intelligent-machine-learning/dlrover.git && cd dlrover/go/elasticjob && make deploy IMG=easydl/elasticjob-controller:master",
				"kubectl apply -f config/crd/bases/elastic.iml.github.io_elasticjobs.yaml",
				"kubectl -n dlrover apply -f config/manifests/bases/default-role.yaml",
			},
			"kubectl get pods -n dlrover",
		},
		"`framework: dlrover`",
		map[string]string{"ElasticJob.elastic.iml.github.io": "elasticjobs.elastic.iml.github.io"},
		"", nil,
	},
	{
		Controller{
			"MXNet's first operator", nil, "of 2017; it starts on no Kubernetes since 1.22, and target: job does the same without it",
			[]string{"kubectl apply -k overlays/crds", "git clone https://github.com/deepinsight/mxnet-operator.git && kubectl create -f mxnet-operator/examples/mx_operator_deploy.yaml"},
			"kubectl get mxjobs",
		},
		"`target: mxjob-mlkube`",
		map[string]string{"MxJob.mxnet.mlkube.io": "mxjobs.mxnet.mlkube.io", "MxJob.mlkube.io": "mxjobs.mlkube.io"},
		"", nil,
	},
	{
		Controller{
			"Volcano", nil, "v1.15.1",
			[]string{
				"helm repo add volcano-sh https://volcano-sh.github.io/helm-charts",
				"helm install volcano volcano-sh/volcano -n volcano-system --create-namespace",
			},
			"kubectl get pods -n volcano-system",
		},
		"`target: vcjob`, `gang: {scheduler: volcano}`",
		map[string]string{
			"Job.batch.volcano.sh": "jobs.batch.volcano.sh", "PodGroup.scheduling.volcano.sh": "podgroups.scheduling.volcano.sh",
		},
		schema.GangVolcano, nil,
	},
	{
		Controller{
			"scheduler-plugins, as a second scheduler", nil, "v0.34.7",
			[]string{"helm install --repo https://scheduler-plugins.sigs.k8s.io scheduler-plugins scheduler-plugins"},
			"kubectl get pods -A -l component=scheduler",
		},
		"`gang: {scheduler: coscheduling}`",
		map[string]string{"PodGroup.scheduling.x-k8s.io": "podgroups.scheduling.x-k8s.io"},
		schema.GangCoscheduling, nil,
	},
	{
		Controller{
			"Koordinator", nil, "v1.6.0",
			[]string{
				"helm repo add koordinator-sh https://koordinator-sh.github.io/charts/",
				"helm install koordinator koordinator-sh/koordinator --version 1.6.0",
			},
			"kubectl get pods -n koordinator-system",
		},
		"`gang: {scheduler: koordinator}`",
		map[string]string{"PodGroup.scheduling.sigs.k8s.io": "podgroups.scheduling.sigs.k8s.io"},
		schema.GangKoordinator, nil,
	},
	{
		Controller{
			"Kueue",
			[]string{"localqueues.kueue.x-k8s.io"},
			"v0.19.2",
			[]string{"kubectl apply --server-side -f https://github.com/kubernetes-sigs/kueue/releases/download/v0.19.2/manifests.yaml"},
			"kubectl get deployment -n kueue-system kueue-controller-manager",
		},
		"`gang: {scheduler: kueue}`", nil, schema.GangKueue, nil,
	},
	{
		Controller{
			"Kubernetes' own gangs", nil, "1.36, by spec.kubernetesVersion; behind feature gates that are off",
			[]string{
				"kube-apiserver and kube-scheduler 1.36: --feature-gates=GenericWorkload=true,GangScheduling=true, --runtime-config=scheduling.k8s.io/v1alpha2=true",
				"kube-apiserver and kube-scheduler 1.37: --feature-gates=GenericWorkload=true, --runtime-config=scheduling.k8s.io/v1beta1=true",
			},
			"kubectl api-resources --api-group=scheduling.k8s.io",
		},
		"`gang: {scheduler: kubernetes}`", nil, schema.GangKubernetes, nil,
	},
	{
		Controller{
			"tegen-scheduler", nil, "this release",
			[]string{"tegen install scheduler --image IMAGE | kubectl apply --server-side -f -"},
			"kubectl get pods -A -l app.kubernetes.io/name=tegen-scheduler",
		},
		"`gang: {scheduler: tegen}`", nil, schema.GangTegen, nil,
	},
	{
		Controller{"Amazon EFS CSI driver", nil, "v3.4.1", []string{"eksctl create addon --cluster CLUSTER --name aws-efs-csi-driver"}, "kubectl get csidriver efs.csi.aws.com"},
		"volumes on `efs`", nil, "",
		[]string{"efs.csi.aws.com"},
	},
	{
		Controller{"Amazon FSx CSI driver", nil, "v1.9.0", []string{"eksctl create addon --cluster CLUSTER --name aws-fsx-csi-driver"}, "kubectl get csidriver fsx.csi.aws.com"},
		"volumes on `fsx`", nil, "",
		[]string{"fsx.csi.aws.com"},
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

// require notes what an object and the job's gang need, in the order of the table.
func (j *Job) require(job *schema.Job, objects []runtime.Object) {
	for i := range controllers {
		n := &controllers[i]
		c, is := n.Controller, n.gang != "" && job.Spec.Gang.Is(n.gang)
		c.CRDs = slices.Clone(n.CRDs)
		for _, obj := range objects {
			of, err := manifest.GVK(obj)
			if err != nil {
				continue
			}
			crd, called := n.calls(obj, of)
			is = is || called
			if crd != "" && !slices.Contains(c.CRDs, crd) {
				c.CRDs = append(c.CRDs, crd)
			}
		}
		if is {
			if c.CRDs == nil {
				c.CRDs = []string{}
			}
			j.Controllers = append(j.Controllers, c)
		}
	}
}

// controllerRows are a job's controllers for people: what there has to be, how it is made, how it is seen.
func (j *Job) controllerRows() (rows [][]string) {
	for _, c := range j.Controllers {
		for _, crd := range c.CRDs {
			rows = append(rows, []string{"CustomResourceDefinition/" + crd})
		}
		rows = append(rows, []string{c.Name + " " + c.Since})
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
		"`tegen plan` lists under MUST EXIST what one job needs. Commands are those of the projects' own documents. Releases\n" +
		"older than the one that is named are untried here.\n")
	for i := range controllers {
		n := &controllers[i]
		var crds []string
		for _, crd := range n.kinds {
			crds = append(crds, "`"+crd+"`")
		}
		for _, crd := range n.CRDs {
			crds = append(crds, "`"+crd+"`")
		}
		slices.Sort(crds)
		fmt.Fprintf(&b, "\n## %s\n\n- for %s\n- from %s\n", n.Name, n.serves, n.Since)
		if len(crds) > 0 {
			fmt.Fprintf(&b, "- definitions: %s\n", strings.Join(crds, ", "))
		}
		fmt.Fprintf(&b, "\n```sh\n%s\n%s # there it is\n```\n", strings.Join(n.Install, "\n"), n.Check)
	}
	b.WriteString("\nDLRover: see `tegen check --crds` in the README for what an older definition loses. CRDs of the two kinds whose own are\nno longer taken are in [overlays/crds](../overlays/crds).\n")
	return b.String()
}
