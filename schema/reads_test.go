package schema

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/rule"
)

// TestReads: the values that rules read are made of the fields that they name and of no others. Of each job of a
// fixture, a copy with these fields alone has the same values.
func TestReads(t *testing.T) {
	compared := 0
	for _, file := range fixtures(t, "valid") {
		for _, c := range casesIn(t, file) {
			a, ok := c.ask()
			if !ok || len(a.invalid) > 0 {
				continue
			}
			for _, r := range rule.Rules {
				for _, read := range r.Reads {
					compared++
					got, want := read.Any(only(t, a.job, read.Fields())), read.Any(a.job)
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
