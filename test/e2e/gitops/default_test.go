package gitops

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/test/gitops"
)

// gated are fixtures that need a gate which their controller leaves off, and what its webhook says of it.
var gated = map[string]string{"restart-in-place.yaml": "InPlaceRestart feature gate is disabled"}

// defaults: a definition or webhook of the operators that run here adds fields to what is rendered of fixtures, which
// Argo CD does not see in any map that git has too, and changes none and adds no item to a list (gitops-engine,
// pkg/diff, threeWayMergePatch), which would be a difference for ever.
func defaults(t *testing.T, lab *gitops.Lab, tegen string) {
	const namespace = "defaults"
	if _, err := lab.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]schema.GroupVersionResource{"JobSet": jobSets, "PyTorchJob": pyTorchJobs}
	operated := regexp.MustCompile(`(?m)^ *target: (jobset|pytorchjob)`)
	files, err := filepath.Glob("../../../fixtures/valid/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	compared := map[string]int{}
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || !operated.Match(text) {
			continue
		}
		documents, errs := manifest.ReadLoosely(file, []byte(command(t, tegen, "render", file)))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, d := range documents {
			o := &unstructured.Unstructured{Object: d.Object}
			kind, ok := kinds[o.GetKind()]
			if !ok {
				continue
			}
			o.SetNamespace(namespace)
			live, err := lab.Dynamic().Resource(kind).Namespace(namespace).Create(t.Context(), o,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if words := gated[filepath.Base(file)]; err != nil && words != "" && strings.Contains(err.Error(), words) {
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			compared[o.GetKind()]++
			for _, drift := range drifts("spec", o.Object["spec"], live.Object["spec"]) {
				t.Errorf("%s: %s %s: %s", filepath.Base(file), o.GetKind(), o.GetName(), drift)
			}
		}
	}
	t.Logf("compared: %v", compared)
	if len(compared) != len(kinds) {
		t.Errorf("compared: %v, want some of %v", compared, kinds)
	}
}

// drifts are the places at which the cluster has something else than git, or an item of a list more.
func drifts(path string, git, cluster any) (all []string) {
	switch want := git.(type) {
	case map[string]any:
		got, _ := cluster.(map[string]any)
		for key := range want {
			all = append(all, drifts(path+"."+key, want[key], got[key])...)
		}
		return all
	case []any:
		if got, _ := cluster.([]any); len(got) == len(want) {
			for i := range want {
				all = append(all, drifts(fmt.Sprintf("%s[%d]", path, i), want[i], got[i])...)
			}
			return all
		}
	}
	if !equality.Semantic.DeepEqual(git, cluster) {
		all = append(all, fmt.Sprintf("%s is %v in git and %v in the cluster", path, git, cluster))
	}
	return all
}
