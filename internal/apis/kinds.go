package apis

// Kinds lists the custom resources that tegen knows.
var Kinds = []Kind{
	kind[JobSetSpec](JobSetKind),
	kind[MPIJobSpec](MPIJobKind),
	kind[TrainJobSpec](TrainJobKind),
	kind[TrainingRuntimeSpec](TrainingRuntimeKind),
	kind[VCJobSpec](VCJobKind),
	kind[CoschedulingPodGroup](CoschedulingPodGroupKind),
	kind[VolcanoPodGroup](VolcanoPodGroupKind),
	kind[WorkloadSpec](WorkloadAlphaKind),
	kind[PodGroupAlpha](PodGroupAlphaKind),
	kind[WorkloadSpec](WorkloadBetaKind),
	kind[PodGroupBeta](PodGroupBetaKind),
	kind[TorchElasticJobSpec](TorchElasticJobKind),
	kind[PyTorchJobSpec](PyTorchJobKind),
	kind[DLRoverJobSpec](DLRoverJobKind),
	kind[MXJobSpec](MXJobKind),
	kind[MxJobSpec](MxJobKind("mlkube.io")),
	kind[MxJobSpec](MxJobKind("mxnet.mlkube.io")),
}
