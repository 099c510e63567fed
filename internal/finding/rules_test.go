package finding_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/golden"
)

// TestGoldenRules holds the table of docs/findings.md to the rules.
func TestGoldenRules(t *testing.T) {
	const docs = "../../docs"
	text, err := os.ReadFile(docs + "/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	prose, _, found := strings.Cut(string(text), "\n## Rules\n")
	if !found {
		t.Fatal("docs/findings.md has no chapter Rules")
	}
	var table strings.Builder
	table.WriteString(prose + "\n## Rules\n\n| rule | what it means | what to do |\n|---|---|---|\n")
	for _, r := range finding.Rules {
		id := "`" + r.ID + "`"
		if family, is := strings.CutSuffix(r.ID, "*"); is {
			id = "`" + family + "<field>`"
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", id, r.Meaning, r.Remedy)
	}
	golden.Open(t, docs).Compare(t, "findings.md", []byte(table.String()))
}

// TestRules: ids are unique and of one form, and each says what it means and what to do, in sentences.
func TestRules(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]+/([a-z]+(-[a-z]+)*|\*)$`)
	seen := map[string]bool{}
	for _, r := range finding.Rules {
		if !form.MatchString(r.ID) || seen[r.ID] {
			t.Errorf("%s is no id, or there twice", r.ID)
		}
		seen[r.ID] = true
		for _, text := range []string{r.Meaning, r.Remedy} {
			if !strings.HasSuffix(text, ".") || strings.ToUpper(text[:1]) != text[:1] || strings.Contains(text, "|") {
				t.Errorf("%s: %q is no sentence", r.ID, text)
			}
		}
	}
	if r := finding.RuleOf("note/gang.scheduler"); r.ID != "note/gang.scheduler" || r.Remedy == "" {
		t.Errorf("a note's rule is %+v", r)
	}
	if r := finding.RuleOf("nosuch/rule"); r.Meaning != "" || r.ID != "nosuch/rule" {
		t.Errorf("an unknown rule is %+v", r)
	}
}

// TestSchemaRules: every word that the schema and its readers have for a mistake is a rule, and every rule of jobs is a
// word that they have.
func TestSchemaRules(t *testing.T) {
	words := wordsOf(t, "../../schema", "../../schema/*", "../structural", "../yamldoc")
	for _, word := range slices.Sorted(maps.Keys(words)) {
		if finding.RuleOf("job/"+word).Meaning == "" {
			t.Errorf("%s: %q has no row job/%s in rules.go", words[word], word, word)
		}
	}
	for _, r := range finding.Rules {
		if word, is := strings.CutPrefix(r.ID, "job/"); is && words[word] == "" {
			t.Errorf("nothing says %q: %s is no rule", word, r.ID)
		}
	}
}

// wordsOf are the literals that functions get for a parameter called rule, that variables of that name are set to, and
// that fields Rule have; and the formats of the definitions. The value is the place.
func wordsOf(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	words, set := map[string]string{}, token.NewFileSet()
	var files []*ast.File
	for _, dir := range dirs {
		names, err := filepath.Glob(dir + "/*.*")
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, name := range names {
			if ext := filepath.Ext(name); ext != ".cue" && ext != ".go" {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case filepath.Ext(name) == ".cue":
				for _, m := range regexp.MustCompile(`@(?:format|refuse|few|many)\((\w+)`).FindAllSubmatch(text, -1) {
					words[string(m[1])] = name
				}
			case filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
				file, err := parser.ParseFile(set, name, text, 0)
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, file)
			}
		}
	}
	add := func(e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return
		}
		if word, err := strconv.Unquote(lit.Value); err == nil && regexp.MustCompile(`^[a-z-]+$`).MatchString(word) {
			words[word] = set.Position(lit.Pos()).String()
		}
	}
	index := takesRule(set, files)
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.CallExpr:
				callee := nameOf(x.Fun) + " of " + dirOf(set, file)
				if _, local := x.Fun.(*ast.Ident); local {
					callee = localName(set, file, x.Fun)
				}
				if index[callee] == nil { // another package's
					callee = nameOf(x.Fun)
				}
				for _, i := range index[callee] {
					if i < len(x.Args) {
						add(x.Args[i])
					}
				}
			case *ast.KeyValueExpr:
				if nameOf(x.Key) == "Rule" {
					add(x.Value)
				}
			case *ast.AssignStmt:
				for i := range min(len(x.Lhs), len(x.Rhs)) {
					if nameOf(x.Lhs[i]) == "rule" {
						add(x.Rhs[i])
					}
				}
			}
			return true
		})
	}
	return words
}

// takesRule are the methods, and the functions in a function, with a parameter called rule, and its place.
func takesRule(set *token.FileSet, files []*ast.File) map[string][]int {
	index := map[string][]int{}
	enter := func(name string, of *ast.FuncType) {
		n := 0
		for _, field := range of.Params.List {
			for _, param := range field.Names {
				if param.Name == "rule" && !slices.Contains(index[name], n) {
					index[name] = append(index[name], n)
				}
				n++
			}
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.FuncDecl:
				enter(x.Name.Name, x.Type)
				enter(x.Name.Name+" of "+dirOf(set, file), x.Type)
			case *ast.AssignStmt:
				for i, value := range x.Rhs {
					if lit, ok := value.(*ast.FuncLit); ok && i < len(x.Lhs) {
						enter(localName(set, file, x.Lhs[i]), lit.Type)
					}
				}
			}
			return true
		})
	}
	return index
}

func dirOf(set *token.FileSet, file *ast.File) string {
	return filepath.Dir(set.Position(file.Pos()).Filename)
}

// localName is that of a function in a function, which another file may have for something else.
func localName(set *token.FileSet, file *ast.File, name ast.Expr) string {
	return nameOf(name) + " in " + set.Position(file.Pos()).Filename
}

func nameOf(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
