package bundles

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/contract"
	"github.com/tegen-dev/tegen/internal/golden"
)

// bundle is one golden: a case as it is rendered for an overlay.
type bundle struct {
	file     string // golden/minimal/base.yaml
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
	return slices.ContainsFunc(b.objects, func(o *object) bool { return o.isNamespace() && o.GetName() == namespace })
}

// accounts are the ServiceAccounts that the bundle expects in a namespace.
func (b *bundle) accounts(namespace string) []string {
	var names []string
	for _, o := range b.objects {
		if o.GetNamespace() == namespace {
			names = append(names, o.expects("ServiceAccount")...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// expects are the names of what the object leaves to the cluster to have of a kind.
func (o *object) expects(kind string) []string {
	var names []string
	for entry := range strings.SplitSeq(o.GetAnnotations()[contract.Expects], ",") {
		if of, name, ok := strings.Cut(entry, "/"); ok && of == kind {
			names = append(names, name)
		}
	}
	return names
}

// object is one document of a golden.
type object struct {
	*unstructured.Unstructured
	file string
	text []byte // as it stands in the file, which is what is sent
}

func (o *object) String() string {
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return o.file + ": " + o.GroupVersionKind().GroupKind().String() + " " + name
}

func (o *object) isNamespace() bool { return o.GetAPIVersion() == "v1" && o.GetKind() == "Namespace" }

// readBundles reads every golden, in the order of their names.
func readBundles(dir string) ([]*bundle, error) {
	files, err := golden.Rendered(dir)
	if err != nil {
		return nil, err
	}
	var all []*bundle
	for _, file := range files {
		b := &bundle{
			file:     strings.TrimPrefix(filepath.ToSlash(file), root+"/"),
			testCase: filepath.Base(filepath.Dir(file)),
			overlay:  strings.TrimSuffix(filepath.Base(file), ".yaml"),
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if b.objects, err = readObjects(b.file, text); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// readObjects splits a stream of YAML documents and leaves their texts as they are.
func readObjects(file string, text []byte) ([]*object, error) {
	var all []*object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		o := &object{&unstructured.Unstructured{}, file, document}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if o.GetName() == "" || o.GetKind() == "" {
			return nil, fmt.Errorf("reading %s: an object without kind or name:\n%s", file, document)
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("reading %s: no object in it", file)
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

func TestReadObjects(t *testing.T) {
	const text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: a}\n" +
		"data:\n  text: |\n    first\n    --- \n    last\n"
	objects, err := readObjects("golden/case/base.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{objects: objects}
	if len(objects) != 2 || !b.brings("a") || b.brings("b") || !slices.Equal(b.namespaces(), []string{"a"}) {
		t.Fatalf("got %v", objects)
	}
	if got, want := objects[1].String(), "golden/case/base.yaml: ConfigMap a/b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.HasSuffix(text, string(objects[1].text)) {
		t.Errorf("the text is not as it was:\n%s", objects[1].text)
	}
	for _, bad := range []string{"", "kind: ConfigMap\n", "a: b: c\n"} {
		if objects, err := readObjects("bad.yaml", []byte(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, objects)
		}
	}
}

// TestTemplates: a template is found wherever a kind has it.
func TestTemplates(t *testing.T) {
	const pod = "{spec: {containers: [{name: c}]}}"
	for _, row := range []struct{ kind, spec, want string }{
		{"Pod", "spec: {containers: [{name: c}], initContainers: [{name: i}]}", ""},
		{"Job", "spec: {template: " + pod + "}", "spec.template"},
		{"JobSet", "spec: {replicatedJobs: [{template: {spec: {template: " + pod + "}}}, {template: {spec: {template: " + pod + "}}}]}", "spec.replicatedJobs[0].template.spec.template spec.replicatedJobs[1].template.spec.template"},
		{"MPIJob", "spec: {mpiReplicaSpecs: {Worker: {template: " + pod + "}, Launcher: {template: " + pod + "}}}", "spec.mpiReplicaSpecs.Launcher.template spec.mpiReplicaSpecs.Worker.template"},
		{"PodGroup", "spec: {minMember: 1}", "none"},
	} {
		objects, err := readObjects("x.yaml", []byte("kind: "+row.kind+"\nmetadata: {name: a}\n"+row.spec+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, found := range templates(objects[0]) {
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
