package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lineBudgets are the most lines of product code, by folder at the top; rendezvous and scheduler are modules. Lines are
// those of Go without tests and without what supports tells apart. A budget may only fall; see CONTRIBUTING.md.
var lineBudgets = map[string]int{
	"cmd": 46, "generators": 7350, "internal": 53200, "overlays": 9, "schema": 14300, "tegen.go": 22,
	"rendezvous": 14530, "scheduler": 6588,
}

// supportBudget is the most lines, without tests, of benchmarks, labs, images, releases and examples of all modules.
const supportBudget = 18330

// goldenBudget is the most lines of golden files.
const goldenBudget = 35230

// Most packages, types and files are within these limits.
const (
	filesOfPackage = 40
	methodsOfType  = 40
	linesOfFile    = 500
)

// exceptions are what exceeds the limits above today, each with its figure, which may only fall.
var exceptions = map[string]int{
	"files of generators":                     61,
	"files of internal/importer":              90,
	"lines of schema/job/job.go":              575,
	"methods of internal/importer.draft":      247,
	"methods of internal/krm.kustomization":   48,
	"methods of internal/refs.checker":        45,
	"methods of internal/tree.writer":         41,
	"methods of rendezvous/keys.Keys":         60,
	"methods of rendezvous/proxystore.Engine": 46,
	"methods of schema/job.Spec":              84,
}

// supports says whether a file is part of what builds, measures and tests the products.
func supports(name string) bool {
	return slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(dir string) bool {
		return slices.Contains([]string{"bench", "test", "images", "release", "examples"}, dir)
	})
}

// area is the module that a file is in, or the folder at the top of the main module.
func area(name string) string { return strings.SplitN(name, "/", 2)[0] }

// TestBudgets: the code is no larger than its budgets.
func TestBudgets(t *testing.T) {
	lines, support, golden := map[string]int{}, 0, 0
	figures := map[string]int{} // of packages, types and files
	for _, name := range files(t) {
		text := func() int { return strings.Count(read(t, name), "\n") }
		switch {
		case strings.HasPrefix(name, "golden/"):
			golden += text()
		case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/"):
		case supports(name):
			support += text()
			figures["files of "+path.Dir(name)]++
			figures["lines of "+name] = text()
		default:
			lines[area(name)] += text()
			figures["files of "+path.Dir(name)]++
			figures["lines of "+name] = text()
			for receiver, n := range methods(t, name) {
				figures["methods of "+path.Dir(name)+"."+receiver] += n
			}
		}
	}
	compare := func(what string, got, budget int) {
		if got > budget {
			t.Errorf("%s: %d, and the budget is %d: look for code to delete, or raise the budget in "+
				"test/repo/budgets_test.go with the reason in the commit message", what, got, budget)
		}
		if got < budget-budget/20 { // what was saved is not spent again unnoticed
			t.Errorf("%s: %d, much less than the budget of %d: lower the budget in test/repo", what, got, budget)
		}
	}
	for _, area := range slices.Sorted(maps.Keys(lines)) {
		compare("lines of "+area, lines[area], lineBudgets[area])
	}
	for area := range lineBudgets {
		if lines[area] == 0 {
			t.Errorf("%s has a budget and no code", area)
		}
	}
	compare("lines of benchmarks, labs, images and releases", support, supportBudget)
	compare("lines of golden files", golden, goldenBudget)
	limits := map[string]int{"files": filesOfPackage, "methods": methodsOfType, "lines": linesOfFile}
	for _, what := range slices.Sorted(maps.Keys(figures)) {
		kind, _, _ := strings.Cut(what, " ")
		if budget, excepted := exceptions[what]; excepted {
			compare(what, figures[what], budget)
		} else if figures[what] > limits[kind] {
			t.Errorf("%s: %d, more than %d", what, figures[what], limits[kind])
		}
	}
	for what := range exceptions {
		kind, _, _ := strings.Cut(what, " ")
		if figures[what] <= limits[kind] {
			t.Errorf("%s: %d needs no exception: remove it from test/repo", what, figures[what])
		}
	}
}

// methods counts the methods that a file declares, by the name of their type.
func methods(t *testing.T, name string) map[string]int {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil {
			continue
		}
		of := f.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if generic, ok := of.(*ast.IndexExpr); ok {
			of = generic.X
		}
		if id, ok := of.(*ast.Ident); ok {
			found[id.Name]++
		}
	}
	return found
}
