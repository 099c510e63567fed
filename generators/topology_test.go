package generators

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// topologies are what may be asked of a level, by what is said beside it.
var topologies = map[string]string{"required": "", "preferred": ", mode: preferred", "slice": ", slice: 2"}

// refusedTopologies are those that a dialect takes on no target, or not on some, with a part of the reason.
var refusedTopologies = map[string]string{
	"koordinator mpijob slice":       "the launcher among them",
	"koordinator mxjob slice":        "the scheduler among them",
	"koordinator mxjob-mlkube slice": "the scheduler among them",
	"koordinator mxnet/job slice":    "the scheduler among them",
	"kubernetes preferred":           "in one domain or not at all",
	"kubernetes slice":               "one domain for all of its pods",
	"volcano mpijob":                 "the MPI operator makes the PodGroup",
	"volcano trainjob":               "the number of a tier alone",
	"volcano slice":                  "Volcano tells slices apart by a label",
	"volcano vcjob slice":            "",
	"tegen elasticjob slice":         "the index of an Indexed Job",
	"tegen pytorchjob slice":         "the index of an Indexed Job",
	"tegen mpijob slice":             "the index of an Indexed Job",
	"tegen mxjob slice":              "the index of an Indexed Job",
	"tegen mxjob-mlkube slice":       "the index of an Indexed Job",
	"coscheduling":                   "has no topology",
}

// TestTopologies sets a topology of each kind under every dialect on every target that carries it: what is rendered
// names the level and changes with what is asked, or the job is refused with the reason.
func TestTopologies(t *testing.T) {
	unused := map[string]bool{}
	for key, reason := range refusedTopologies {
		unused[key] = reason != ""
	}
	for _, d := range job.Dialects {
		for _, target := range target.All {
			if !target.Carries("gang.scheduler=" + d.Name) {
				continue
			}
			seen := map[string]string{}
			for kind, more := range topologies {
				key, reason := refusedTopology(d.Name, target, kind)
				unused[key] = false
				text, err := topologyOf(target, d.Name, more)
				switch {
				case reason == "" && err != nil:
					t.Errorf("%s, %s/%s, %s: %v", d.Name, target.Framework, target.Name, kind, err)
				case reason != "" && (err == nil || !strings.Contains(err.Error(), reason)):
					t.Errorf("%s, %s/%s, %s: want a refusal with %q: %v", d.Name, target.Framework, target.Name, kind,
						reason, err)
				case reason == "":
					if seen[text] != "" {
						t.Errorf("%s, %s/%s: %s renders the same as %s", d.Name, target.Framework, target.Name, kind,
							seen[text])
					}
					if seen[text] = kind; !strings.Contains(text, "kubernetes.io/hostname") &&
						!strings.Contains(text, "NodeTopologyLayer") {
						t.Errorf("%s, %s/%s, %s: nothing names the level", d.Name, target.Framework, target.Name, kind)
					}
				}
			}
		}
	}
	for key, left := range unused {
		if left {
			t.Errorf("refusedTopologies has %q, which nothing asks for", key)
		}
	}
}

// refusedTopology is the row of a refusal, the nearest first, and its reason.
func refusedTopology(dialect string, target target.Target, kind string) (key, reason string) {
	keys := []string{
		dialect + " " + target.Framework + "/" + target.Name + " " + kind, dialect + " " + target.Name + " " + kind,
		dialect + " " + target.Name, dialect + " " + kind, dialect,
	}
	for _, key := range keys {
		if reason, ok := refusedTopologies[key]; ok {
			return key, reason
		}
	}
	return "", ""
}

func topologyOf(target target.Target, scheduler, more string) (string, error) {
	text := example(target, "gang.scheduler="+scheduler)
	text = workersLine.ReplaceAllString(text, "  workers: {replicas: 4}")
	text = strings.Replace(text, "  gang: {", "  gang: {topology: {level: node"+more+"}, ", 1)
	jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: []byte(text)}})
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	return textOf(jobs[0])
}

// TestTopologyOfRoles: a Master and the other workers of a job are one group of Kueue's, and a launcher is bound by
// nothing where the scheduler can leave it out: it may tolerate no taint of the domain's nodes.
func TestTopologyOfRoles(t *testing.T) {
	const master = "  framework: torchelastic\n  target: pytorchjob\n  launcher: entrypoint\n" +
		"  workers: {replicas: 4, master: true}\n"
	const launched = "  framework: horovod\n  target: mpijob\n  workers: {replicas: 4}\n"
	for _, c := range []struct {
		name, spec, scheduler string
		want                  []string // the keys of each template that speak of a topology
	}{
		{"Master", master, "kueue, queue: q", []string{
			"kueue.x-k8s.io/podset-group-name kueue.x-k8s.io/podset-required-topology",
			"kueue.x-k8s.io/podset-group-name kueue.x-k8s.io/podset-required-topology",
		}},
		{"launcher of Kueue", launched, "kueue, queue: q", []string{"", "kueue.x-k8s.io/podset-required-topology"}},
		{"launcher of tegen-scheduler", launched, "tegen", []string{"", gatherKey}},
		// It is of the gang, which has one topology: a note says what that asks of the launcher.
		{"launcher of Koordinator", launched, "koordinator", []string{gatherKey, gatherKey}},
	} {
		text := "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j, namespace: ml}\nspec:\n" +
			"  image: x:1\n  command: [train]\n" + c.spec + "  gang: {scheduler: " + c.scheduler +
			", topology: {level: node}}\n"
		var got []string
		for _, p := range podsIn(rendered(t, text)...) {
			var keys []string
			for key := range p.annotations {
				if strings.Contains(key, "podset-") || strings.Contains(key, "topology") {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			got = append(got, strings.Join(keys, " "))
		}
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
