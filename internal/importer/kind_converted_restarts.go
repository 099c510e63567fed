package importer

// roleRestarts gives a Job what becomes of a failed pod in a role of the training operator's, which it says for the
// pod: that is started again in its place, with no limit unless runPolicy has one, or ends the job. It says whether a
// Job can do the same (kubeflow/training-operator v1.9.4, pkg/controller.v1/common/pod.go, and PastBackoffLimit in
// pkg/core/job.go).
func (s *stream) roleRestarts(job *object, role view, kind string) bool {
	at, policy := role.at("restartPolicy"), role.at("restartPolicy").text()
	if policy == "" {
		policy = "Never" // the API's default
		if kind == "PaddleJob" {
			policy = "OnFailure"
		}
	}
	spec := job.view().at("spec").mapping()
	switch {
	case policy == "Never":
		spec["backoffLimit"] = int64(0)
		s.notes = append(s.notes, orElse(at, role).note(Translated,
			"the first pod that fails ends the job, as with backoffLimit 0"))
	case policy != "OnFailure":
		return false
	case spec["backoffLimit"] == nil:
		spec["backoffLimit"] = int64(mostRestarts)
		s.notes = append(s.notes, orElse(at, role).note(Translated,
			"what fails is started again in its pod, up to a backoffLimit of %d", mostRestarts))
	default:
		s.notes = append(s.notes, orElse(at, role).note(Translated, "what fails is started again in its pod"))
	}
	if pod := job.view().at("spec", "template", "spec").mapping(); pod != nil {
		pod["restartPolicy"] = policy
		job.places = append(job.places, place{[]string{"spec", "template", "spec", "restartPolicy"}, at.path})
	}
	return true
}
