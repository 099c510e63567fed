package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const proofPage = "docs/proof.md"

// byHand replaces the test of a row that was tried manually.
const byHand = "by hand"

// proofRow is a row of a table of docs/proof.md: its first cell, its links to fixtures, and its columns "test" and
// "last run".
type proofRow struct {
	what     string
	fixtures []string // that it links to
	tests    []string
	lastRun  string
}

// proofRows returns the rows of a page's tables. Tables with a column "measured" contain the times of scenarios; times
// is their first column.
func proofRows(page string) (rows []proofRow, times []string) {
	var head []string
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			head = nil
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case head == nil:
			head = cells
		case strings.HasPrefix(cells[0], "---"):
		case slices.Contains(head, "measured"):
			times = append(times, cells[0])
		default:
			rows = append(rows, newProofRow(head, cells))
		}
	}
	return rows, times
}

func newProofRow(head, cells []string) proofRow {
	cell := func(name string) string {
		if i := slices.Index(head, name); i >= 0 && i < len(cells) {
			return cells[i]
		}
		return ""
	}
	row := proofRow{what: cells[0], lastRun: cell("last run")}
	for _, fixture := range ofFixture.FindAllStringSubmatch(strings.Join(cells, "|"), -1) {
		row.fixtures = append(row.fixtures, fixture[1])
	}
	for _, name := range inCode.FindAllStringSubmatch(cell("test"), -1) {
		row.tests = append(row.tests, name[1])
	}
	if row.tests == nil {
		row.tests = []string{cell("test")}
	}
	return row
}

var (
	inCode         = regexp.MustCompile("`([^`]+)`")
	ofFixture      = regexp.MustCompile(`\]\(\.\./(fixtures/[^)]+)\)`)
	lastRun        = regexp.MustCompile(`^([0-9a-f]{8,40}), \d{4}-\d\d-\d\d$`)
	leadingNumbers = regexp.MustCompile(`^\d+(, \d+)*`)
)

// TestProof: each row of docs/proof.md has a test that exists and the commit of its last run, whose fixtures are
// unchanged since, and each scenario on real nodes has a row. CONTRIBUTING.md defines the commit.
func TestProof(t *testing.T) {
	rows, times := proofRows(read(t, proofPage))
	scenarios := calling(t, "test/e2e/node", "begin")
	if len(scenarios) < 10 {
		t.Fatalf("test/e2e/node has the scenarios %q, want ten or more", scenarios)
	}
	known := slices.Concat(scenarios, operatorTests(t), []string{byHand})
	named := map[string]bool{}
	numbers := map[string]bool{}
	for _, r := range rows {
		for _, name := range r.tests {
			if !slices.Contains(known, name) {
				t.Errorf("%s, row %q: there is no test %q; use a scenario of test/e2e/node, or "+
					"TestOperators/NAME of test/e2e/operators", proofPage, r.what, name)
			}
			named[name] = true
		}
		for _, number := range strings.Split(leadingNumbers.FindString(r.what), ", ") {
			numbers[number] = true
		}
		match := lastRun.FindStringSubmatch(r.lastRun)
		if match == nil {
			t.Errorf("%s, row %q: the last run is %q; use a commit and a date, such as 9cc61ea5, 2026-11-27",
				proofPage, r.what, r.lastRun)
			continue
		}
		if problem := outdated(t, match[1], r.fixtures); problem != "" {
			t.Errorf("%s, row %q: %s; run the test again and record its commit", proofPage, r.what,
				problem)
		}
	}
	for _, name := range scenarios {
		if !named[name] {
			t.Errorf("%s has no row for %s; add one", proofPage, name)
		}
	}
	for _, scenario := range times {
		if number, _, _ := strings.Cut(leadingNumbers.FindString(scenario), ","); !numbers[number] {
			t.Errorf("%s has times of %q and no row with its number; add one", proofPage, scenario)
		}
	}
}

// TestProofRows: cells are found by the name of their column, and missing cells are empty.
func TestProofRows(t *testing.T) {
	rows, times := proofRows("| scenario | manifests | test | last run |\n|---|---|---|---|\n" +
		"| 1 a | [b](../fixtures/valid/b.yaml) | `TestA`, `TestB` | 12345678, 2026-01-02 |\n| 2 b |\n\n" +
		"| scenario | measured |\n|---|---|\n| 1 a | join |\n\n| x | test |\n|---|---|\n| y | by hand |\n")
	want := []proofRow{
		{
			what: "1 a", fixtures: []string{"fixtures/valid/b.yaml"}, tests: []string{"TestA", "TestB"},
			lastRun: "12345678, 2026-01-02",
		},
		{what: "2 b", tests: []string{""}},
		{what: "y", tests: []string{byHand}},
	}
	if !reflect.DeepEqual(want, rows) {
		t.Errorf("rows: %q, want %q", rows, want)
	}
	if want := []string{"1 a"}; !slices.Equal(want, times) {
		t.Errorf("times: %q, want %q", times, want)
	}
}

// calling returns the tests of a package that call a function, directly or through other functions of the package.
func calling(t *testing.T, dir, function string) (tests []string) {
	t.Helper()
	calls := map[string][]string{} // by caller
	for _, file := range parsed(t, dir) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if id, ok := call.Fun.(*ast.Ident); ok {
						calls[f.Name.Name] = append(calls[f.Name.Name], id.Name)
					}
				}
				return true
			})
		}
	}
	var reaches func(name string, seen map[string]bool) bool
	reaches = func(name string, seen map[string]bool) bool {
		if name == function {
			return true
		}
		if seen[name] {
			return false
		}
		seen[name] = true
		return slices.ContainsFunc(calls[name], func(called string) bool { return reaches(called, seen) })
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		if strings.HasPrefix(name, "Test") && reaches(name, map[string]bool{}) {
			tests = append(tests, name)
		}
	}
	return tests
}

// operatorTests returns the names of the subtests of TestOperators, one for each value of the type program.
func operatorTests(t *testing.T) (tests []string) {
	t.Helper()
	for _, file := range parsed(t, "test/e2e/operators") {
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if of, ok := literal.Type.(*ast.Ident); !ok || of.Name != "program" {
				return true
			}
			for _, element := range literal.Elts {
				pair, ok := element.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				key, isName := pair.Key.(*ast.Ident)
				value, isText := pair.Value.(*ast.BasicLit)
				if isName && isText && key.Name == "name" {
					name := strings.ReplaceAll(strings.Trim(value.Value, `"`), " ", "_")
					tests = append(tests, "TestOperators/"+name)
				}
			}
			return true
		})
	}
	return tests
}

// parsed returns the syntax trees of the Go files of a folder.
func parsed(t *testing.T, dir string) (all []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file)
	}
	return all
}

// outdated returns why a run on a commit is no evidence for this tree, or an empty string: the commit is not an
// ancestor of HEAD, or a fixture has changed since. It cannot tell in a shallow clone.
func outdated(t *testing.T, commit string, fixtures []string) string {
	t.Helper()
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	shallow, err := git("rev-parse", "--is-shallow-repository")
	if err != nil || shallow == "true" {
		t.Logf("not checked whether %s is an ancestor of HEAD: this is a shallow clone, or not a clone", commit)
		return ""
	}
	if _, err := git("merge-base", "--is-ancestor", commit, "HEAD"); err != nil {
		return "the commit " + commit + " is not an ancestor of HEAD"
	}
	for _, fixture := range fixtures {
		if out, err := git("diff", "--stat", commit, "--", fixture); err != nil || out != "" {
			return fixture + " has changed since " + commit
		}
	}
	return ""
}
