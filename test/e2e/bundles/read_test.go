package bundles

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/test/cases"
	"github.com/tegen-dev/tegen/test/e2e/objects"
)

// bundle is a case as it is rendered for an overlay.
type bundle struct {
	file     string // minimal/base.yaml
	testCase string // minimal
	overlay  string // base
	objects  []*object
}

func (b *bundle) name() string { return b.testCase + "/" + b.overlay }

// standard is the strictest Pod Security Standard that the pods are expected to meet.
func (b *bundle) standard() string {
	if row, ok := unrestricted[b.testCase]; ok {
		return row.standard
	}
	return restricted
}

// namespaces are those that hold the bundle's objects.
func (b *bundle) namespaces() []string {
	var names []string
	for _, o := range b.objects {
		if ns := o.GetNamespace(); ns != "" && !slices.Contains(names, ns) {
			names = append(names, ns)
		}
	}
	return names
}

// brings says whether the bundle has the Namespace itself.
func (b *bundle) brings(namespace string) bool {
	return slices.ContainsFunc(b.objects, func(o *object) bool { return o.IsNamespace() && o.GetName() == namespace })
}

// accounts are the ServiceAccounts that the bundle expects in a namespace.
func (b *bundle) accounts(namespace string) []string {
	var names []string
	for _, o := range b.objects {
		if o.GetNamespace() == namespace {
			names = append(names, o.Expects("ServiceAccount")...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// object is one document of a bundle.
type object = objects.Object

// readBundles renders every case to a file below dir, in the order of their names.
func readBundles(dir string) ([]*bundle, error) {
	files, err := cases.Write(root, dir)
	if err != nil {
		return nil, err
	}
	var all []*bundle
	for _, file := range files {
		b := &bundle{
			file:     strings.TrimPrefix(file, dir+"/"),
			testCase: filepath.Base(filepath.Dir(file)),
			overlay:  strings.TrimSuffix(filepath.Base(file), ".yaml"),
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if b.objects, err = objects.Read(b.file, text); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// template is what pods are made of, as it stands in an object.
type template struct {
	of   *object
	path string // spec.template
	pod  map[string]any
}

func (p template) String() string { return p.of.String() + ": " + p.path }

// templates finds the templates of pods in an object of any kind: what has a
// spec with a list of containers. It asks no type what to expect, so that no
// kind and no list of roles is overlooked.
func templates(o *object) []template {
	var all []template
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			if spec, ok := v["spec"].(map[string]any); ok {
				if containers, ok := spec["containers"].([]any); ok && len(containers) > 0 {
					all = append(all, template{o, strings.TrimPrefix(path, "."), v})
					return
				}
			}
			for key, inner := range v {
				walk(path+"."+key, inner)
			}
		case []any:
			for i, inner := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), inner)
			}
		}
	}
	walk("", o.Object)
	slices.SortFunc(all, func(a, b template) int { return strings.Compare(a.path, b.path) })
	return all
}

func TestNamespaces(t *testing.T) {
	all, err := objects.Read("x.yaml", []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\nkind: "+
		"ConfigMap\nmetadata: {name: b, namespace: a}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if b := (&bundle{objects: all}); !b.brings("a") || b.brings("b") || !slices.Equal(b.namespaces(), []string{"a"}) {
		t.Errorf("got %v, which has a in %v", b.objects, b.namespaces())
	}
}

// TestTemplates: a template is found wherever a kind has it.
func TestTemplates(t *testing.T) {
	const pod = "{spec: {containers: [{name: c}]}}"
	for _, row := range []struct{ kind, spec, want string }{
		{"Pod", "spec: {containers: [{name: c}], initContainers: [{name: i}]}", ""},
		{"Job", "spec: {template: " + pod + "}", "spec.template"},
		{"JobSet", "spec: {replicatedJobs: [{template: {spec: {template: " + pod +
			"}}}, {template: {spec: {template: " + pod + "}}}]}", "spec.replicatedJobs[0].template.spec.template " +
			"spec.replicatedJobs[1].template.spec.template"},
		{
			"MPIJob", "spec: {mpiReplicaSpecs: {Worker: {template: " + pod + "}, Launcher: {template: " + pod + "}}}",
			"spec.mpiReplicaSpecs.Launcher.template spec.mpiReplicaSpecs.Worker.template",
		},
		{"PodGroup", "spec: {minMember: 1}", "none"},
	} {
		all, err := objects.Read("x.yaml", []byte("kind: "+row.kind+"\nmetadata: {name: a}\n"+row.spec+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, found := range templates(all[0]) {
			got = append(got, found.path)
		}
		if got == nil {
			got = []string{"none"}
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: got %q, want %q", row.kind, got, row.want)
		}
	}
}
