package policy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// evaluator evaluates expressions with the functions and options of a Kubernetes API server.
type evaluator struct{ env *cel.Env }

func newEvaluator(t *testing.T) evaluator {
	t.Helper()
	base := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).StoredExpressionsEnv()
	env, err := base.Extend(cel.Variable("object", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	return evaluator{env}
}

// violated are the positions of rules whose expressions do not hold for an object.
func (e evaluator) violated(t *testing.T, validations []Validation, object any) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, v := range validations {
		program, err := e.compile(v.Expression)
		if err != nil {
			t.Fatalf("%s: %v", v.Expression, err)
		}
		result, _, err := program.Eval(map[string]any{"object": object})
		if err != nil || result.Value() != true {
			out[v.Rule] = true
		}
	}
	return out
}

func (e evaluator) compile(expression string) (cel.Program, error) {
	ast, issues := e.env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	return e.env.Program(ast)
}

// integers makes numbers of a JSON document int64 where they are, as an API server does.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = integers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v
		}
		return f
	}
	return v
}

// TestCEL compares verdicts of tegen with those of the same rules in CEL, for random policies and values.
func TestCEL(t *testing.T) {
	rounds, seed := roundsOf(t)
	g := &generator{rand.New(rand.NewPCG(seed, 1))}
	e := newEvaluator(t)
	translated, refused, passed, failed := 0, 0, 0, 0
	for range rounds {
		text := "import (\"list\", \"strings\")\njob: spec: patch: " + g.mapping(3)
		p, err := Load([]Source{{Name: "p.cue", Text: []byte(text)}}, types)
		if err != nil {
			continue
		}
		validations, err := inCEL(p.job, "object", translator{})
		if err != nil {
			refused++
			continue
		}
		translated++
		for range 8 {
			doc := fmt.Sprintf(`{"spec": {"patch": %s}}`, g.object(3))
			violations, err := p.Job(json.RawMessage(doc))
			if err != nil {
				t.Fatal(err)
			}
			got := e.violated(t, validations, integers(decoded(t, doc)))
			if (len(got) == 0) != (len(violations) == 0) {
				t.Fatalf("%s\n%s\ntegen: %v\nCEL: %v\n%s", text, doc, violations, got, listed(validations))
			}
			if len(got) == 0 {
				passed++
			} else {
				failed++
			}
		}
	}
	t.Logf("%d policies in CEL, %d refused; %d values passed, %d failed", translated, refused, passed, failed)
	if translated < rounds/8 || passed < rounds/4 || failed < rounds/4 {
		t.Error("the generator makes too few of one sort")
	}
}

func decoded(t *testing.T, doc string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func listed(validations []Validation) string {
	var b strings.Builder
	for _, v := range validations {
		fmt.Fprintf(&b, "%s: %s: %s\n\t%s\n", v.Rule, v.Path, v.Message, v.Expression)
	}
	return b.String()
}
