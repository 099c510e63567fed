package apis

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds lists the custom resources that tegen renders and reads. 'tegen plan' reports their controllers in this order,
// and docs/targets.md has them so.
var Kinds = []Kind{
	kind[JobSetSpec](JobSetKind, &jobSetController),
	kind[TrainJobSpec](TrainJobKind, &trainer),
	kind[TrainingRuntimeSpec](TrainingRuntimeKind, &trainer),
	kind[PyTorchJobSpec](PyTorchJobKind, &trainingOperator),
	kind[MXJobSpec](MXJobKind, &trainingOperatorMXJob),
	kind[MPIJobSpec](MPIJobKind, &mpiOperator),
	kind[TorchElasticJobSpec](TorchElasticJobKind, &torchElastic),
	kind[DLRoverJobSpec](DLRoverJobKind, &dlrover),
	kind[MxJobSpec](MxJobKind("mxnet.mlkube.io"), &mxJobOperator),
	kind[MxJobSpec](MxJobKind("mlkube.io"), &mxJobOperator),
	kind[VCJobSpec](VCJobKind, &volcano),
	kind[VolcanoPodGroup](VolcanoPodGroupKind, &volcano),
	kind[CoschedulingPodGroup](CoschedulingPodGroupKind, &schedulerPlugins),
	kind[WorkloadSpec](WorkloadAlphaKind, nil),
	kind[PodGroupAlpha](PodGroupAlphaKind, nil),
	kind[WorkloadSpec](WorkloadBetaKind, nil),
	kind[PodGroupBeta](PodGroupBetaKind, nil),
}

// Kind is one of them.
type Kind struct {
	schema.GroupVersionKind
	Controller *Controller // nil where Kubernetes itself serves the kind

	make func() runtime.Object // an empty one
}

// kind registers nothing: it only pairs a name with a type and a controller.
func kind[S any](gvk schema.GroupVersionKind, c *Controller) Kind {
	return Kind{gvk, c, func() runtime.Object { return new(Custom[S]) }}
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
