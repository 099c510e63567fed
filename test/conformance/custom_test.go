package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/crds"
	"github.com/tegen-dev/tegen/internal/crds/celrules"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/test/cases"
	"github.com/tegen-dev/tegen/test/upstream"
)

// ownCRDs are the definitions that tegen brings along.
const ownCRDs = root + "/overlays/crds"

// customGroups are the API groups whose objects TestCustomResources evaluates by
// CRDs: of the kinds that tegen knows, and of others that gangs and installations
// need. kubeconform has no schemas for them and leaves them out.
var customGroups = append(groupsOfKinds(false), "kueue.x-k8s.io", "scheduling.sigs.k8s.io")

// builtInGroups are those of Kubernetes itself whose objects are read as custom
// resources are. They have no CRDs; kubeconform evaluates them.
var builtInGroups = groupsOfKinds(true)

// groupsOfKinds are the groups of kinds that Kubernetes itself serves, or of the others.
func groupsOfKinds(builtIn bool) (groups []string) {
	for _, k := range apis.Kinds {
		if (k.Controller == nil) == builtIn {
			groups = append(groups, k.Group)
		}
	}
	return groups
}

// TestCustomResources holds every custom resource of the cases against every
// definition of its version: what would be dropped, what refused, the rules in
// CEL. It needs no tool and no network, so it runs with every other test.
func TestCustomResources(t *testing.T) {
	files, err := cases.Write(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	resources, err := customResources(files)
	if err != nil {
		t.Fatal(err)
	}
	if len(resources) == 0 {
		t.Errorf("no custom resource in %d files: nothing would be evaluated", len(files))
	}
	own, err := crds.ReadDir(ownCRDs)
	if err != nil {
		t.Fatal(err)
	}
	others, err := readUpstream()
	absent := errors.Is(err, upstream.ErrAbsent)
	if err != nil && !absent {
		t.Fatal(err)
	}
	wrong, unevaluated := hold(t.Context(), resources, slices.Concat(own, others))
	for _, w := range wrong {
		t.Error(w)
	}
	if absent {
		upstream.Absent(t, fmt.Errorf("%d of %d custom resources are not evaluated: %w", len(unevaluated),
			len(resources), err))
	}
	for _, r := range unevaluated {
		t.Errorf("%s: no CRD in %s or of other projects defines the kind", r, ownCRDs)
	}
}

// TestCustomGroups: a group that no definition is for would be left out by
// kubeconform and evaluated by nobody.
func TestCustomGroups(t *testing.T) {
	own, err := crds.ReadDir(ownCRDs)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(own, needUpstream(t))
	for _, group := range customGroups {
		if !slices.ContainsFunc(all, func(d *crds.Definition) bool { return d.Kind.Group == group }) {
			t.Errorf("no CRD of the group %s", group)
		}
	}
}

const dlroverJob = `apiVersion: elastic.iml.github.io/v1alpha1
kind: ElasticJob
metadata: {name: bert, namespace: training}
spec:
  distributionStrategy: AllreduceStrategy
  suspend: true
  replicaSpecs:
    worker:
      replicas: 4
      template:
        metadata:
          annotations: {gang.scheduling.koordinator.sh/min-available: "4"}
        spec:
          containers: [{name: main, image: "example.com/bert:1"}]
`

// TestOlderDLRover: DLRover publishes two definitions of one version, and the
// one that its documents install loses what a gang and suspension need.
func TestOlderDLRover(t *testing.T) {
	lost := map[string][]string{}
	job := parse(t, dlroverJob)[0].object
	for _, d := range needUpstream(t) {
		if d.Kind != job.GroupVersionKind().GroupKind() {
			continue
		}
		fields := []string{}
		for _, f := range celrules.New(d).Check(t.Context(), job) {
			if f.Verdict != crds.Dropped {
				t.Errorf("refused: %v", f)
			}
			fields = append(fields, f.Field)
		}
		lost[filepath.Base(d.File)] = fields
	}
	want := map[string][]string{
		"elastic.iml.github.io_elasticjobs.yaml": {},
		upstream.OlderDLRover: {
			"spec.replicaSpecs.worker.template.metadata.annotations",
			"spec.suspend",
		},
	}
	if diff := cmp.Diff(want, lost); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
}

// readUpstream reads what is a second's work, once. Beside upstream.ErrAbsent are the definitions that are here.
var readUpstream = sync.OnceValues(func() (all []*crds.Definition, err error) {
	files, absent := upstream.Files(root)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := crds.Read(file, text)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, absent
})

func needUpstream(t *testing.T) []*crds.Definition {
	t.Helper()
	all, err := readUpstream()
	if errors.Is(err, upstream.ErrAbsent) {
		upstream.Absent(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// customResource is an object of a golden that no Go type is for.
type customResource struct {
	file   string
	object *unstructured.Unstructured
}

func (r customResource) String() string {
	return fmt.Sprintf("%s: %s %s", r.file, r.object.GroupVersionKind().GroupKind(), r.object.GetName())
}

// customResources lists the objects that are of neither of Kubernetes' typed
// groups nor of those in builtInGroups.
func customResources(files []string) ([]customResource, error) {
	var all []customResource
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := manifest.Read(file, text)
		if err != nil {
			return nil, err
		}
		for _, obj := range objects {
			u, ok := obj.(*unstructured.Unstructured)
			if ok && !slices.Contains(builtInGroups, u.GroupVersionKind().Group) {
				all = append(all, customResource{file, u})
			}
		}
	}
	return all, nil
}

// hold evaluates custom resources by every definition of their kind and version,
// and returns what is wrong, and the resources that no definition is there for.
func hold(ctx context.Context, resources []customResource, definitions []*crds.Definition) (wrong []string,
	unevaluated []customResource,
) {
	evaluators := make([]*celrules.Evaluator, len(definitions))
	for i, d := range definitions {
		evaluators[i] = celrules.New(d)
	}
	for _, r := range resources {
		gvk := r.object.GroupVersionKind()
		if !slices.Contains(customGroups, gvk.Group) {
			wrong = append(wrong, fmt.Sprintf("%s: nobody evaluates the group: add its kind to apis.Kinds, "+
				"and its CRD to test/upstream/lock.yaml", r))
			continue
		}
		var versions []string
		evaluated := false
		for _, j := range evaluators {
			if _, aside := upstream.SetAside[filepath.Base(j.File)]; aside || j.Kind != gvk.GroupKind() {
				continue
			}
			versions = append(versions, j.File)
			if !j.Serves(gvk.Version) {
				continue
			}
			evaluated = true
			for _, f := range j.Check(ctx, r.object) {
				wrong = append(wrong, r.file+": "+f.String())
			}
		}
		switch {
		case evaluated:
		case versions == nil:
			unevaluated = append(unevaluated, r)
		default:
			wrong = append(wrong, fmt.Sprintf("%s: no CRD serves %s: %s", r, gvk.Version, strings.Join(versions, ", ")))
		}
	}
	return wrong, unevaluated
}
