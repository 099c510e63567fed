package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// modules are the folders of the repository's modules.
var modules = []string{"", "rendezvous", "scheduler"}

// examples are modules that require tegen, as those of other people do. They have no digests, see test/modules.
var examples = []string{"examples/alerts"}

var requirement = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)

// TestModules: the modules need neither each other nor a replacement, so that each can be installed by itself. What two
// of them require has one version, so that it is compiled once.
func TestModules(t *testing.T) {
	versions := map[string]string{}
	for _, name := range append(slices.Clone(modules), examples...) {
		mod := read(t, path.Join(name, "go.mod"))
		if first, _, _ := strings.Cut(mod, "\n"); first != "module "+path.Join(module, name) {
			t.Errorf("%s/go.mod begins with %q", name, first)
		}
		requires := strings.Contains(mod, "\t"+module) && !slices.Contains(examples, name)
		if strings.Contains(mod, "\nreplace ") || requires {
			t.Errorf("%s/go.mod has a replacement, or requires another module of this repository", name)
		}
		for _, r := range requirement.FindAllStringSubmatch(mod, -1) {
			if other := versions[r[1]]; other != "" && other != r[2] {
				t.Errorf("%s/go.mod requires %s %s, and another module %s: use one version", name, r[1], r[2], other)
			}
			versions[r[1]] = r[2]
		}
	}
	if len(versions) < 100 {
		t.Errorf("%d requirements are read", len(versions))
	}
	if slices.Contains(files(t), "go.work") {
		t.Error("go.work is committed: it would hide what the modules lack")
	}
}

// TestShared: what the modules have in common by copy is the same in all of them.
func TestShared(t *testing.T) {
	if read(t, "scheduler/config/default.yaml") != read(t, "internal/install/scheduler.yaml") {
		t.Error("internal/install/scheduler.yaml is not scheduler/config/default.yaml: copy it")
	}
	if read(t, "rendezvous/test/golden/golden.go") != read(t, "scheduler/internal/golden/golden.go") {
		t.Error("golden.go differs between the modules: copy it")
	}
	for _, name := range []string{"command/command.go", "markdown/machine.go", "markdown/markdown.go"} {
		for _, module := range modules[1:] {
			if read(t, "bench/internal/"+name) != read(t, path.Join(module, "bench/internal", name)) {
				t.Errorf("bench/internal/%s differs in %s: copy it", name, module)
			}
		}
	}
	ours, theirs := values(t, "internal/names/names.go"), values(t, "rendezvous/internal/names/names.go")
	if len(theirs) < 2 {
		t.Errorf("%d names are read of the rendezvous", len(theirs))
	}
	for name, value := range theirs {
		if ours[name] != value {
			t.Errorf("%s is %s in rendezvous/internal/names, and %q in internal/names", name, value, ours[name])
		}
	}
}

// values are the strings of the constants and variables that a file declares, by their names.
func values(t *testing.T, name string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, d := range file.Decls {
		declaration, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range declaration.Specs {
			spec, ok := s.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				continue
			}
			ast.Inspect(spec.Values[0], func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
					found[spec.Names[0].Name] += text.Value
				}
				_, function := n.(*ast.FuncLit)
				return !function
			})
		}
	}
	return found
}
