package policies

import "maps"

// workload makes an object of a kind with random pods.
type workload struct {
	apiVersion, kind string
	make             func(g generator) map[string]any // its fields beside apiVersion, kind and name
}

func (w workload) object(g generator, name string) map[string]any {
	o := w.make(g)
	o["apiVersion"], o["kind"] = w.apiVersion, w.kind
	meta, _ := o["metadata"].(map[string]any)
	if meta = maps.Clone(meta); meta == nil {
		meta = map[string]any{}
	}
	meta["name"] = name
	o["metadata"] = meta
	return o
}

type object = map[string]any

// spec has one template.
func spec(restart string, rest object) func(g generator) map[string]any {
	return func(g generator) map[string]any {
		t := g.template(restart)
		if rest["selector"] != nil {
			t["metadata"] = merged(t["metadata"], object{"labels": merged(nestedLabels(t), object{"app": "a"})})
		}
		return object{"spec": merged(object{"template": t}, rest)}
	}
}

func nestedLabels(t object) any {
	meta, _ := t["metadata"].(object)
	return meta["labels"]
}

func merged(a any, b object) object {
	out, _ := a.(object)
	if out = maps.Clone(out); out == nil {
		out = object{}
	}
	maps.Copy(out, b)
	return out
}

// replicas has a mapping of roles.
func replicas(field string, rest object, roles ...string) func(g generator) map[string]any {
	return func(g generator) map[string]any {
		of := object{}
		for _, role := range roles {
			of[role] = object{"replicas": 1, "template": g.template(pick(g, "Never", "OnFailure"))}
		}
		return object{"spec": merged(object{field: of}, rest)}
	}
}

// roles has a list of them.
func roles(field string, rest object, wrap func(template object) object) func(g generator) map[string]any {
	return func(g generator) map[string]any {
		var all []any
		for i := range 1 + g.IntN(2) {
			role := wrap(g.template("Never"))
			if _, named := role["name"]; named {
				role["name"] = string(rune('a' + i))
			}
			all = append(all, role)
		}
		return object{"spec": merged(object{field: all}, rest)}
	}
}

func jobSetJob(template object) object {
	return object{"name": "", "replicas": 1, "template": object{"spec": object{"template": template}}}
}

var selected = object{"selector": object{"matchLabels": object{"app": "a"}}}

// workloads are all kinds with pods that a policy is exported for.
var workloads = []workload{
	{"v1", "Pod", func(g generator) map[string]any { return g.template(pick(g, "Never", "Always")) }},
	{"v1", "PodTemplate", func(g generator) map[string]any { return object{"template": g.template("Always")} }},
	{"v1", "ReplicationController", spec("Always", object{"selector": object{"app": "a"}})},
	{"batch/v1", "Job", spec("Never", object{"backoffLimit": 1})},
	{"batch/v1", "CronJob", func(g generator) map[string]any {
		return object{"spec": object{
			"schedule": "0 0 * * *", "jobTemplate": object{"spec": object{"template": g.template("Never")}},
		}}
	}},
	{"apps/v1", "Deployment", spec("Always", selected)},
	{"apps/v1", "ReplicaSet", spec("Always", selected)},
	{"apps/v1", "DaemonSet", spec("Always", selected)},
	{"apps/v1", "StatefulSet", spec("Always", merged(selected, object{"serviceName": "a"}))},
	{"jobset.x-k8s.io/v1alpha2", "JobSet", roles("replicatedJobs", nil, jobSetJob)},
	{"trainer.kubeflow.org/v1alpha1", "TrainingRuntime", func(g generator) map[string]any {
		return object{"spec": object{"template": roles("replicatedJobs", nil, jobSetJob)(g)}}
	}},
	{"kubeflow.org/v1", "PyTorchJob", replicas("pytorchReplicaSpecs", nil, "Master", "Worker")},
	{"kubeflow.org/v1", "MXJob", replicas("mxReplicaSpecs", object{"jobMode": "MXTrain"}, "Worker", "Server")},
	{"kubeflow.org/v2beta1", "MPIJob", replicas("mpiReplicaSpecs", nil, "Launcher", "Worker")},
	{"elastic.pytorch.org/v1alpha1", "ElasticJob", replicas("replicaSpecs", object{"rdzvEndpoint": "a:1"}, "Worker")},
	{"elastic.iml.github.io/v1alpha1", "ElasticJob", replicas("replicaSpecs", nil, "worker", "ps")},
	{"mxnet.mlkube.io/v1beta1", "MxJob", mxJob},
	{"mlkube.io/v1beta1", "MxJob", mxJob},
	{"batch.volcano.sh/v1alpha1", "Job", roles("tasks", object{"schedulerName": "volcano"}, func(t object) object {
		return object{"name": "", "replicas": 1, "template": t}
	})},
}

// mxJob has the roles, and the container in each, without which its definition refuses it.
func mxJob(g generator) map[string]any {
	var all []any
	for _, role := range []string{"SCHEDULER", "SERVER", "WORKER"} {
		t := g.template("Never")
		spec, _ := t["spec"].(object)
		containers, _ := spec["containers"].([]any)
		first, _ := containers[0].(object)
		first["name"] = "mxnet"
		all = append(all, object{"replicas": 1, "mxReplicaType": role, "PsRootPort": 9000, "template": t})
	}
	return object{"spec": object{"jobMode": "dist", "replicaSpecs": all}}
}
