package schema

// What the APIs of elastic jobs cannot carry (pytorch/elastic v0.2.2, kubeflow/trainer v1.9.4, dlrover v0.6.1).

// torchElasticJobLacks is what TorchElastic's controller, built with client-go 1.15, does not know.
var torchElasticJobLacks = union(mutableTemplate, lacks{
	"workers.firstIndex":        "its controller counts pods from 0",
	"gang.scheduler=kueue":      "Kueue does not support this kind",
	"gang.scheduler=kubernetes": "its controller was built before the pods' field schedulingGroup and drops it",
	"suspend":                   "its controller cannot hold a job back, and counts one without workers as succeeded",
	"failure.restartsPerWorker": "its controller counts the failed pods of the whole job",
	"failure.fatalExitCodes":    "its controller starts whatever failed again, or nothing",
	"failure.ignoreDisruptions": "its controller counts every failed pod alike",
	"failure.deadline":          "its controller notes no start of a job, and so never ends one",
	"ttlAfterFinished":          "its controller dies of it when a job has failed",
})

var pyTorchJobLacks = union(mutableTemplate, lacks{
	"workers.firstIndex":        "its operator counts pods from 0",
	"failure.restartsPerWorker": "its operator counts the restarts of the whole job",
	"failure.fatalExitCodes":    "its operator takes all codes from 1 to 127 as fatal, or none",
	"failure.ignoreDisruptions": "its operator counts restarted containers alone, and never a pod that was evicted",
})

var dlroverLacks = union(mutableTemplate, lacks{
	"workers.firstIndex":        "its master counts pods from 0",
	"gang.scheduler=kueue":      "Kueue does not support this kind",
	"gang.scheduler=kubernetes": "its pods have no field schedulingGroup",
	"resources":                 "its master gives every pod requests that equal limits",
	"failure.restarts":          "its master counts the restarts of each worker: see failure.restartsPerWorker",
	"failure.restarts=" + None:  "its master counts the restarts of each worker: see failure.restartsPerWorker",
	"cleanPods":                 "its API has no field for it",
	"failure.fatalExitCodes":    "its master decides itself what is worth another try",
	"failure.ignoreDisruptions": "its master decides itself what is worth another try",
	"failure.deadline":          "its API has no field for it",
	"gracePeriod":               "its master gives every pod Kubernetes' own 30s",
	"ttlAfterFinished":          "its API has no field for it",
})

// mutableTemplate: no hash is needed where an API server accepts another template.
var mutableTemplate = lacks{"hashedNames": "its pod template may change, so that no name needs a hash"}
