package importer

import "strings"

// installedRuntimes are those that Trainer itself installs, whose pods are one container of an image (kubeflow/trainer
// v2.3.0, manifests/base/runtimes): TrainJobs name them, and their manifests are in few repositories. No TrainingJob is
// made of the others that it installs: see installedReasons.
var installedRuntimes = map[string]struct{ policy, image string }{
	"torch-distributed": {"torch", "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"},
	"jax-distributed":   {"jax", "nvcr.io/nvidia/jax:25.10-py3"},
}

// runtimeNotGiven stands for a runtime that the input names and does not hold: as Trainer installs it, or one Job of
// pods with the container that runs the TrainJob's program.
func (s *stream) runtimeNotGiven(o *object, kind, name string) *object {
	ref := o.view().at("spec", "runtimeRef")
	container, policy := tree{"name": "node"}, tree{}
	switch known, ok := installedRuntimes[name]; {
	case installedReason(ref) != "": // and it is refused for that
	case ok && kind == "ClusterTrainingRuntime":
		container["image"] = known.image
		policy[known.policy] = tree{}
		s.notes = append(s.notes, ref.note(Changed,
			"the runtime is not in the input: it is taken as Trainer 2.3 installs it, with image %s; if yours is "+
				"another, add what 'kubectl get clustertrainingruntime %s -o yaml' prints", known.image, name))
	default:
		s.notes = append(s.notes, ref.note(Changed,
			"%s %s is not in the input: import assumes pods of one container, without an image, volumes and an "+
				"mlPolicy of their own; add the output of 'kubectl get %s %s -o yaml'", kind, name,
			strings.ToLower(kind), name))
	}
	ref.markTranslated()
	template := tree{"spec": tree{"template": tree{"spec": tree{"containers": []any{container}}}}}
	spec := tree{"mlPolicy": policy, "template": tree{"spec": tree{"replicatedJobs": []any{tree{
		"name":     "node",
		"template": template,
	}}}}}
	runtime := o.reform("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", spec,
		[]place{{[]string{"spec"}, []string{"spec", "runtimeRef"}}})
	metadata, _ := runtime.Object["metadata"].(tree)
	delete(metadata, "annotations")
	delete(metadata, "labels")
	runtime.synthetic = true
	return runtime
}
