package generators

import (
	"maps"
	"slices"
	"testing"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// ofAllGangs are the fields that every dialect takes, beside those in its own row.
var ofAllGangs = []string{"name", "minAvailable", "priority"}

// noGangTakes are fields that no target of a dialect takes, and why.
var noGangTakes = map[string]string{
	"kueue minAvailable": "it admits all pods or none",
}

// TestGangLeaves sets every field that a dialect takes on every target that carries it: what is rendered must
// change, or the job be refused. What one dialect renders is no proof for another.
func TestGangLeaves(t *testing.T) {
	unused := maps.Clone(noGangTakes)
	for _, d := range job.Dialects {
		fields, changed := slices.Concat(ofAllGangs, d.Fields), map[string]bool{}
		for _, target := range target.All {
			if !target.Carries("gang.scheduler=" + d.Name) {
				continue
			}
			for _, field := range fields {
				accepted, changes := setOfGang(t, target, d.Name, field)
				if accepted && !changes {
					t.Errorf("%s of %s/%s: %s is accepted, and changes nothing that is rendered", d.Name,
						target.Framework, target.Name, field)
				}
				changed[field] = changed[field] || changes
			}
		}
		for _, field := range fields {
			key := d.Name + " " + field
			switch {
			case !changed[field] && noGangTakes[key] == "":
				t.Errorf("%s of %s is refused by all targets", field, d.Name)
			case !changed[field]:
				delete(unused, key)
			}
		}
	}
	for key := range unused {
		t.Errorf("noGangTakes has %q, which is not", key)
	}
}

// setOfGang says whether a field of a gang is accepted, and whether it changes what is rendered.
func setOfGang(t *testing.T, target target.Target, scheduler, field string) (accepted, changes bool) {
	t.Helper()
	workers := "{workers: {replicas: 4}}"
	if field == "minAvailable" { // which is all workers of a job that is not elastic
		workers = "{workers: {replicas: 4, min: 1, max: 4}}"
	}
	spec, _ := fromText(t, example(target, "gang.scheduler="+scheduler))["spec"].(map[string]any)
	base := merged(spec, fromText(t, workers))
	before := loadedSpec(t, base)
	if before == nil {
		return false, false
	}
	after := loadedSpec(t, withLeaf(base, []string{"gang", field}, gangValue(t, before, field)))
	if after == nil {
		return false, false
	}
	return true, renderedJob(t, before) != renderedJob(t, after)
}

// gangValue is a value of a gang's field that the job does not have.
func gangValue(t *testing.T, j *job.Job, field string) any {
	t.Helper()
	if field == "groups" {
		return append(j.GangIDs(), "ml/other")
	}
	leaf, _, err := schema.Explain(names.KindTrainingJob, "spec.gang."+field)
	if err != nil {
		t.Fatal(err)
	}
	return exampleOf(t, "gang."+field, leaf)
}
