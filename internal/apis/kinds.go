package apis

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds lists the custom resources that tegen renders and reads. 'tegen plan' reports their controllers in this order,
// and docs/targets.md has them so.
var Kinds = []Kind{
	kind[JobSetSpec](JobSetKind, &jobSetController, &jobSetHealth),
	kind[TrainJobSpec](TrainJobKind, &trainer, &trainJobHealth),
	kind[TrainingRuntimeSpec](TrainingRuntimeKind, &trainer, &noState),
	kind[PyTorchJobSpec](PyTorchJobKind, &trainingOperator, &kubeflowHealth),
	kind[MXJobSpec](MXJobKind, &trainingOperatorMXJob, &kubeflowHealth),
	kind[MPIJobSpec](MPIJobKind, &mpiOperator, &kubeflowHealth),
	kind[TorchElasticJobSpec](TorchElasticJobKind, &torchElastic, &torchElasticHealth),
	kind[DLRoverJobSpec](DLRoverJobKind, &dlrover, &dlroverHealth),
	kind[MxJobSpec](MxJobKind("mxnet.mlkube.io"), &mxJobOperator, &mxJobHealth),
	kind[MxJobSpec](MxJobKind("mlkube.io"), &mxJobOperator, &mxJobHealth),
	kind[VCJobSpec](VCJobKind, &volcano, &vcJobHealth),
	kind[VolcanoPodGroup](VolcanoPodGroupKind, &volcano, &podGroupHealth),
	kind[CoschedulingPodGroup](CoschedulingPodGroupKind, &schedulerPlugins, &podGroupHealth),
	kind[WorkloadSpec](WorkloadAlphaKind, nil, &noState),
	kind[PodGroupAlpha](PodGroupAlphaKind, nil, &placedElsewhere),
	kind[WorkloadSpec](WorkloadBetaKind, nil, &noState),
	kind[PodGroupBeta](PodGroupBetaKind, nil, &placedElsewhere),
	kind[ClaimTemplate](ClaimTemplateKind("v1"), nil, &noState),
	kind[ClaimTemplate](ClaimTemplateKind("v1beta2"), nil, &noState),
	kind[ClaimTemplate](ClaimTemplateKind("v1beta1"), nil, &noState),
	kind[PodMonitorSpec](PodMonitorKind, &prometheusOperator, &noState),
}

// Kind is one of them.
type Kind struct {
	schema.GroupVersionKind
	Controller *Controller // nil where Kubernetes itself serves the kind
	Health     *Health

	make func() runtime.Object // an empty one
}

// Type is the Go type of its objects.
func (k Kind) Type() reflect.Type { return reflect.TypeOf(k.make()).Elem() }

// kind registers nothing: it only pairs a name with a type, a controller and where that writes how an object is.
func kind[S any](gvk schema.GroupVersionKind, c *Controller, h *Health) Kind {
	return Kind{gvk, c, h, func() runtime.Object { return new(Custom[S]) }}
}

// CRD names the definition of a kind. All of them form their plural so.
func CRD(k schema.GroupKind) string { return strings.ToLower(k.Kind) + "s." + k.Group }

// Controller is what must run in a cluster beside Kubernetes itself for a job's objects to have an effect. Commands are
// those of the project's own documents where these still work, at the release beside whose definitions the tests hold
// what is rendered, or which docs/proof.md saw run; releases older than Since are untried.
type Controller struct {
	Name     string
	Since    string
	Serves   string // what of a job needs it
	Gang     string // the spec.gang.scheduler whose gangs it places
	Note     string
	Requires []string // settings of Kubernetes itself, which no command makes
	Install  []string
	Check    string
}
