package apis

// Kinds lists the custom resources that tegen knows.
var Kinds = []Kind{
	kind[JobSetSpec](JobSetKind),
	kind[TorchElasticJobSpec](TorchElasticJobKind),
	kind[PyTorchJobSpec](PyTorchJobKind),
	kind[DLRoverJobSpec](DLRoverJobKind),
}
