package command

import (
	"bytes"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/tegen-dev/tegen"

// within says whether a package is one of the named ones or below one of them.
func within(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root ||
			strings.HasPrefix(path, root+"/")
	})
}

// commandDeps are the packages that are linked into the command.
func commandDeps(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/tegen")
	list.Dir = root
	var msg bytes.Buffer
	list.Stderr = &msg
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, msg.String())
	}
	return strings.Fields(string(out))
}

// imports are the packages that others must not import themselves; indirect imports are allowed.
var imports = []struct {
	of, why string
	never   []string
}{
	{
		"schema", "it takes bytes, and what a job becomes is decided elsewhere",
		[]string{
			"k8s.io/api", "sigs.k8s.io/kustomize", "github.com/spf13/cobra", "os", "net", "log",
			module + "/generators",
		},
	},
	{
		"generators", "they are pure functions of a checked job",
		[]string{
			"cuelang.org/go", "sigs.k8s.io/kustomize", "github.com/spf13/cobra", "os", "io", "time", "math/rand",
			"net", "log", "crypto/rand", "runtime", "sync",
		},
	},
	{
		"internal/manifest", "it turns objects into YAML and knows no jobs",
		[]string{module + "/schema", module + "/generators", "os", "github.com/spf13/cobra"},
	},
	{
		"internal/refs", "it checks objects of any origin",
		[]string{module + "/schema", module + "/generators", "os", "github.com/spf13/cobra"},
	},
	{
		"internal/crds", "it checks objects of any origin, and the command links no more of an API server than it",
		[]string{
			module + "/schema", module + "/generators", "k8s.io/apiserver", "github.com/google/cel-go",
			"github.com/spf13/cobra",
		},
	},
	{
		"internal/plan", "it checks objects and inventories that others read",
		[]string{"os", "net", "sigs.k8s.io/kustomize", "github.com/spf13/cobra", module + "/internal/render"},
	},
	{
		"internal/install", "it takes bytes and returns objects, and the command links no more of kube-scheduler " +
			"than it",
		[]string{
			"os", "k8s.io/api", "k8s.io/client-go", "k8s.io/kubernetes", "github.com/spf13/cobra",
			"sigs.k8s.io/kustomize",
		},
	},
	{
		"internal/oci", "it packs and pushes files, whatever is in them",
		[]string{module + "/schema", module + "/generators", "k8s.io", "os", "github.com/spf13/cobra"},
	},
	{
		"internal/names", "everything may import it because it imports nothing of the project",
		[]string{module},
	},
	{
		"internal/command", "it parses flags, opens files and prints",
		[]string{"k8s.io/api", "cuelang.org/go"},
	},
}

// TestNetwork: of the packages that the command is made of, one can talk to a network: what renders cannot.
func TestNetwork(t *testing.T) {
	var can []string
	for _, path := range commandDeps(t) {
		dir, ours := strings.CutPrefix(path, module+"/")
		if ours && slices.ContainsFunc(importsOf(t, filepath.Join(root, dir)), func(imported string) bool {
			return within(imported, "net", "github.com/google/go-containerregistry/pkg/v1/remote") &&
				!within(imported, "net/url", "net/netip")
		}) {
			can = append(can, dir)
		}
	}
	if diff := cmp.Diff([]string{"internal/oci"}, can); diff != "" {
		t.Errorf("packages that import what talks to a network (-want +got):\n%s", diff)
	}
}

func TestImports(t *testing.T) {
	for _, rule := range imports {
		for _, path := range importsOf(t, filepath.Join(root, rule.of)) {
			if within(path, rule.never...) && path != "net/netip" { // which only reads addresses
				t.Errorf("%s imports %s: %s", rule.of, path, rule.why)
			}
		}
	}
}

// importsOf are the imports of the files in a directory, for whatever system they are, less its tests.
func importsOf(t *testing.T, dir string) (paths []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("there is no package in %s: %v", dir, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			paths = append(paths, strings.Trim(i.Path.Value, `"`))
		}
	}
	return paths
}

// TestWithin: a path that only begins alike is not below a package.
func TestWithin(t *testing.T) {
	for path, want := range map[string]bool{
		"k8s.io/api": true, "k8s.io/api/core/v1": true, "k8s.io/apimachinery": false,
		"k8s.io/apimachinery/pkg/runtime": false, "os": false,
	} {
		if got := within(path, "k8s.io/api"); got != want {
			t.Errorf("within(%q): %t", path, got)
		}
	}
}
