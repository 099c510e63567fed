// Package part defines the values that rules read of a job, each with the fields that it is made of, and the tree that
// the author wrote. A rule names its values where it is registered, and gets nothing else. So a rule that would read a
// field with a mistake is not called, and nobody lists fields a second time.
package part

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

// Set is fields of a job: metadata, a field of spec, or one a level below it, as workers.min. A field stands for all
// below it.
type Set map[string]bool

// Touch says whether a field, or one above or below it, is in the set.
func (s Set) Touch(field string) bool {
	for known := range s {
		if known == field || strings.HasPrefix(known, field+".") || strings.HasPrefix(field, known+".") {
			return true
		}
	}
	return false
}

// Value is something that rules read of a job, and the fields that it is made of.
type Value[T any] struct {
	fields   string
	of       func(*job.Job) T
	optional bool
}

// New makes a value of fields, which stand in one text, separated by spaces: metadata, or fields of spec.
func New[T any](fields string, of func(*job.Job) T) *Value[T] {
	return &Value[T]{fields: fields, of: of}
}

// OfSpec is New for what is made of the spec alone.
func OfSpec[T any](fields string, of func(*job.Spec) T) *Value[T] {
	return New(fields, func(j *job.Job) T { return of(&j.Spec) })
}

// And is true if all of some values are.
func And(values ...*Value[bool]) *Value[bool] {
	var fields []string
	for _, v := range values {
		fields = append(fields, v.fields)
	}
	return New(strings.Join(fields, " "), func(j *job.Job) bool {
		return !slices.ContainsFunc(values, func(v *Value[bool]) bool { return !v.of(j) })
	})
}

// Fields are those that the value is made of.
func (v *Value[T]) Fields() []string { return strings.Fields(v.fields) }

// Optional is the value for a function that is called even if a field of it has a mistake. The function calls
// Tree.Knows before it uses the value.
func (v *Value[T]) Optional() *Value[T] { return &Value[T]{v.fields, v.of, true} }

func (v *Value[T]) needed() bool { return !v.optional }

// Of is the value.
func (v *Value[T]) Of(j *job.Job) T { return v.of(j) }

// Read is a Value of any type.
type Read interface {
	Fields() []string
	needed() bool
}

// Func is a function of values. Out is where it says what it finds.
type Func[Out any] struct {
	Reads []Read
	Call  func(Out, *job.Job)
}

// Fields are those that the function reads.
func (f Func[Out]) Fields() (all []string) {
	for _, r := range f.Reads {
		all = append(all, r.Fields()...)
	}
	return all
}

// Touches says whether one of the fields that the function reads is in a set.
func (f Func[Out]) Touches(s Set) bool {
	return len(s) > 0 && slices.ContainsFunc(f.Reads, func(r Read) bool {
		return r.needed() && slices.ContainsFunc(r.Fields(), s.Touch)
	})
}

// Of0 registers a function that reads nothing but the tree.
func Of0[Out any](f func(Out)) Func[Out] {
	return Func[Out]{nil, func(out Out, _ *job.Job) { f(out) }}
}

// Of1 registers a function of one value; Of2 to Of5 are for more. They are not inlined: there are hundreds of calls.
//
//go:noinline
func Of1[Out, A any](f func(Out, A), a *Value[A]) Func[Out] {
	return Func[Out]{[]Read{a}, func(out Out, j *job.Job) { f(out, a.of(j)) }}
}

// Of2 registers a function of two values.
//
//go:noinline
func Of2[Out, A, B any](f func(Out, A, B), a *Value[A], b *Value[B]) Func[Out] {
	return Func[Out]{[]Read{a, b}, func(out Out, j *job.Job) { f(out, a.of(j), b.of(j)) }}
}

// Of3 registers a function of three values.
//
//go:noinline
func Of3[Out, A, B, C any](f func(Out, A, B, C), a *Value[A], b *Value[B], c *Value[C]) Func[Out] {
	return Func[Out]{[]Read{a, b, c}, func(out Out, j *job.Job) { f(out, a.of(j), b.of(j), c.of(j)) }}
}

// Of4 registers a function of four values.
//
//go:noinline
func Of4[Out, A, B, C, D any](
	f func(Out, A, B, C, D), a *Value[A], b *Value[B], c *Value[C], d *Value[D],
) Func[Out] {
	return Func[Out]{[]Read{a, b, c, d}, func(out Out, j *job.Job) { f(out, a.of(j), b.of(j), c.of(j), d.of(j)) }}
}

// Of5 registers a function of five values.
//
//go:noinline
func Of5[Out, A, B, C, D, E any](
	f func(Out, A, B, C, D, E), a *Value[A], b *Value[B], c *Value[C], d *Value[D], e *Value[E],
) Func[Out] {
	return Func[Out]{[]Read{a, b, c, d, e}, func(out Out, j *job.Job) {
		f(out, a.of(j), b.of(j), c.of(j), d.of(j), e.of(j))
	}}
}
