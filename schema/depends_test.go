package schema

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/environment"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/rule"
)

// TestDependsOn: what rules depend on are fields, or a mistake in one would silence nothing.
func TestDependsOn(t *testing.T) {
	for _, rule := range rule.Rules {
		for _, part := range rule.Fields() {
			path := "spec." + part
			if part == "metadata" {
				path = part
			}
			if _, _, err := Explain("TrainingJob", path); err != nil {
				t.Errorf("a rule depends on %q: %v", strings.Join(rule.Fields(), " "), err)
			}
		}
	}
}

// TestDependsOnIsWhole: a rule names all that it depends on. Each value of each fixture is made invalid, one at a time.
// A rule that is asked all the same must say what it said before, but for what it says of that value.
func TestDependsOnIsWhole(t *testing.T) {
	tried, asked := 0, 0
	for _, file := range append(fixtures(t, "valid"), fixtures(t, "invalid")...) {
		for _, c := range casesIn(t, file) {
			before, ok := c.ask()
			if !ok || len(before.invalid) > 0 {
				continue
			}
			for _, v := range c.values() {
				after, ok := c.with(v)
				if !ok {
					continue
				}
				tried++
				for i, rule := range rule.Rules {
					if !after.asked[i] {
						continue
					}
					asked++
					if said, says := about(before.said[i], v), about(after.said[i], v); said != says {
						t.Errorf("%s: a rule depends on %q, but without %s it says %q, not %q", file, strings.Join(rule.Fields(), " "), v,
							says, said)
					}
				}
			}
		}
	}
	if tried < 5000 || asked < 50*tried {
		t.Errorf("%d mistakes were tried, and rules asked %d times", tried, asked)
	}
}

// dependsCase is a job of a fixture, with its environment.
type dependsCase struct{ doc, env *structural.Node }

// answers are what every rule says of a job.
type answers struct {
	said    [][]Error
	asked   []bool
	job     *job.Job
	invalid part.Set
}

func casesIn(t *testing.T, file string) (cases []dependsCase) {
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
			cases = append(cases, dependsCase{doc: d.Root})
		default:
			env = d.Root
		}
	}
	for i := range cases {
		cases[i].env = env
	}
	return cases
}

// ask loads the job and asks every rule, whatever is invalid. It says whether that could be done.
func (c dependsCase) ask() (answers, bool) {
	var env *environment.Environment
	if c.env != nil {
		env, _ = loadEnvironment(c.env.Clone(), nil)
	}
	root := c.doc.Clone()
	l := loadJob(root, env, nil, &loading{})
	if l.Job == nil {
		return answers{}, false
	}
	a := answers{invalid: l.Invalid, job: l.Job}
	for _, ru := range rule.Rules {
		said, asked := rule.Ask(ru, l.Job, root, l.Invalid)
		a.said, a.asked = append(a.said, said), append(a.asked, asked)
	}
	return a, true
}

// value is one of a case: a path in its job or in its environment.
type value struct {
	env  bool
	path []string
}

func (v value) String() string { return strings.Join(v.path, ".") }

// values are those down to the level of parts.
func (c dependsCase) values() (all []value) {
	var walk func(n *structural.Node, env bool, levels int, path []string)
	walk = func(n *structural.Node, env bool, levels int, path []string) {
		if len(path) > 1 {
			all = append(all, value{env, path})
		}
		if len(path) > levels {
			return
		}
		for _, e := range n.Fields {
			if len(path) > 0 || e.Key == "spec" {
				walk(e.Value, env, levels, append(slices.Clone(path), e.Key))
			}
		}
	}
	all = append(all, value{false, []string{"metadata"}})
	walk(c.doc, false, 2, nil)
	if c.env != nil {
		walk(c.env, true, 3, nil)
	}
	return all
}

// with asks again where a value is null, which is invalid everywhere.
func (c dependsCase) with(v value) (answers, bool) {
	n := &c.doc
	if v.env {
		n = &c.env
	}
	*n = (*n).Clone()
	at := *n
	for _, name := range v.path {
		at = at.Field(name)
	}
	at.Kind = yamldoc.Null
	return c.ask()
}

// about leaves out what is said of a value itself, or of what is above or below it.
func about(errs []Error, v value) string {
	var out []string
	for _, e := range errs {
		if !within(e.Path, v.String()) && !within(v.String(), e.Path) {
			out = append(out, fmt.Sprintf("%s: %s", e.Path, e.Msg))
		}
	}
	slices.Sort(out) // rules look at mappings in Go's order of maps
	return strings.Join(out, "; ")
}

// within says whether a path is another or one below it, by whole segments; below "" is nothing.
func within(path, other string) bool {
	rest, begins := strings.CutPrefix(path, other)
	return begins && (rest == "" || other != "" && strings.ContainsRune(".[", rune(rest[0])))
}

// TestWithin: spec.a has nothing to do with spec.ab.
func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path, other string
		want        bool
	}{
		{"spec.a", "spec.a", true},
		{"spec.a.b", "spec.a", true},
		{"spec.a[0].b", "spec.a", true},
		{"spec.ab", "spec.a", false},
		{"spec.a", "spec.a.b", false},
		{"spec.a", "", false},
		{"", "", true},
	} {
		if got := within(c.path, c.other); got != c.want {
			t.Errorf("within(%q, %q) = %v", c.path, c.other, got)
		}
	}
}
