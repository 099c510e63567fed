package cases

// group is a list of cases with one reason.
type group struct{ reason, cases string }

// inFull are the cases that have a golden file with all their objects. A case is listed under the first reason that
// applies to it. Any other case needs no line here.
var inFull = []group{
	{"README.md links the file", `
		bytescheduler/base dlrover-elasticjob-suspended/base dlrover-elasticjob-two-of-four/base
		horovod-job-minimal/base imagenet/eks mxnet-mxjob-mlkube-dist/base torchelastic-elasticjob-imagenet/base`},
	{"the first jobs that a reader renders, with what the overlays change", `
		classy-vision/base imagenet/base minimal/base minimal/eks minimal/kind readme/base`},
	{"a row of docs/proof.md, with what runs on nodes", `
		bytescheduler-mpijob/base checkpoint-c10d/base checkpoint-etcd/base gang-tegen-accelerators/base
		horovod-mpijob-suspended/base mxnet-job-servers/base node-loss/base proxy-companion/base
		suspend-checkpoint/base torchelastic-jobset-minimal/base torchelastic-pytorchjob/base
		torchelastic-trainjob-minimal/base`},
	{"one for each form of the companion and of the proxy", `
		companion-c10d/base companion-elasticjob/base companion-etcd/base companion-external-etcd/base
		companion-pods/base companion-pytorchjob/base proxy-companion-etcd/base proxy-etcd/base`},
	{"one for each framework and target", `
		jax-job-suspended/base jax-jobset-suspended/base jax-trainjob-suspended/base launcher-none/base
		mpi-one-worker/base mpi-mpijob-image/base mxnet-job-full/base target-pods/base
		torchelastic-jobset-full/base torchelastic-vcjob-full/base torchelastic-vcjob-no-restarts/base`},
	{"one for each gang scheduler, and groups of workers", `
		gang/base gang-coscheduling/base gang-jobset-volcano/base gang-kubernetes-1-36/base
		gang-kubernetes-1-37/base gang-kueue/base gang-kueue/eks gang-tegen-groups/base gang-volcano/base
		groups-jobset/base`},
	{"one for each kind of storage, dataset and script", `
		code-git/base dataset-stores/base script-configmap/base script-s3/base storage-claim/base
		storage-dynamic/base storage-efs/base storage-efs/eks storage-efs-provision/base storage-emptydir/base
		storage-fsx/base storage-hostpath/base storage-nfs/base storage-two-volumes/base`},
	{"one for each store, and for fields that most objects show", `
		fabric/base gitops/base identity-irsa/eks network/base placement/eks pod-template/base
		resources-devices/base restart-in-place/base security/base store-etcd/base store-etcd-v2-tls/base
		store-external/base suspend-job/base`},
}
