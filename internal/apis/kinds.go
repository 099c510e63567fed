package apis

// Kinds lists the custom resources that tegen knows.
var Kinds = []Kind{
	kind[JobSetSpec](JobSetKind),
	kind[MXJobSpec](MXJobKind),
	kind[MxJobSpec](MxJobKind("mlkube.io")),
	kind[MxJobSpec](MxJobKind("mxnet.mlkube.io")),
}
