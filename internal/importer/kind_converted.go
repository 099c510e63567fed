package importer

import (
	"slices"
	"strconv"
	"strings"
)

// place is where a value of a converted object stands in the input.
type place struct{ ours, theirs []string }

// written is the path of the input that a path of the object comes from.
func (o *object) written(path []string) []string {
	best := -1
	for i, p := range o.places {
		if len(path) >= len(p.ours) && slices.Equal(path[:len(p.ours)], p.ours) &&
			(best < 0 || len(p.ours) > len(o.places[best].ours)) {
			best = i
		}
	}
	if best < 0 {
		return path
	}
	return slices.Concat(o.places[best].theirs, path[len(o.places[best].ours):])
}

// convert is what is read in an object's place: what a wrapper holds, or a kind of the same shape that tegen renders.
func (s *stream) convert(o *object) []*object {
	switch {
	case o.is("workload.codeflare.dev", "AppWrapper"):
		if wrapped := s.unwrap(o); len(wrapped) > 0 {
			return wrapped
		}
	case o.is("sagemaker.amazonaws.com", "HyperPodPyTorchJob"):
		if job := s.hyperPod(o); job != nil {
			return []*object{job}
		}
	case meetsByTFConfig(o):
	case o.is("kubeflow.org", "XGBoostJob"):
		if job := s.xgboost(o); job != nil {
			return []*object{job}
		}
	case o.is("kubeflow.org", o.gvk.Kind) && replicaFields[o.gvk.Kind].field != "":
		if job := s.roleless(o, replicaFields[o.gvk.Kind]); job != nil {
			return []*object{job}
		}
	}
	return []*object{o}
}

// reform is an object of another kind with the name of a first.
func (o *object) reform(version, kind string, spec tree, places []place) *object {
	l := *o.Loose
	l.Object = tree{"apiVersion": version, "kind": kind, "metadata": clone(o.Object["metadata"]), "spec": spec}
	job := newObject(&l)
	job.label, job.places = o.String(), places
	return job
}

// unwrap reads the objects that an AppWrapper holds. Only the AppWrapper itself is in Kueue's queue.
func (s *stream) unwrap(o *object) (all []*object) {
	for i, component := range o.view().at("spec", "components").items() {
		held, ok := clone(component.at("template").value).(tree)
		if !ok || held["kind"] == nil {
			continue
		}
		l := *o.Loose
		l.Object = held
		job := newObject(&l)
		job.places = []place{{nil, []string{"spec", "components", "[" + strconv.Itoa(i) + "]", "template"}}}
		if job.namespace == "" && o.namespace != "" {
			put(held, []string{"metadata", "namespace"}, o.namespace)
			job.namespace = o.namespace
		}
		for _, key := range []string{kueue + "queue-name", kueue + "priority-class"} {
			at := o.view().at("metadata", "labels", key)
			if own := job.view().at("metadata", "labels", key); !at.isSet() || own.isSet() {
				continue
			}
			put(held, []string{"metadata", "labels", key}, at.value)
			job.places = append(job.places, place{
				[]string{"metadata", "labels", key},
				[]string{"metadata", "labels", key},
			})
		}
		all = append(all, job)
	}
	if len(all) > 0 {
		why := "what it holds is read without it: nobody counts its pods, tries it again or deletes it as one"
		if o.view().at("metadata", "labels", kueue+"queue-name").isSet() {
			why += "; each job of it waits in its queue by itself"
		}
		s.notes = append(s.notes, o.note(Changed, "%s", why))
		rest := clone(o.Object).(tree)
		for _, key := range []string{"apiVersion", "kind"} {
			delete(rest, key)
		}
		metadata, _ := rest["metadata"].(tree)
		for _, key := range []string{"name", "namespace"} {
			delete(metadata, key)
		}
		labels, _ := metadata["labels"].(tree)
		for _, key := range []string{kueue + "queue-name", kueue + "priority-class"} {
			delete(labels, key)
		}
		for _, component := range listOf(view{value: rest}.at("spec", "components").value) {
			delete(view{value: component}.mapping(), "template")
		}
		s.leftOver(o, rest)
	}
	return all
}

// leftOver reports what a conversion did not take over.
func (s *stream) leftOver(o *object, rest tree) {
	for _, g := range leaves(rest, nil) {
		s.notes = append(s.notes, view{o, g.steps(), g.have}.note(Dropped, "a TrainingJob has no field for it"))
	}
}

// replicas is a kind of the training operator's without a target of its own: its field of roles, the roles that train,
// the variables that the operator sets and the pods then lack, and the framework.
type replicas struct {
	field  string
	roles  []string
	tells  string
	frames string
}

var replicaFields = map[string]replicas{
	"JAXJob": {
		"jaxReplicaSpecs",
		[]string{"Worker"},
		"", "JAX", // which jaxJobVariables gives them
	},
	"TFJob":     {"tfReplicaSpecs", []string{"Worker", "Chief", "Master"}, "TF_CONFIG", "TensorFlow"},
	"PaddleJob": {"paddleReplicaSpecs", []string{"Worker", "Master"}, "the PADDLE_ variables", "Paddle"},
}

// roleless reads the workers of such a kind as an Indexed Job.
func (s *stream) roleless(o *object, r replicas) *object {
	rest := clone(o.Object).(tree)
	field := slices.DeleteFunc(sortedKeys(o.view().at("spec").mapping()),
		func(key string) bool { return !strings.EqualFold(key, r.field) })
	if len(field) == 0 {
		return nil
	}
	all := view{value: rest}.at("spec", field[0]).mapping()
	i := slices.IndexFunc(r.roles, func(name string) bool { return all[name] != nil })
	if i < 0 {
		return nil
	}
	name := r.roles[i]
	role := o.view().at("spec", field[0], name)
	count := any(int64(1))
	if role.at("replicas").isSet() {
		count = role.at("replicas").value
	}
	job := o.reform("batch/v1", "Job", tree{
		"completionMode": "Indexed", "completions": count, "parallelism": count,
		"template": clone(role.at("template").value),
	}, []place{
		{[]string{"spec", "template"}, role.at("template").path},
		{[]string{"spec", "parallelism"}, role.at("replicas").path},
		{[]string{"spec", "completions"}, role.at("replicas").path},
		{[]string{"spec", "completionMode"}, role.path},
	})
	for _, key := range []string{"backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "suspend"} {
		if v := o.view().at("spec", "runPolicy", key); v.isSet() {
			job.view().at("spec").mapping()[key] = v.value
			job.places = append(job.places, place{[]string{"spec", key}, v.path})
			delete(view{value: rest}.at("spec", "runPolicy").mapping(), key)
		}
	}
	if o.gvk.Kind == "JAXJob" {
		s.jaxJobVariables(job, role)
	} else {
		s.notes = append(s.notes,
			role.note(Changed, "the pods become those of a Job, whose program is not given %s, by which %s finds its "+
				"peers", r.tells, r.frames))
	}
	for _, other := range sortedKeys(all) {
		if other != name {
			s.notes = append(s.notes, o.view().at("spec", field[0], other).note(Changed,
				"a TrainingJob of this framework has workers alone: the pods of this role are not rendered"))
		}
	}
	delete(view{value: rest}.at("spec").mapping(), field[0])
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(rest, key)
	}
	restarts := s.roleRestarts(job, role, o.gvk.Kind)
	for _, key := range sortedKeys(role.mapping()) {
		if key != "replicas" && key != "template" && (key != "restartPolicy" || !restarts) {
			s.notes = append(s.notes, role.at(key).note(Dropped, "a TrainingJob has no field for it"))
		}
	}
	s.leftOver(o, rest)
	return job
}

// hyperPod reads a job of SageMaker HyperPod's operator, whose roles are a list, as a PyTorchJob.
func (s *stream) hyperPod(o *object) *object {
	rest := clone(o.Object).(tree)
	all := o.view().at("spec", "replicaSpecs").items()
	if len(all) == 0 {
		return nil
	}
	worker := all[trainingIndex(all)]
	role := tree{"template": clone(worker.at("template").value)}
	if worker.at("replicas").isSet() {
		role["replicas"] = worker.at("replicas").value
	}
	spec := tree{"pytorchReplicaSpecs": tree{"Worker": role}}
	places := []place{{[]string{"spec", "pytorchReplicaSpecs", "Worker"}, worker.path}}
	for _, key := range []string{"nprocPerNode", "runPolicy"} {
		if v := o.view().at("spec", key); v.isSet() {
			spec[key] = clone(v.value)
			delete(rest["spec"].(tree), key)
		}
	}
	s.notes = append(s.notes,
		o.note(Changed, "it becomes a PyTorchJob of Kubeflow's operator: HyperPod's own agent and its restarts on "+
			"other nodes go"))
	for i, other := range all {
		if i != trainingIndex(all) {
			s.notes = append(s.notes,
				other.note(Changed, "a TrainingJob has workers alone: the pods of this role are not rendered"))
		}
	}
	delete(rest["spec"].(tree), "replicaSpecs")
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(rest, key)
	}
	for _, key := range sortedKeys(worker.mapping()) {
		if key != "replicas" && key != "template" && key != "name" {
			s.notes = append(s.notes, worker.at(key).note(Dropped, "a TrainingJob has no field for it"))
		}
	}
	s.leftOver(o, rest)
	return o.reform("kubeflow.org/v1", "PyTorchJob", spec, places)
}
