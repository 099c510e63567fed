package policy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
)

// TestCUE compares verdicts with those of CUE's evaluator, for random policies and random values. CUE evaluates the
// value unified with the policy.
func TestCUE(t *testing.T) {
	rounds, seed := roundsOf(t)
	g := &generator{rand.New(rand.NewPCG(seed, 0))}
	accepted, refused, passed, failed := 0, 0, 0, 0
	for range rounds {
		ctx := cuecontext.New()
		text := "import (\"list\", \"strings\")\n_use: [list.MaxItems(9), strings.MaxRunes(99)]\njob: spec: patch: " +
			g.mapping(3)
		p, err := Load([]Source{{Name: "p.cue", Text: []byte(strings.Replace(text,
			"_use: [list.MaxItems(9), strings.MaxRunes(99)]\n", "\n", 1))}}, types)
		compiled := ctx.CompileString(text)
		bottom := compiled.LookupPath(cue.ParsePath("job")).Validate(cue.Concrete(false), cue.Optional(true))
		if err != nil {
			refused++
			continue
		}
		accepted++
		if bottom != nil {
			t.Errorf("%s\nis accepted, and CUE says: %v", text, bottom)
			continue
		}
		for range 8 {
			doc := fmt.Sprintf(`{"metadata": {"name": "a"},
				"spec": {"image": "i", "workers": {"replicas": 1}, "patch": %s}}`, g.object(3))
			violations, err := p.Job(json.RawMessage(doc))
			if err != nil {
				t.Fatal(err)
			}
			want := compiled.LookupPath(cue.ParsePath("job")).Unify(ctx.CompileString(doc)).Validate(cue.Concrete(true))
			if want != nil && strings.Contains(want.Error(), "incomplete value") {
				continue // CUE does not choose between alternatives of mappings
			}
			if (want == nil) != (len(violations) == 0) {
				t.Errorf("%s\n%s\ngot %v\nCUE says: %v", text, doc, violations, want)
			}
			if want == nil {
				passed++
			} else {
				failed++
			}
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d policies accepted, %d refused; %d values passed, %d failed", accepted, refused, passed, failed)
	if accepted < rounds/4 || passed < rounds/4 || failed < rounds/4 {
		t.Error("the generator makes too few of one sort")
	}
}

// roundsOf is how many random policies to try, and the seed of the random numbers.
func roundsOf(t *testing.T) (rounds int, seed uint64) {
	t.Helper()
	rounds, seed = 400, 1
	if text := os.Getenv("TEGEN_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return rounds, seed
}

// generator makes policies and values out of few names and scalars, so that they meet.
type generator struct{ *rand.Rand }

func (g *generator) pick(options ...string) string { return options[g.IntN(len(options))] }

func (g *generator) name() string { return g.pick("a", "b", "c") }

func (g *generator) scalar() string {
	return g.pick(`"x"`, `"xy"`, `"z"`, `1`, `2`, `2.5`, `true`, `false`)
}

// constraint is one on a value that is set.
func (g *generator) constraint(depth int) string {
	switch n := g.IntN(12); {
	case n < 3:
		return g.atom()
	case n < 4:
		return g.atom() + " & " + g.atom()
	case n < 6:
		return "(" + g.atom() + " | " + g.atom() + ")"
	case n < 7 && depth > 0:
		return "(" + g.mapping(depth-1) + " | " + g.constraint(depth-1) + ")"
	case n < 8 && depth > 0:
		return "[..." + g.constraint(depth-1) + "]" + g.pick("", " & list.MaxItems(1)", " & list.MinItems(1)")
	case depth > 0:
		return g.mapping(depth - 1)
	}
	return g.atom()
}

func (g *generator) atom() string {
	switch g.IntN(8) {
	case 0:
		return g.scalar()
	case 1:
		return g.pick("<", "<=", ">", ">=") + g.pick("1", "2", "2.5")
	case 2:
		return "!=" + g.scalar()
	case 3:
		return g.pick("=~", "!~") + g.pick(`"^x"`, `"y$"`)
	case 4:
		return g.pick("string", "int", "number", "bool", "_")
	case 5:
		return g.pick(`strings.HasPrefix("x")`, `strings.HasSuffix("y")`, `strings.Contains("x")`,
			`strings.MaxRunes(1)`, `strings.MinRunes(2)`)
	}
	return g.scalar() + " | " + g.scalar()
}

// mapping is a mapping of constraints.
func (g *generator) mapping(depth int) string {
	var fields []string
	for range g.IntN(4) {
		switch n := g.IntN(10); {
		case n < 4:
			fields = append(fields, g.name()+g.pick("?", "!")+": "+g.constraint(depth))
		case n < 5:
			fields = append(fields, g.name()+"?: _|_")
		case n < 7 && depth > 0:
			fields = append(fields, g.name()+": "+g.mapping(depth-1))
		case n < 8 && depth > 0:
			fields = append(fields, g.name()+": [..."+g.constraint(depth-1)+"]")
		case n < 9:
			fields = append(fields, "["+g.pick("string", `=~"^[ab]"`, `"a"`)+"]: "+g.constraint(depth))
		}
	}
	text := "{" + strings.Join(fields, ", ") + "}"
	if g.IntN(6) == 0 {
		return "close(" + text + ")"
	}
	return text
}

// object is a value that is a mapping.
func (g *generator) object(depth int) string {
	var fields []string
	seen := map[string]bool{}
	for range g.IntN(4) {
		if name := g.name(); !seen[name] {
			seen[name] = true
			fields = append(fields, fmt.Sprintf("%q: %s", name, g.value(depth)))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (g *generator) value(depth int) string {
	switch n := g.IntN(6); {
	case n < 3 || depth == 0:
		return g.scalar()
	case n < 4:
		var list []string
		for range g.IntN(3) {
			list = append(list, g.value(depth-1))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	return g.object(depth - 1)
}
