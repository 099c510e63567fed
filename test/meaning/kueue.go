package meaning

// queueLabel names the queue of Kueue that a job waits in.
const queueLabel = "job's label/kueue.x-k8s.io/queue-name"

// queued puts a job that an AppWrapper holds into the wrapper's queue. Kueue admits the wrapper, which has the label,
// for the pods of all that it holds (Kueue's documentation, "Run AppWrappers", on the selection of a queue).
func queued(held, wrapper node) {
	for _, name := range []string{"queue-name", "priority-class"} {
		key := "kueue.x-k8s.io/" + name
		from := wrapper.at("metadata", "labels", key)
		m, _ := held.value.(object)
		if !from.isSet() || m == nil || held.at("metadata", "labels", key).isSet() {
			continue
		}
		metadata, ok := m["metadata"].(object)
		if !ok {
			metadata = object{}
			m["metadata"] = metadata
		}
		labels, ok := metadata["labels"].(object)
		if !ok {
			labels = object{}
			metadata["labels"] = labels
		}
		labels[key] = from.value
	}
}

// suspendedByKueue is what a difference is about where a job that waits in the same queue before and after is written
// as suspended by one of the two alone: Kueue's webhook suspends it when it is made, and Kueue resumes it when it is
// admitted, whatever was written.
const suspendedByKueue = "suspended, as Kueue does by itself"

func byKueue(before, after *job, all []Difference) []Difference {
	queue := before.facts[queueLabel].Value
	if queue == "" || after.facts[queueLabel].Value != queue {
		return all
	}
	for i, d := range all {
		if d.About == "suspend" && (d.Before == "true" && d.After == "" || d.Before == "" && d.After == "true") {
			all[i].About = suspendedByKueue
		}
	}
	return all
}

// passesOver drops from pods the queue and the priority of the job that they belong to: Kueue's webhook leaves pods
// alone whose owner has a queue (kueue v0.19.2, pkg/controller/jobs/pod/pod_webhook.go: "Do not suspend a Pod whose
// owner is already managed by Kueue").
func (j *job) passesOver() {
	if j.kind == "Pod" || j.facts[queueLabel].Value == "" {
		return
	}
	for _, g := range j.groups {
		labels, _ := g.template.at("metadata", "labels").value.(object)
		for _, key := range []string{"kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"} {
			if labels[key] == j.facts["job's label/"+key].Value {
				delete(labels, key)
			}
		}
	}
}
