package diff

import (
	"github.com/tegen-dev/tegen/internal/names"
)

// Rendered is which versions of tegen rendered the workload of a job that is on both sides, as its objects record it.
type Rendered struct {
	Old       string `json:"old"`
	New       string `json:"new"`
	SameInput bool   `json:"sameInput"` // of the same job, Environment and overlay
}

// String is a line for people, "" where tegen is the same.
func (r *Rendered) String() string {
	switch {
	case r == nil || r.Old == r.New:
		return ""
	case r.SameInput:
		return "rendered by tegen " + r.Old + " and now by " + r.New +
			" from the same input: tegen changed, not the job"
	}
	return "rendered by tegen " + r.Old + " and now by " + r.New + ", and the input changed too"
}

// jobKey is a job by namespace and name.
type jobKey struct{ namespace, name string }

// belongsTo is the job that an object is reported with.
func (o *object) belongsTo() jobKey {
	switch {
	case o.job == "":
		return jobKey{}
	case o.Namespace == "":
		return jobKey{o.jobNamespace, o.job}
	}
	return jobKey{o.Namespace, o.job}
}

// takeRecord moves the record from an object's annotations to where no comparison finds it: it changes with each input,
// and nothing reads it in a cluster.
func (o *object) takeRecord(annotations map[string]any) map[string]any {
	o.version, o.input = text(annotations[names.Version]), text(annotations[names.Input])
	return without(annotations, names.Version, names.Input)
}

// records are those of each job, none where its objects do not agree.
func (s *state) records() map[jobKey][2]string {
	all := map[jobKey][2]string{}
	for _, o := range s.objects {
		if o.input == "" {
			continue
		}
		record := [2]string{o.version, o.input}
		if known, ok := all[o.belongsTo()]; ok && known != record {
			record = [2]string{}
		}
		all[o.belongsTo()] = record
	}
	return all
}

// rendered fills in Rendered of the jobs that both sides have a record of.
func (c *comparison) rendered(jobs []Job) {
	old, next := c.old.records(), c.next.records()
	for i := range jobs {
		key := jobKey{jobs[i].Namespace, jobs[i].Name}
		was, is := old[key], next[key]
		if was[1] != "" && is[1] != "" {
			jobs[i].Rendered = &Rendered{Old: was[0], New: is[0], SameInput: was[1] == is[1]}
		}
	}
}
