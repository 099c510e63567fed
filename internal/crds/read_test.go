package crds_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/crds"
)

const minimal = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: walks.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Walk, plural: walks, singular: walk, listKind: WalkList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

func TestReadRefuses(t *testing.T) {
	for _, tc := range []struct{ name, old, new, want string }{
		{"broken YAML", "spec:\n", "spec: [\n", "walks.yaml:"},
		{
			"an API version of its own", "k8s.io/v1\n", "k8s.io/v2\n",
			"walks.yaml: CustomResourceDefinition walks.example.com: apiVersion: apiextensions.k8s.io has the " +
				"versions v1 and v1beta1, not v2",
		},
		{
			"a wrong type", "served: true", "served: often",
			"walks.yaml: CustomResourceDefinition walks.example.com: json: cannot unmarshal " +
				"string into Go struct field",
		},
		{"no kind", "kind: Walk, ", "", "spec: group, names.kind and versions say what is " +
			"defined, and one of them is missing"},
		{
			"no schema", "    schema: {openAPIV3Schema: {type: object}}\n", "",
			"spec.versions[0]: schema.openAPIV3Schema: is missing; an API server takes no definition without one",
		},
		{
			"a schema that is not structural", "{type: object}", "{type: object, properties: {spec: {}}}",
			"spec.versions[0]: schema.openAPIV3Schema.properties[spec].type: Required value",
		},
		{
			"a keyword that no server takes", "{type: object}", `{type: object, $ref: "#/definitions/a"}`,
			`spec.versions[0]: schema.openAPIV3Schema: OpenAPIV3Schema '$ref' is not supported`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := crds.Read("walks.yaml", []byte(mutate(t, minimal, tc.old, tc.new)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %v", err)
			}
		})
	}
}

func TestReadDir(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	refuses := func(dir, want string) {
		t.Helper()
		if _, err := crds.ReadDir(dir); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	nothing := "reading " + dir + ": no CustomResourceDefinition in its YAML files: name the directory that holds them"
	absent := filepath.Join(dir, "absent")
	refuses(absent, "reading "+absent+": no such file or directory")
	refuses(dir, nothing)
	write("README.md", "apiVersion: {")
	write("kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
	write("below/walks.yaml", minimal)
	refuses(dir, nothing)
	file := filepath.Join(dir, "README.md")
	refuses(file, "reading "+file+": not a directory")

	// As kubectl get prints them, and as a release bundles them.
	write("list.yml", "apiVersion: v1\nkind: List\nitems:\n- "+strings.ReplaceAll(minimal, "\n", "\n  ")+"\n")
	write("bundle.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n"+
		strings.ReplaceAll(minimal, "Walk", "Run")+"---\n"+strings.ReplaceAll(minimal, "Walk", "Swim"))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600); err != nil {
		t.Log("no pipes here")
	}
	all, err := crds.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range all {
		got = append(got, filepath.Base(d.File)+" "+d.Kind.String())
	}
	want := []string{"bundle.yaml Run.example.com", "bundle.yaml Swim.example.com", "list.yml Walk.example.com"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
