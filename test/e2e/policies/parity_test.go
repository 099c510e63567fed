// Package policies compares what tegen says of objects by a policy with what CEL says of them by the exported policy:
// in this process, and on a real API server.
package policies

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/tegen-dev/tegen/internal/admission"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/render"
)

// rulesEach is how many rules a policy has. The violations of all must fit into the warnings of one response.
const rulesEach = 40

// fuzzed is a random policy.
type fuzzed struct {
	*policy.Policy
	sources []policy.Source
	excused map[string]bool // files with a rule that Notes names
}

// newPolicy has rules in a file each, so that one that contradicts the others can be left out.
func newPolicy(t *testing.T, g generator, file func() string) *fuzzed {
	t.Helper()
	f := &fuzzed{excused: map[string]bool{}}
	for tries := 0; len(f.sources) < rulesEach && tries < 100*rulesEach; tries++ {
		name := fmt.Sprintf("r%d.cue", len(f.sources))
		sources := append(slices.Clone(f.sources), policy.Source{Name: name, Text: []byte(file())})
		p, err := policy.Load(sources, render.PolicyTypes())
		if err != nil {
			continue
		}
		if _, err := admission.Export(p, options); err != nil {
			continue
		}
		f.Policy, f.sources = p, sources
	}
	if len(f.sources) < rulesEach {
		t.Fatalf("only %d rules of %d can be together", len(f.sources), rulesEach)
	}
	for _, n := range admission.Notes(f.Policy) {
		f.excused[n.File] = true
	}
	return f
}

var options = admission.Options{Name: "p", Namespaces: []string{"n"}, Actions: []admissionv1.ValidationAction{"Warn"}}

// ruleAt is the position at the end of every message.
var ruleAt = regexp.MustCompile(`\(((r\d+\.cue):\d+:\d+)\)$`)

// byTegen are the rules that tegen says an object violates.
func (f *fuzzed) byTegen(t *testing.T, object map[string]any) map[string]bool {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Read("object", text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out := map[string]bool{}
	for _, v := range render.Violations(objects, f.Policy) {
		m := ruleAt.FindStringSubmatch(v.Message)
		if m == nil {
			t.Fatalf("no rule in %q", v.Message)
		}
		if !f.excused[m[2]] {
			out[m[1]] = true
		}
	}
	return out
}

// agree reports whether both verdicts are the same. Where the cluster sets a field that a rule requires and whose value
// the rule refuses, the rule is violated in both, at different positions.
func agree(a, b map[string]bool) bool {
	files := func(rules map[string]bool) map[string]bool {
		out := map[string]bool{}
		for rule := range rules {
			file, _, _ := strings.Cut(rule, ":")
			out[file] = true
		}
		return out
	}
	return maps.Equal(a, b) || maps.Equal(files(a), files(b))
}

// rules are the positions of validations that are compared, by their index.
func (f *fuzzed) rules(validations []admissionv1.Validation) map[int]string {
	out := map[int]string{}
	for i, v := range validations {
		if m := ruleAt.FindStringSubmatch(v.Message); !f.excused[m[2]] {
			out[i] = m[1]
		}
	}
	return out
}

// exported are the policies of the export.
func (f *fuzzed) exported(t *testing.T, o admission.Options) (all []*admissionv1.ValidatingAdmissionPolicy,
	bindings []runtime.Object,
) {
	t.Helper()
	objects, err := admission.Export(f.Policy, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if p, ok := o.(*admissionv1.ValidatingAdmissionPolicy); ok {
			all = append(all, p)
			continue
		}
		bindings = append(bindings, o)
	}
	return all, bindings
}

// evaluator has the functions and options of an API server.
type evaluator struct{ *cel.Env }

func newEvaluator(t *testing.T) evaluator {
	t.Helper()
	env, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).StoredExpressionsEnv().Extend(
		cel.Variable("object", cel.DynType), cel.Variable("pods", cel.DynType), cel.Variable("before", cel.DynType),
		cel.Variable("request", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	return evaluator{env}
}

// compiled is an exported policy that runs in this process.
type compiled struct {
	pods        cel.Program
	validations map[cel.Program]string // the rule
}

func (e evaluator) program(t *testing.T, expression string) cel.Program {
	t.Helper()
	ast, issues := e.Compile(strings.ReplaceAll(expression, "variables.", ""))
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := e.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func (e evaluator) compile(t *testing.T, f *fuzzed, p *admissionv1.ValidatingAdmissionPolicy,
	change func(string) string,
) compiled {
	t.Helper()
	c := compiled{validations: map[cel.Program]string{}}
	if len(p.Spec.Variables) > 0 {
		c.pods = e.program(t, p.Spec.Variables[0].Expression)
	}
	for i, rule := range f.rules(p.Spec.Validations) {
		c.validations[e.program(t, change(p.Spec.Validations[i].Expression))] = rule
	}
	return c
}

// violated are the rules whose expressions are false, or fail, for an object.
func (c compiled) violated(t *testing.T, object any) map[string]bool {
	t.Helper()
	in := map[string]any{"object": object, "request": map[string]any{"operation": "CREATE"}}
	if c.pods != nil {
		pods, _, err := c.pods.Eval(in)
		if err != nil {
			t.Fatal(err)
		}
		in["pods"] = pods
	}
	out := map[string]bool{}
	for program, rule := range c.validations {
		if result, _, err := program.Eval(in); err != nil || result.Value() != true {
			out[rule] = true
		}
	}
	return out
}

// custom are the kinds whose objects an API server leaves as they are.
func custom() []workload {
	return slices.DeleteFunc(slices.Clone(workloads), func(w workload) bool {
		return !strings.Contains(w.apiVersion, ".")
	})
}

// TestInProcess compares verdicts about custom resources, into which no API server writes defaults.
func TestInProcess(t *testing.T) {
	g := newGenerator(seedOf(t))
	e := newEvaluator(t)
	verdicts, violated := 0, 0
	for range 6 {
		f := newPolicy(t, g, func() string { return g.file("pod", podTemplate) })
		all, _ := f.exported(t, options)
		c := e.compile(t, f, all[0], func(s string) string { return s })
		for _, w := range custom() {
			for range 6 {
				o := normal(t, w.object(g, "a"))
				want, got := f.byTegen(t, o), c.violated(t, integers(o))
				verdicts, violated = verdicts+len(c.validations), violated+len(want)
				if !maps.Equal(want, got) {
					t.Fatalf("%s", difference(t, f, all[0], o, want, got))
				}
			}
		}
	}
	t.Logf("%d verdicts, %d of them violations", verdicts, violated)
	if violated < verdicts/20 || violated > verdicts*19/20 {
		t.Error("nearly all verdicts are the same")
	}
}

func difference(t *testing.T, f *fuzzed, p *admissionv1.ValidatingAdmissionPolicy, o any, want, got map[string]bool,
) string {
	t.Helper()
	var b strings.Builder
	seen := map[string]bool{}
	for i, rule := range f.rules(p.Spec.Validations) {
		if want[rule] == got[rule] || seen[rule] {
			continue
		}
		seen[rule] = true
		for _, s := range f.sources {
			if strings.HasPrefix(rule, s.Name+":") {
				fmt.Fprintf(&b, "%s\n%s", rule, s.Text)
			}
		}
		fmt.Fprintf(&b, "tegen %v, CEL %v: %s\n", want[rule], got[rule], p.Spec.Validations[i].Expression)
		if len(seen) > 2 {
			break
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + string(text)
}

// normal is an object as it is read from JSON.
func normal(t *testing.T, o map[string]any) (out map[string]any) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// integers makes whole numbers int64, as an API server does.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key := range v {
			out[key] = integers(v[key])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = integers(v[i])
		}
		return out
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

// mutants are mistakes that a translator could make.
var mutants = [][2]string{
	{" && ", " || "},
	{" || ", " && "},
	{"!has(", "has("},
	{"has(", "!has("},
	{" != \"\"", ""},
	{" != false", " == false"},
	{" != {}", ""},
	{" != []", ""},
	{" <= ", " < "},
	{" >= ", " > "},
	{" == ", " != "},
	{".all(v", ".exists(v"},
	{"variables.pods.all(", "variables.pods.exists("},
	{".compareTo(quantity(\"", ".compareTo(quantity(\"9"},
	{".matches(", ".contains("},
	{".startsWith(", ".endsWith("},
	{"p.spec.serviceAccount)", "p.spec.hostname)"},
	{"containers.all(", "containers.filter(c, c.name == \"c0\").all("},
	{"size(", "1 + size("},
	{".exists_one(", ".exists("},
}

// TestMutants changes the expressions in one way each. The comparison must find a difference.
func TestMutants(t *testing.T) {
	g := newGenerator(2)
	e := newEvaluator(t)
	caught := map[string]bool{}
	for range 40 {
		if !slices.ContainsFunc(mutants, func(m [2]string) bool { return !caught[m[0]] }) {
			break
		}
		f := newPolicy(t, g, func() string { return g.file("pod", podTemplate) })
		all, _ := f.exported(t, options)
		var samples []map[string]any
		for _, w := range custom() {
			samples = append(samples, normal(t, w.object(g, "a")), normal(t, w.object(g, "a")))
		}
		for _, m := range mutants {
			if caught[m[0]] {
				continue
			}
			c := e.compile(t, f, all[0], func(s string) string { return strings.ReplaceAll(s, m[0], m[1]) })
			caught[m[0]] = slices.ContainsFunc(samples, func(o map[string]any) bool {
				return !maps.Equal(f.byTegen(t, o), c.violated(t, integers(o)))
			})
		}
	}
	for _, m := range mutants {
		if !caught[m[0]] {
			t.Errorf("no difference is seen if %q is %q", m[0], m[1])
		}
	}
	t.Logf("%d mutants are caught", len(mutants))
}
