package schema

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/schema/environment"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/rule"
)

// TestReads: the values that rules read are made of the fields that they name and of no others. Of each job of a
// fixture, a copy with these fields alone has the same values.
func TestReads(t *testing.T) {
	compared := 0
	for _, file := range append(fixtures(t, "valid"), fixtures(t, "invalid")...) {
		for _, c := range casesIn(t, file) {
			var env *environment.Environment
			if c.env != nil {
				env, _ = loadEnvironment(c.env.Clone(), nil)
			}
			l := loadJob(c.doc.Clone(), env, nil, &loading{})
			if l.Job == nil {
				continue
			}
			for _, r := range rule.Rules {
				for _, read := range r.Reads {
					compared++
					of := reflect.ValueOf(read).MethodByName("Of")
					ask := func(j *job.Job) any { return of.Call([]reflect.Value{reflect.ValueOf(j)})[0].Interface() }
					got, want := ask(only(t, l.Job, read.Fields())), ask(l.Job)
					if !reflect.DeepEqual(got, want) {
						t.Errorf("%s: of %q alone a value is %+v, not %+v", file, read.Fields(), got, want)
					}
				}
			}
		}
	}
	if compared < 10_000 {
		t.Errorf("%d values were compared", compared)
	}
}

// only is a job that has nothing but some of its fields.
func only(t *testing.T, j *job.Job, fields []string) *job.Job {
	t.Helper()
	out := &job.Job{Origin: j.Origin}
	for _, field := range fields {
		from, to := reflect.ValueOf(j).Elem(), reflect.ValueOf(out).Elem()
		if field != "metadata" {
			field = "spec." + field
		}
		for _, name := range strings.Split(field, ".") {
			from, to = byTag(from, to, name)
			if !from.IsValid() {
				break
			}
		}
		if from.IsValid() {
			to.Set(from)
		}
	}
	return out
}

// byTag is a field of two values by its name in JSON; nothing below a pointer that is nil.
func byTag(from, to reflect.Value, name string) (a, b reflect.Value) {
	if from.Kind() == reflect.Pointer {
		if from.IsNil() {
			return a, b
		}
		if to.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
		}
		from, to = from.Elem(), to.Elem()
	}
	fields := reflect.VisibleFields(from.Type())
	i := slices.IndexFunc(fields, func(f reflect.StructField) bool {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return tag == name
	})
	if i < 0 {
		panic("no field " + name + " of " + from.Type().String())
	}
	return from.FieldByIndex(fields[i].Index), to.FieldByIndex(fields[i].Index)
}

// TestBroken: a rule that would read a field with a mistake in it is not asked, whether it names the field or asks the
// tree; all others are.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{
			"the field of a rule, and one beside it",
			"workers: {replicas: many, processes: 9}\nresources: {gpu: 4, cpu: none, memory: none}\n" +
				"rendezvous: {lastCall: 2h, joinTimeout: 1h}",
			[]string{"spec.rendezvous.lastCall", "spec.workers.processes", "spec.workers.replicas"},
		},
		{
			"a section of which a rule reads another field",
			"workers: {replicas: 2}\nrendezvous: {lastCall: 2h, joinTimeout: 1h, port: web}",
			[]string{"spec.rendezvous.lastCall", "spec.rendezvous.port"},
		},
		{
			"a field that only the tree is asked for",
			"workers: {replicas: 2}\nfailure: {restarts: many, restartsPerWorker: 1}",
			[]string{"spec.failure.restarts"},
		},
		{
			"variables and escape hatches beside a broken group",
			"workers: {replicas: 2}\nframework: jax\nenv: [{name: JAX_PROCESS_ID, value: x}]\n" +
				"podTemplate: {spec: {containers: [{name: worker, env: [{name: JAX_PROCESS_ID, value: x}]}]}}\n" +
				"groups: [{replicas: many}]",
			[]string{
				"spec.env[0].name", "spec.groups[0].name", "spec.groups[0].replicas",
				"spec.podTemplate.spec.containers[0].env[0].name",
			},
		},
		{
			"settings of roles beside what another role follows from",
			"workers: {replicas: 2}\nroles: {server: {image: 'x:1'}, launcher: {image: 'x:1'}}\n" +
				"rendezvous: {etcd: {replicas: two}}",
			[]string{"spec.rendezvous.etcd.replicas", "spec.roles.launcher", "spec.roles.server"},
		},
		{
			"the name of a resource that a message has",
			"workers: {replicas: 2}\nresources: {gpu: 4, gpuResource: 'bad name!'}",
			[]string{"spec.resources.gpu", "spec.resources.gpuResource"},
		},
		{
			"fields of a list, of which one is broken",
			"workers: {replicas: 2}\nframework: mxnet\nmxnet: {mode: dist}\nfailure: {restarts: many, inPlace: true}",
			[]string{"spec.failure.inPlace", "spec.failure.restarts"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(small("a"), "  workers: {replicas: 2}\n", "", 1) +
				"  " + strings.ReplaceAll(c.text, "\n", "\n  ") + "\n"
			_, errs := load(t, text)
			var paths []string
			for _, e := range errs {
				paths = append(paths, e.Path)
			}
			if !slices.Equal(slices.Compact(slices.Sorted(slices.Values(paths))), c.want) {
				t.Errorf("%v", errs)
			}
		})
	}
}

// TestFieldsOfReads: what values are made of are fields of a job, or a mistake in one would silence nothing.
func TestFieldsOfReads(t *testing.T) {
	for _, r := range rule.Rules {
		for _, field := range r.Fields() {
			path := "spec." + field
			if field == "metadata" {
				path = field
			}
			if _, _, err := Explain("TrainingJob", path); err != nil {
				t.Errorf("a value is made of %q: %v", field, err)
			}
		}
	}
}

// written is a job of a fixture as it stands there, with its environment.
type written struct{ doc, env *structural.Node }

func casesIn(t *testing.T, file string) (cases []written) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var env *structural.Node
	docs, _ := structural.Split(Source{Name: file, Data: text})
	for _, doc := range docs {
		d := structural.Parse(doc)
		if d.Root == nil || d.Errs != nil {
			continue
		}
		switch kind, errs := kindOf(d.Root); {
		case errs != nil:
		case kind == "TrainingJob":
			cases = append(cases, written{doc: d.Root})
		default:
			env = d.Root
		}
	}
	for i := range cases {
		cases[i].env = env
	}
	return cases
}
