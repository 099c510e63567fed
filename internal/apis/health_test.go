package apis

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// state is an object as a controller leaves it, from testdata/health, with what reconcilers should make of it in its
// annotations.
type state struct {
	*unstructured.Unstructured
	argo, message, flux string
}

func states(t *testing.T) map[schema.GroupKind][]state {
	t.Helper()
	files, err := filepath.Glob("testdata/health/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no states: %v", err)
	}
	all := map[schema.GroupKind][]state{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(text, []byte("# ")) {
			t.Errorf("%s does not say where its states are from", file)
		}
		for _, doc := range bytes.Split(text, []byte("\n---\n")) {
			u := &unstructured.Unstructured{}
			asJSON, err := yaml.YAMLToJSON(doc)
			if err == nil {
				err = u.UnmarshalJSON(asJSON) // whole numbers stay whole, as Argo CD and Flux have them
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			a := u.GetAnnotations()
			s := state{u, a["argocd"], a["message"], a["flux"]}
			all[u.GroupVersionKind().GroupKind()] = append(all[u.GroupVersionKind().GroupKind()], s)
		}
	}
	return all
}

// TestRules runs Argo CD's rules as Argo CD does, over every state.
func TestRules(t *testing.T) {
	all := states(t)
	for _, rule := range Rules(Suspended) {
		seen := map[string]bool{}
		for _, s := range all[rule.Kind] {
			t.Run(rule.Kind.String()+"/"+s.GetName(), func(t *testing.T) {
				status, message := runLua(t, rule.Lua, s.Object)
				if status != s.argo {
					t.Errorf("Argo CD shows %s (%s), want %s", status, message, s.argo)
				}
				if s.message != "" && message != s.message {
					t.Errorf("the message is %q, want %q", message, s.message)
				}
				seen[status] = true
			})
		}
		if len(seen) < 2 && rule.Kind != (schema.GroupKind{Group: VolcanoPodGroupKind.Group, Kind: "PodGroup"}) {
			t.Errorf("%s: testdata/health shows it in no two states of health: add what its controller writes",
				rule.Kind)
		}
	}
}

// TestSuspendedHealthy: the rules of those whose waves must get past a suspended job.
func TestSuspendedHealthy(t *testing.T) {
	all := states(t)
	for _, rule := range Rules(Healthy) {
		for _, s := range all[rule.Kind] {
			want := s.argo
			if want == Suspended {
				want = Healthy
			}
			if status, _ := runLua(t, rule.Lua, s.Object); status != want {
				t.Errorf("%s %s: Argo CD shows %s, want %s", rule.Kind, s.GetName(), status, want)
			}
		}
	}
}

// TestExpressions evaluates Flux's rules as Flux does, over every state.
func TestExpressions(t *testing.T) {
	all := states(t)
	for _, k := range Kinds {
		h := k.Health
		if h.None != "" || h.Passive {
			continue
		}
		if len(all[k.GroupKind()]) == 0 {
			t.Errorf("%s: testdata/health has no state of it", k.GroupKind())
		}
		current, failed := h.CEL()
		for _, s := range all[k.GroupKind()] {
			t.Run(k.GroupKind().String()+"/"+s.GetName(), func(t *testing.T) {
				if got := evaluate(t, failed, current, s.Object); got != s.flux {
					t.Errorf("Flux says %s, want %s", got, s.flux)
				}
			})
		}
	}
}

// TestEveryKindHasHealth names kinds that nobody asks how they are.
func TestEveryKindHasHealth(t *testing.T) {
	rules := map[schema.GroupKind]bool{}
	for _, r := range Rules(Suspended) {
		rules[r.Kind] = true
		if !strings.HasPrefix(r.Key, "resource.customizations.health.") || strings.ContainsAny(r.Key, "/ ") {
			t.Errorf("argocd-cm cannot have the key %q", r.Key)
		}
	}
	for _, k := range Kinds {
		h := HealthOf(k.GroupKind())
		if h == nil {
			t.Errorf("%s: give it a Health in the file of its kind, or a reason why it has none", k.GroupKind())
			continue
		}
		if rules[k.GroupKind()] == (h.None != "") {
			t.Errorf("%s: a rule of Argo CD: %t, and the reason against one is %q", k.GroupKind(),
				rules[k.GroupKind()], h.None)
		}
	}
	if HealthOf(schema.GroupKind{Kind: "Service"}) != nil {
		t.Error("a Service has a health")
	}
}

// runLua is how Argo CD runs a rule (argo-cd v3.2.11, util/lua/lua.go): with these libraries and no other, for a second
// at most. That of os, a safe one of its own, is not needed here.
func runLua(t *testing.T, text string, object map[string]any) (status, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	l.SetContext(t.Context())
	l.SetGlobal("obj", luaValue(l, object))
	if err := l.DoString(text); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	health, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the rule returns %v:\n%s", l.Get(-1), text)
	}
	status = lua.LVAsString(health.RawGetString("status"))
	if !slices.Contains([]string{Healthy, Progressing, Suspended, Degraded, "Missing", "Unknown"}, status) {
		t.Fatalf("Argo CD has no health called %q:\n%s", status, text)
	}
	return status, lua.LVAsString(health.RawGetString("message"))
}

// luaValue makes a value of Lua as Argo CD does.
func luaValue(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case int64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		list := l.CreateTable(len(v), 0)
		for _, item := range v {
			list.Append(luaValue(l, item))
		}
		return list
	case map[string]any:
		table := l.CreateTable(0, len(v))
		for key, item := range v {
			table.RawSetString(key, luaValue(l, item))
		}
		return table
	}
	return lua.LNil
}

// evaluate is how Flux evaluates expressions (fluxcd/pkg runtime, cel/expression.go and cel/status_evaluator.go): the
// object's top-level fields are the variables, nothing is type-checked, and what failed comes before what is current.
func evaluate(t *testing.T, failed, current string, object map[string]any) string {
	t.Helper()
	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(),
		ext.Sets(), ext.Encoders())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct{ text, status string }{{failed, "Failed"}, {current, "Current"}} {
		parsed, issues := env.Parse(e.text)
		if issues != nil {
			t.Fatalf("%s: %v", e.text, issues)
		}
		program, err := env.Program(parsed, cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			t.Fatal(err)
		}
		value, _, err := program.ContextEval(t.Context(), object)
		if err != nil {
			return "error"
		}
		if value == types.True {
			return e.status
		}
	}
	return "InProgress"
}
