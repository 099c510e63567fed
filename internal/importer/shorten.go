package importer

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/tegen-dev/tegen/generators"
)

// trials is how many bytes of jobs are rendered to find out what may be left out. A job of usual size takes a tenth; one
// of thousands of fields stays longer than it could be.
const trials = 1 << 20

// shortener leaves fields out of a job and its sound copy.
type shortener struct {
	sound tree
	want  []generators.Concern
	left  int // of trials
}

// shorten leaves out of the job what does not change what its sound copy renders.
func (d *draft) shorten(sound tree) {
	s := &shortener{sound, generated(sound), trials}
	if s.want == nil {
		return
	}
	if w := d.get("spec.workers"); w.at("min").text() != w.at("max").text() { // an elastic job is known by these two
		s.drop(d.get("spec.workers").mapping(), view{value: sound}.at("spec", "workers").mapping(), "replicas")
	}
	s.tree(d.job, sound)
}

// same says whether the sound copy still renders what it did.
func (s *shortener) same() bool {
	if s.left <= 0 {
		return false
	}
	s.left -= len(ordered(s.sound))
	return equality.Semantic.DeepEqual(s.want, generated(s.sound))
}

// whole are mappings that are left out as one or not at all: their keys are the author's, and each renders something.
var whole = map[string]bool{"podTemplate": true, "labels": true, "annotations": true, "nodeSelector": true, "conf": true}

func (s *shortener) tree(job, sound tree) {
	for _, key := range sortedKeys(sound) {
		if key == "podTemplate" || s.drop(job, sound, key) || whole[key] || key == "env" {
			continue
		}
		switch x := sound[key].(type) {
		case tree:
			if below, ok := job[key].(tree); ok {
				s.tree(below, x)
			}
		case []any:
			s.list(listOf(job[key]), x)
		}
	}
}

func (s *shortener) list(job, sound []any) {
	for i, item := range job {
		below, ok := item.(tree)
		if other, also := sound[min(i, len(sound)-1)].(tree); ok && also && len(job) == len(sound) {
			s.tree(below, other)
		}
	}
}

// drop takes a field out of a job and its sound copy, where they agree about it and it changes nothing.
func (s *shortener) drop(job, sound tree, key string) bool {
	value, ok := sound[key]
	if !ok || !reflect.DeepEqual(value, job[key]) {
		return false
	}
	delete(sound, key)
	if s.same() {
		delete(job, key)
		return true
	}
	sound[key] = value
	return false
}
