package generators_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
)

// TestChanged: for every fixture rendered for git, the hash of each name is found again from the YAML, in any order of
// the objects. A change of what the hash covers is reported for exactly that object; other changes are not.
func TestChanged(t *testing.T) {
	hashed, kinds := 0, map[string]bool{}
	for _, f := range fixtures(t) {
		jobs, err := schema.LoadForGit(f.sources)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			docs := untypedOf(t, objects(j))
			if got := changedNames(t, docs); len(got) > 0 {
				t.Errorf("%s: unchanged objects are reported: %q", f.name, got)
			}
			for _, doc := range docs {
				if doc.GetAnnotations()[names.ContentHash] == "" {
					continue
				}
				hashed++
				kinds[doc.GetKind()+doc.GetLabels()[names.LabelComponent]] = true
				if strings.HasSuffix(f.name, "/base") { // an environment changes values alone
					checkChanges(t, f.name, docs, doc)
				}
			}
		}
	}
	for _, kind := range []string{
		"Jobworker", "Jobprefetch", "Jobkeygen", "Jobserver", "JobSetworker", "TrainingRuntimeworker", "TrainJobworker",
	} {
		if !kinds[kind] {
			t.Errorf("of %d objects with a hash none is a %s", hashed, kind)
		}
	}
}

// TestChangedConfig: the configuration of an installation has a hash of its text in its name.
func TestChangedConfig(t *testing.T) {
	docs := untypedOf(t, generators.Install(installation("ml")))
	if got := changedNames(t, docs); len(got) > 0 {
		t.Errorf("unchanged objects are reported: %q", got)
	}
	for _, doc := range docs {
		if doc.GetKind() == "ConfigMap" {
			set(t, doc, "kind: KubeSchedulerConfiguration\n# another\n", "data", "config.yaml")
		}
	}
	if got := changedNames(t, docs); len(got) != 1 || !strings.HasPrefix(got[0], "ConfigMap ") {
		t.Errorf("another text: reported %q", got)
	}
}

// TestRenamed: what a prefix and a suffix of a kustomization change in references is no change of an object that has
// the same prefix and suffix. Another image is.
func TestRenamed(t *testing.T) {
	text := jobText("hashedNames: true", "env: [{name: A, configMap: {name: settings, key: a}}]")
	docs := untypedOf(t, objects(load(t, text)))
	docs = append(docs, untypedOf(t, []runtime.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: docs[0].GetNamespace()},
	}})...)
	for _, doc := range docs {
		doc.SetName("a-" + doc.GetName() + "-z")
		renameReferences(doc.Object)
	}
	if got := changedNames(t, docs); len(got) > 0 {
		t.Errorf("reported: %q", got)
	}
	for _, doc := range docs {
		if doc.GetKind() == "Job" {
			changeImage(doc.Object["spec"])
		}
	}
	if got := changedNames(t, docs); len(got) != 1 {
		t.Errorf("another image: reported %q", got)
	}
}

// renameReferences renames those that kustomize knows of.
func renameReferences(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			switch name, _ := value.(string); key {
			case "serviceAccountName":
				v[key] = "a-" + name + "-z"
			case "configMapKeyRef":
				value.(map[string]any)["name"] = "a-settings-z"
			default:
				renameReferences(value)
			}
		}
	case []any:
		for _, item := range v {
			renameReferences(item)
		}
	}
}

// checkChanges changes one of docs, which is as before when it returns.
func checkChanges(t *testing.T, what string, docs []*unstructured.Unstructured, doc *unstructured.Unstructured) {
	t.Helper()
	before := doc.DeepCopy()
	id := doc.GetKind() + " " + doc.GetName()
	doc.SetLabels(map[string]string{"team": "vision"})
	for key, value := range before.GetLabels() {
		set(t, doc, value, "metadata", "labels", key)
	}
	set(t, doc, "x", "metadata", "annotations", "note")
	set(t, doc, true, "spec", "suspend")
	if doc.GetKind() == "Job" {
		set(t, doc, int64(99), "spec", "parallelism")
		set(t, doc, int64(99), "spec", "completions")
	}
	if doc.GetKind() != "TrainingRuntime" {
		if got := changedNames(t, docs); len(got) > 0 {
			t.Errorf("%s, %s: changes outside of the hash are reported: %q", what, id, got)
		}
	}
	doc.Object = before.DeepCopy().Object
	if !changeImage(doc.Object["spec"]) {
		return // a TrainJob
	}
	got := changedNames(t, docs)
	if len(got) != 1 || !slices.Contains(strings.Split(got[0], ", "), id) {
		t.Errorf("%s: a new image of %s: reported %q", what, id, got)
	}
	doc.SetUID("of-a-cluster")
	if got := changedNames(t, []*unstructured.Unstructured{doc}); len(got) > 0 {
		t.Errorf("%s: an object of a cluster is reported: %q", what, got)
	}
	doc.Object = before.Object
}

func set(t *testing.T, doc *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(doc.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

// changeImage changes the image of the first container that it finds.
func changeImage(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["image"].(string); ok && v["name"] != nil {
			v["image"] = "example.org/other:2"
			return true
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if changeImage(v[key]) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, changeImage)
	}
	return false
}

func untypedOf(t *testing.T, objs []runtime.Object) (docs []*unstructured.Unstructured) {
	t.Helper()
	for _, obj := range objs {
		text, err := manifest.Append(nil, obj)
		if err != nil {
			t.Fatal(err)
		}
		doc := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &doc.Object); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
	return docs
}

// changedNames are the kinds and names that Changed reports of objects as they are read from files, in an order by
// chance; those of one hash are one text.
func changedNames(t *testing.T, docs []*unstructured.Unstructured) (all []string) {
	t.Helper()
	var text []byte
	for _, i := range rand.Perm(len(docs)) {
		doc, err := yaml.Marshal(docs[i].Object)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, "---\n"...), doc...)
	}
	objs, err := manifest.Read("docs", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range generators.Changed(objs) {
		var names []string
		for _, obj := range group {
			gvk, err := manifest.GVK(obj)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, gvk.Kind+" "+meta(t, obj).GetName())
		}
		all = append(all, strings.Join(names, ", "))
	}
	return all
}
