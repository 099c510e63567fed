package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tegen-dev/tegen/internal/crds"
	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/test/upstream"
)

// probe is a definition of a group in customGroups, made for the tests here.
const probe = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: probes.mlkube.io}
spec:
  group: mlkube.io
  scope: Namespaced
  names: {kind: Probe, plural: probes}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: self.least <= self.most, message: least must not exceed most}]
            required: [least, most]
            properties: {least: {type: integer}, most: {type: integer}, mode: {type: string, enum: [a, b]}}
`

// goldens writes a tree of golden files and returns what the walk finds in it.
func goldens(t *testing.T, files map[string]string) (string, []string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := golden.Rendered(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, found
}

// parse reads the custom resources of a stream.
func parse(t *testing.T, text string) []customResource {
	t.Helper()
	_, files := goldens(t, map[string]string{"case/base.yaml": text})
	all, err := customResources(files)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func define(t *testing.T, file, text string) []*crds.Definition {
	t.Helper()
	all, err := crds.Read(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestWalk shows that TestCustomResources would find each kind of mistake, in
// whatever file and place of it.
func TestWalk(t *testing.T) {
	const head = "apiVersion: mlkube.io/v1\nkind: Probe\nmetadata: {name: "
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n---\n"
	dir, files := goldens(t, map[string]string{
		"a/base.yaml": pod + head + "good}\nspec: {least: 1, most: 2, mode: a}\n",
		"b/base.yaml": pod + head + "lost}\nspec: {least: 1, most: 2, mod: a}\n---\n" + pod + head +
			"good}\nspec: {least: 1, most: 1}\n",
		"b/eks.yaml": head + "enum}\nspec: {least: 1, most: 2, mode: c}\n---\n" + head +
			"type}\nspec: {least: a, most: 2}\n",
		"c/base.yaml":    head + "required}\nspec: {least: 1}\n---\n" + head + "cel}\nspec: {least: 3, most: 2}\n",
		"d/base.yaml":    "apiVersion: mlkube.io/v2\nkind: Probe\nmetadata: {name: version}\n",
		"e/base.yaml":    "apiVersion: example.com/v1\nkind: Probe\nmetadata: {name: group}\n",
		"f/base.yaml":    "apiVersion: mlkube.io/v1\nkind: Other\nmetadata: {name: kind}\n",
		"g/base.yaml":    "apiVersion: scheduling.k8s.io/v1alpha2\nkind: Workload\nmetadata: {name: builtin}\n",
		"invalid/x.yaml": head + "input}\n",
	})
	resources, err := customResources(files)
	if err != nil {
		t.Fatal(err)
	}
	// One more of the kind, which is set aside, has nothing to say.
	all := append(define(t, "probes.yaml", probe),
		define(t, upstream.OlderDLRover, strings.Replace(probe, "mode:", "mood:", 1))...)
	wrong, unevaluated := hold(t.Context(), resources, all)
	for i := range wrong {
		wrong[i] = strings.TrimPrefix(wrong[i], dir+string(filepath.Separator))
	}
	want := []string{
		"b/base.yaml: Probe.mlkube.io default/lost: spec.mod: probes.yaml: is not a field of this CRD, " +
			"so an API server drops it without a word; remove it, or install a CRD that has it",
		`b/eks.yaml: Probe.mlkube.io default/enum: spec.mode: probes.yaml: must be one of "a", "b", not "c"`,
		"b/eks.yaml: Probe.mlkube.io default/type: spec.least: probes.yaml: must be of type integer, not string",
		"c/base.yaml: Probe.mlkube.io default/required: spec.most: probes.yaml: is required; add it",
		"c/base.yaml: Probe.mlkube.io default/cel: spec: probes.yaml: least must not exceed most",
		"d/base.yaml: Probe.mlkube.io version: no CRD serves v2: probes.yaml",
		"e/base.yaml: Probe.example.com group: nobody evaluates the group: add its kind to apis.Kinds, " +
			"and its CRD to test/upstream/lock.yaml",
	}
	if diff := cmp.Diff(want, wrong); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(unevaluated) != 1 || unevaluated[0].object.GetName() != "kind" {
		t.Errorf("without a definition: %v", unevaluated)
	}
}

// TestSkips: kubeconform leaves out what TestCustomResources evaluates, and nothing else.
func TestSkips(t *testing.T) {
	_, files := goldens(t, map[string]string{
		"a/base.yaml": "---\napiVersion: mlkube.io/v1\nkind: B\nmetadata: {name: a}\n---\napiVersion: v1\nkind: " +
			"ConfigMap\nmetadata: {name: a}\ndata:\n  kind: A\n" +
			"---\nkind: A\napiVersion: jobset.x-k8s.io/v1\nmetadata: {name: a}\nmore: {\n" +
			"---\napiVersion: example.com/v1\nkind: C\n---\napiVersion: scheduling.k8s.io/v1alpha2\nkind: Workload\n",
	})
	got, err := skips(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mlkube.io/v1/B", "jobset.x-k8s.io/v1/A"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJudgesOfCustom: a custom resource neither hides what stands beside it from
// the other evaluators nor is taken for a mistake by them.
func TestJudgesOfCustom(t *testing.T) {
	requireConformance(t)
	evaluators := newEvaluators(t)
	const (
		job = "---\napiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: demo}\nspec: " +
			"{minAvailable: 1}\n"
		gang = "---\napiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {name: demo}\nspec: " +
			"{schedulingPolicy: {gang: {minCount: 1}}}\n"
		policy = "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: unseen}\n" +
			"spec: {podSelector: {matchLabels: {app: unseen}}, policyTypes: [Ingress]}\n" +
			"---\napiVersion: v1\nkind: Service\nmetadata: {name: unseen}\nspec: {selector: {app: unseen}, " +
			"ports: [{port: 1}]}\n"
	)
	for _, tc := range []struct {
		name, text  string
		conformance []string // kinds that kubeconform finds at fault
		checks      []string // critical checks of kube-score
	}{
		{"alone", job, nil, nil},
		{"beside good ones", sample + job + gang + policy, nil, nil},
		{"beside a bad one", mutate(t, "  replicas: 2\n", "  replicaz: 2\n") + job, []string{"StatefulSet"}, nil},
		{
			"of Kubernetes itself, and bad", job + strings.Replace(gang, "minCount", "minimum", 1),
			[]string{"PodGroup"},
			nil,
		},
		{
			"of a group that nobody evaluates", strings.Replace(job, "batch.volcano.sh", "batch.example.com", 1),
			[]string{"Job"},
			nil,
		},
		{
			"none, and selectors of no pods", sample + policy, nil,
			[]string{"networkpolicy-targets-pod", "service-targets-pod"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, files := goldens(t, map[string]string{"case/base.yaml": tc.text})
			findings, _, err := evaluators.conform(files)
			if err != nil {
				t.Fatal(err)
			}
			var kinds, checks []string
			for _, f := range findings {
				kinds = append(kinds, f.kind)
			}
			critical, err := evaluators.score(filepath.Join(dir, "case/base.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range critical {
				checks = append(checks, f.check)
			}
			if !slices.Equal(kinds, tc.conformance) || !slices.Equal(checks, tc.checks) {
				t.Errorf("kubeconform finds %v, want %v; kube-score %v, want %v\n%v%v", kinds, tc.conformance, checks,
					tc.checks, findings, critical)
			}
		})
	}
}

// TestBuiltInGroups: check --crds notes what has no CRD, and must not note a kind that needs none.
func TestBuiltInGroups(t *testing.T) {
	requireConformance(t)
	var doc swagger
	if err := json.Unmarshal(openAPI(t), &doc); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, definition := range doc.Definitions {
		kind, gv, ok := identify(definition)
		if !ok {
			continue
		}
		asked++
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": gv.String(), "kind": kind}}
		if crds.Custom(u) {
			t.Errorf("%s of %s is taken for a custom resource", kind, gv)
		}
	}
	if asked < 50 {
		t.Errorf("only %d kinds in the OpenAPI document", asked)
	}
}
