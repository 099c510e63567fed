package schema

// What the APIs of elastic jobs cannot carry (pytorch/elastic v0.2.2, kubeflow/trainer v1.9.4, dlrover v0.6.1).

// torchElasticJobLacks is what TorchElastic's controller, built with client-go 1.15, does not know.
var torchElasticJobLacks = union(mutableTemplate, namesReadyPods, unmanaged("an ElasticJob"), unclaimed(
	"its controller makes pods of Kubernetes 1.15, which had no claims"), lacks{
	"sidecars": "its controller was built before Kubernetes had sidecars, and the program would wait for their " +
		"end",
	"code.image":                "its controller makes pods of Kubernetes 1.15, which mounted no images",
	"probes.startup":            "its controller was built before Kubernetes had such probes, and drops it",
	"rendezvous.proxy":          "its controller has torchrun speak to an etcd of the v2 API, which needs no proxy",
	"launcher=" + LauncherNone:  "its controller puts options of torchrun before the arguments of every container",
	"workers.firstIndex":        "its controller counts pods from 0",
	"workers.slices":            onlySets,
	"gang.scheduler=kueue":      "Kueue does not support this kind",
	"gang.scheduler=kubernetes": "its controller was built before the pods' field schedulingGroup and drops it",
	"suspend":                   "its controller cannot hold a job back, and counts one without workers as succeeded",
	"failure.restartsPerWorker": "its controller counts the failed pods of the whole job, so that it can only be 0: " +
		"then those that were killed are made again, and no others",
	"failure.fatalExitCodes":    "its controller starts whatever failed again, or nothing",
	"failure.ignoreDisruptions": "its controller counts every failed pod alike, or with restartsPerWorker: 0 none",
	"failure.inPlace":           "its controller has the kubelet do so wherever failed pods are counted",
	"failure.deadline":          "its controller notes no start of a job, and so never ends one",
	"ttlAfterFinished":          "its controller dies of it when a job has failed",
})

var pyTorchJobLacks = union(mutableTemplate, namesReadyPods, lacks{
	"workers.firstIndex":        "its operator counts pods from 0",
	"workers.slices":            onlySets,
	"failure.restartsPerWorker": "its operator counts the restarts of the whole job",
	"failure.fatalExitCodes":    "its operator takes all codes from 1 to 127 as fatal, or none",
	"failure.ignoreDisruptions": "its operator counts restarted containers alone, and never a pod that was evicted",
	"failure.inPlace":           "its operator always has the kubelet do so",
})

var dlroverLacks = union(mutableTemplate, unmanaged("an ElasticJob"), unclaimed(
	"its definition lacks the pods' field resourceClaims, which an API server then drops"), lacks{
	"sidecars": "its definition lacks initContainers[].restartPolicy, which an API server then drops, and the " +
		"program would wait for their end",
	"code.image":                "its definition lacks image volumes, which an API server then drops",
	"workers.firstIndex":        "its master counts pods from 0",
	"gang.scheduler=kueue":      "Kueue does not support this kind",
	"gang.scheduler=kubernetes": "its pods have no field schedulingGroup",
	"resources":                 "its master gives every pod requests that equal limits",
	"failure.restarts":          "its master counts the restarts of each worker: see failure.restartsPerWorker",
	"failure.restarts=" + None:  "its master counts the restarts of each worker: see failure.restartsPerWorker",
	"cleanPods":                 "its API has no field for it",
	"failure.fatalExitCodes":    "its master decides itself what is worth another try",
	"failure.ignoreDisruptions": "its master decides itself what is worth another try",
	"failure.inPlace":           "its master makes a pod anew that failed",
	"failure.deadline":          "its API has no field for it",
	"gracePeriod":               "its master gives every pod Kubernetes' own 30s",
	"checkpoint.save":           "its master drops hooks, and gives every pod Kubernetes' own 30s",
	"ttlAfterFinished":          "its API has no field for it",
})

// mutableTemplate: no hash is needed where an API server accepts another template.
var mutableTemplate = lacks{"hashedNames": "its pod template may change, so that no name needs a hash"}

// namesReadyPods: nobody is ready before the others are found, and nobody is found before it is ready.
var namesReadyPods = lacks{
	"probes.readiness": "its controller's Services name ready workers alone, and those would wait for each other",
}
