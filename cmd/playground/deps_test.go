package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestDeps: a page loads what it shows and no more. Of CUE that is the parser, which reads policies.
func TestDeps(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Env = append(list.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "github.com/tegen-dev/tegen/internal/render") {
		t.Fatal("package render is not linked: this test looks at the wrong program")
	}
	for _, path := range deps {
		for _, never := range []string{
			"sigs.k8s.io/kustomize", "github.com/spf13/cobra", "k8s.io/client-go", "k8s.io/kubernetes",
			"cuelang.org/go/cue/cuecontext", "cuelang.org/go/internal/core/adt",
			"k8s.io/apiserver",
			"github.com/google/cel-go", "github.com/google/go-containerregistry",
			"github.com/tegen-dev/tegen/internal/importer", "github.com/tegen-dev/tegen/internal/krm", "testing",
		} {
			if path == never || strings.HasPrefix(path, never+"/") {
				t.Errorf("cmd/playground links %s", path)
			}
		}
	}
}
