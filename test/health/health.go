// Package health runs rules of health over objects for tests, as Argo CD and Flux run them: Lua by gopher-lua, CEL by
// cel-go.
package health

import (
	"slices"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	lua "github.com/yuin/gopher-lua"
)

// all are the words that Argo CD has (argo-cd v3.2.11, gitops-engine pkg/health).
var all = []string{"Healthy", "Progressing", "Suspended", "Degraded", "Missing", "Unknown"}

// Argo is what Argo CD makes of an object by a rule, which it runs with these libraries and no other, for a second at
// most (argo-cd v3.2.11, util/lua/lua.go). That of os, a safe one of its own, is not needed here.
func Argo(t testing.TB, text string, object map[string]any) (status, message string) {
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
	if !slices.Contains(all, status) {
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

// Flux is what Flux makes of an object by two expressions: Failed, Current or InProgress, or error, after which it
// waits. The object's top-level fields are the variables, nothing is type-checked, and what failed comes before what is
// current (fluxcd/pkg runtime, cel/expression.go and cel/status_evaluator.go).
func Flux(t testing.TB, failed, current string, object map[string]any) string {
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
