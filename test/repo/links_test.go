package repo

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// neverLinked are modules that would make every start of the command slower, or let it talk to a cluster.
var neverLinked = []string{
	"github.com/google/cel-go", "github.com/prometheus", "github.com/rogpeppe/go-internal/testscript",
	"github.com/stretchr/testify", "go.etcd.io", "go.opentelemetry.io", "google.golang.org/grpc", "k8s.io/apiserver",
	"k8s.io/client-go", "k8s.io/dynamic-resource-allocation", "k8s.io/kubectl", "k8s.io/kubernetes",
	"sigs.k8s.io/controller-runtime", "testing",
}

// mostLinked is how many packages cmd/tegen is made of. Lower it with each package that goes.
const mostLinked = 677

// TestLinked: what the command links decides how fast it starts, how large it is, and how long it compiles.
func TestLinked(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/tegen")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "sigs.k8s.io/kustomize/api/krusty") {
		t.Fatal("kustomize is not linked: this test lists the wrong program")
	}
	for _, path := range deps {
		if i := slices.IndexFunc(neverLinked, func(never string) bool {
			return path == never || strings.HasPrefix(path, never+"/")
		}); i >= 0 {
			t.Errorf("cmd/tegen links %s: find its importer with go list -deps -f '{{.ImportPath}} {{.Imports}}'", path)
		}
	}
	if len(deps) > mostLinked {
		t.Errorf("cmd/tegen links %d packages, more than %d", len(deps), mostLinked)
	}
}
