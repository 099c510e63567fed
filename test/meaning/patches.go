package meaning

import "slices"

// patched puts the runtimePatches of a TrainJob into its runtime, as Trainer does (kubeflow/trainer v2.3.0,
// pkg/runtime/core/trainingruntime.go: a strategic merge of the JobSet's spec, and labels and annotations beside it).
func (j *job) patched(runtime, spec node) {
	for _, patch := range spec.at("runtimePatches").items() {
		set := patch.at("trainingRuntimeSpec", "template")
		for _, list := range []string{"labels", "annotations"} {
			for _, key := range set.at("metadata", list).keys() {
				v := set.at("metadata", list, key)
				j.facts.set("runtime's template.metadata."+list+"."+key, v.text(), v)
			}
		}
		into, _ := runtime.at("spec", "template", "spec").value.(object)
		from, _ := set.at("spec").value.(object)
		if into != nil && from != nil {
			merge(into, from)
		}
	}
}

// mergeKeys are the keys by which Kubernetes merges the items of lists; of others, and of tolerations, the later list
// stands.
var mergeKeys = map[string]string{
	"replicatedJobs": "name", "containers": "name", "initContainers": "name", "volumes": "name", "env": "name",
	"volumeMounts": "mountPath", "imagePullSecrets": "name", "schedulingGates": "name",
}

func merge(into, from object) {
	for key, value := range from {
		own, is := into[key].(object)
		if below, also := value.(object); is && also {
			merge(own, below)
			continue
		}
		name, items := mergeKeys[key], node{value: value}.items()
		list, isList := into[key].([]any)
		if name == "" || !isList {
			into[key] = value
			continue
		}
		for _, item := range items {
			i := slices.IndexFunc(list, func(own any) bool {
				return node{value: own}.at(name).text() == item.at(name).text()
			})
			if i < 0 {
				list = append(list, item.value)
			} else if same, ok := list[i].(object); ok {
				below, _ := item.value.(object)
				merge(same, below)
			}
		}
		into[key] = list
	}
}
