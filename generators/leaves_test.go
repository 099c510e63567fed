package generators

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// TestLeaves sets every leaf of job.cue on every target, in each of its contexts: what is rendered must change in one,
// or the job be refused in all. Neither happens to the pairs in silent, and to no others.
func TestLeaves(t *testing.T) {
	rows, rendered := leafRows(t), baselines{}
	excused := silentPairs(t, rows)
	for _, path := range schema.Paths(names.KindTrainingJob) {
		leaf, below, err := schema.Explain(names.KindTrainingJob, path)
		if err != nil {
			t.Fatal(err)
		}
		name, inSpec := strings.CutPrefix(path, "spec.")
		if !inSpec || len(below) > 0 || name == "framework" || name == "target" || isGangField(name) {
			continue
		}
		somewhere, value := false, exampleOf(t, name, leaf)
		for row, spec := range rows {
			changes, accepted := rendered.set(t, row, spec, name, value)
			pair := name + " on " + row
			why, silent := excused[pair]
			if accepted && !changes && !silent {
				t.Errorf("%s: it is accepted, and changes nothing that is rendered", pair)
			}
			if silent && (changes || !accepted) {
				t.Errorf("%s is not silent (%s): it is refused, or changes what is rendered", pair, why)
			}
			somewhere = somewhere || changes || silent
			delete(excused, pair)
		}
		if !somewhere {
			t.Errorf("%s changes nothing anywhere: contexts lacks what it needs", name)
		}
	}
	for pair := range excused {
		t.Errorf("silent has %s, which is not a leaf", pair)
	}
	for _, c := range contexts {
		if !rendered.accept(t, rows, c.spec) {
			t.Errorf("no target accepts the context %s", c.spec)
		}
	}
}

// leafRows are jobs that lack nothing, by target, or by the mode of one that makes other pods.
func leafRows(t *testing.T) map[string]map[string]any {
	t.Helper()
	rows := map[string]map[string]any{}
	for _, target := range target.All {
		spec, _ := fromText(t, example(target, ""))["spec"].(map[string]any)
		rows[target.Framework+"/"+target.Name] = spec
	}
	for mode, more := range map[string]string{
		"mxnet/job/local":          "{mxnet: {mode: local}, workers: {replicas: 1}}",
		"bytescheduler/job/byteps": "{bytescheduler: {mode: byteps}}",
	} {
		rows[mode] = merged(rows[mode[:strings.LastIndex(mode, "/")]], fromText(t, more))
	}
	return rows
}

// baseline is a job before a leaf is set in it, and what is rendered of it: "" where it is refused.
type baseline struct {
	spec map[string]any
	text string
}

// baselines are those of each row in each context.
type baselines map[[2]string]baseline

func (b baselines) of(t *testing.T, row string, spec map[string]any, context string) baseline {
	t.Helper()
	key := [2]string{row, context}
	if _, known := b[key]; !known {
		base := merged(spec, fromText(t, "{"+context+"}"))
		b[key] = baseline{base, renderedSpec(t, base)}
	}
	return b[key]
}

// set says whether a leaf changes what is rendered in any of its contexts, or is accepted at least.
func (b baselines) set(
	t *testing.T, row string, spec map[string]any, name string, value any,
) (changes, accepted bool) {
	t.Helper()
	for _, context := range contextsOf(name) {
		before := b.of(t, row, spec, context)
		if before.text == "" {
			continue
		}
		after := renderedSpec(t, withLeaf(before.spec, strings.Split(name, "."), value))
		if after != "" && after != before.text {
			return true, true
		}
		accepted = accepted || after != ""
	}
	return false, accepted
}

func (b baselines) accept(t *testing.T, rows map[string]map[string]any, context string) bool {
	t.Helper()
	for row, spec := range rows {
		if b.of(t, row, spec, context).text != "" {
			return true
		}
	}
	return false
}

func contextsOf(name string) (specs []string) {
	for _, c := range contexts {
		if strings.HasPrefix(name, c.leaf) {
			specs = append(specs, c.spec)
		}
	}
	role, field, toleration := strings.Cut(strings.TrimPrefix(name, "roles."), ".tolerations.")
	if !toleration || !strings.HasPrefix(name, "roles.") {
		return specs
	}
	item := "{key: a, operator: Equal, value: b, effect: NoExecute}"
	if field == "operator" {
		item = "{key: a, operator: Exists}"
	}
	for i := range specs {
		more := "roles: {" + role + ": {tolerations: [" + item + "]}}"
		specs[i] = strings.TrimPrefix(specs[i]+", "+more, ", ")
	}
	return specs
}

// isGangField says whether TestGangLeaves has the leaf.
func isGangField(name string) bool {
	return strings.HasPrefix(name, "gang.") && name != "gang.scheduler"
}

// renderedSpec are a job's objects as text, "" where it is refused.
func renderedSpec(t *testing.T, spec map[string]any) string {
	t.Helper()
	if j := loadedSpec(t, spec); j != nil {
		return renderedJob(t, j)
	}
	return ""
}

// renderedJob leaves out what is said to exist already: to expect a queue is not to ask for it.
func renderedJob(t *testing.T, j *job.Job) string {
	t.Helper()
	var out []byte
	for _, c := range Generate(j) {
		for _, obj := range c.Objects {
			m, err := apimeta.Accessor(obj)
			if err != nil {
				t.Fatal(err)
			}
			a := m.GetAnnotations()
			if delete(a, names.Expects); len(a) == 0 {
				m.SetAnnotations(nil)
			}
			if out, err = manifest.Append(out, obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	return string(out)
}

// loadedSpec is a job, nil where it is refused.
func loadedSpec(t *testing.T, spec map[string]any) *job.Job {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": names.APIVersion, "kind": names.KindTrainingJob,
		"metadata": map[string]any{"name": "j", "namespace": "ml"}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: text}})
	if err != nil {
		return nil
	}
	return jobs[0].WithoutInput()
}

func fromText(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// merged is a with b's fields over its own; null takes one away.
func merged(a, b map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, a)
	for k, v := range b {
		if below, ok := v.(map[string]any); ok {
			own, _ := out[k].(map[string]any)
			v = merged(own, below)
		}
		if out[k] = v; v == nil {
			delete(out, k)
		}
	}
	return out
}

// withLeaf is a copy of a mapping with a value somewhere below, of a list in its first item.
func withLeaf(m map[string]any, path []string, value any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, m)
	if len(path) == 1 {
		out[path[0]] = value
		return out
	}
	switch below := out[path[0]].(type) {
	case []any:
		item, _ := below[0].(map[string]any)
		out[path[0]] = append([]any{withLeaf(item, path[1:], value)}, below[1:]...)
	case map[string]any:
		out[path[0]] = withLeaf(below, path[1:], value)
	default:
		out[path[0]] = withLeaf(nil, path[1:], value)
	}
	return out
}

// exampleOf is a value that a leaf does not have by default.
func exampleOf(t *testing.T, name string, leaf schema.Field) any {
	t.Helper()
	return fromText(t, "v: "+exampleText(name, leaf))["v"]
}

func exampleText(name string, leaf schema.Field) string {
	for end, more := name, true; more; _, end, more = strings.Cut(end, ".") {
		if text := values[end]; text != "" {
			return text
		}
	}
	if words, isEnum := strings.CutPrefix(leaf.Type, "one of "); isEnum {
		for value := range strings.SplitSeq(words, ", ") {
			if value != leaf.Default {
				return value
			}
		}
	}
	if leaf.Type == "true or false" && leaf.Default == "true" {
		return "false"
	}
	for _, row := range byType {
		if row.words.MatchString(leaf.Type) {
			return row.value
		}
	}
	return ""
}

// silentPairs are those of leaf and row in silent, with the reason.
func silentPairs(t *testing.T, rows map[string]map[string]any) map[string]string {
	t.Helper()
	pairs := map[string]string{}
	for _, s := range silent {
		for name := range strings.FieldsSeq(s.rows) {
			found := false
			for row := range rows {
				if row != name && (strings.Contains(name, "/") || !strings.HasPrefix(row, name+"/")) {
					continue
				}
				found = true
				for leaf := range strings.FieldsSeq(s.leaves) {
					pairs[leaf+" on "+row] = s.why
				}
			}
			if !found || s.why == "" {
				t.Errorf("silent has %s on %s, which is no row, or no reason", s.leaves, name)
			}
		}
	}
	return pairs
}
