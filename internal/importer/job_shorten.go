package importer

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/schema/job"
)

// maxTrialBytes is how many bytes of jobs are loaded to find out what may be left out. A job of usual size takes a
// tenth; one of thousands of fields stays longer than it could be.
const maxTrialBytes = 1 << 20

// shortener leaves fields out of a job and of its valid subset.
type shortener struct {
	valid tree
	job   *job.Job // the valid subset as it was loaded
	want  []generators.Concern
	left  int // of maxTrialBytes
}

// shorten leaves out of the job what does not change what its valid subset renders.
func (d *draft) shorten(valid tree) {
	j := loaded(ordered(valid))
	if j == nil {
		return
	}
	s := &shortener{valid, j, generators.Generate(j), maxTrialBytes}
	s.machine(d.job)
	if w := d.get("spec.workers"); w.at("min").text() != w.at("max").text() { // an elastic job is known by these two
		s.drop(d.get("spec.workers").mapping(), view{value: valid}.at("spec", "workers").mapping(), "replicas")
	}
	for _, part := range sortedKeys(requiredFields) {
		s.tree(view{value: d.job}.at(part).mapping(), view{value: valid}.at(part).mapping(), requiredFields[part]...)
	}
}

// same says whether the valid subset still renders what it did, in any release. A job that is completed to the same
// fields does, and need not be rendered.
func (s *shortener) same() bool {
	if s.left <= 0 {
		return false
	}
	text := ordered(s.valid)
	s.left -= len(text)
	j := loaded(text)
	return j != nil && !j.ImageOfRelease() && (equality.Semantic.DeepEqual(s.job.Spec, j.Spec) &&
		equality.Semantic.DeepEqual(s.job.Metadata, j.Metadata) ||
		equality.Semantic.DeepEqual(s.want, generators.Generate(j)))
}

// wholeMappings are mappings that are left out as one or not at all: their keys are the author's, and each renders
// something.
var wholeMappings = map[string]bool{
	"podTemplate": true, "labels": true, "annotations": true, "nodeSelector": true,
	"conf": true, "devices": true,
}

// requiredFields are those without which no job loads, by where they are: leaving them out need not be tried.
var requiredFields = map[string][]string{"metadata": {"name"}, "spec": {"image", "workers"}}

func (s *shortener) tree(job, valid tree, required ...string) {
	for _, key := range sortedKeys(valid) {
		if key == "podTemplate" || !slices.Contains(required, key) && s.drop(job, valid, key) || wholeMappings[key] ||
			key == "env" {
			continue
		}
		switch x := valid[key].(type) {
		case tree:
			if below, ok := job[key].(tree); ok {
				s.tree(below, x)
			}
		case []any:
			s.list(listOf(job[key]), x)
		}
	}
}

func (s *shortener) list(job, valid []any) {
	for i, item := range job {
		below, ok := item.(tree)
		if other, also := valid[min(i, len(valid)-1)].(tree); ok && also && len(job) == len(valid) {
			s.tree(below, other)
		}
	}
}

// drop takes a field out of a job and its valid subset, where they agree about it and it changes nothing.
func (s *shortener) drop(job, valid tree, key string) bool {
	value, ok := valid[key]
	if !ok || !reflect.DeepEqual(value, job[key]) {
		return false
	}
	delete(valid, key)
	if s.same() {
		delete(job, key)
		return true
	}
	valid[key] = value
	return false
}
