package apis

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/test/health"
)

// state is an object as a controller leaves it, from testdata/health, with what reconcilers should make of it in its
// annotations.
type state struct {
	*unstructured.Unstructured
	argo, message, flux string
	from                string // what wrote it
}

func states(t *testing.T) map[schema.GroupKind][]state {
	t.Helper()
	files, err := filepath.Glob("testdata/health/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no states: %v", err)
	}
	all := map[schema.GroupKind][]state{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(text, []byte("# ")) {
			t.Errorf("%s does not say where its states are from", file)
		}
		from, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), ":")
		if bytes.Contains(text, []byte("in the cluster of test/")) {
			from += ", in a cluster"
		}
		for _, doc := range bytes.Split(text, []byte("\n---\n")) {
			u := &unstructured.Unstructured{}
			asJSON, err := yaml.YAMLToJSON(doc)
			if err == nil {
				err = u.UnmarshalJSON(asJSON) // whole numbers stay whole, as Argo CD and Flux have them
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			a := u.GetAnnotations()
			s := state{u, a["argocd"], a["message"], a["flux"], from}
			all[u.GroupVersionKind().GroupKind()] = append(all[u.GroupVersionKind().GroupKind()], s)
		}
	}
	return all
}

// TestRules runs Argo CD's rules as Argo CD does, over every state.
func TestRules(t *testing.T) {
	all := states(t)
	for _, rule := range Rules(Suspended) {
		seen := map[string]bool{}
		for _, s := range all[rule.Kind] {
			t.Run(rule.Kind.String()+"/"+s.GetName(), func(t *testing.T) {
				status, message := health.Argo(t, rule.Lua, s.Object)
				if status != s.argo {
					t.Errorf("Argo CD shows %s (%s), want %s", status, message, s.argo)
				}
				if s.message != "" && message != s.message {
					t.Errorf("the message is %q, want %q", message, s.message)
				}
				seen[status] = true
			})
		}
		if len(seen) < 2 && rule.Kind != (schema.GroupKind{Group: VolcanoPodGroupKind.Group, Kind: "PodGroup"}) {
			t.Errorf("%s: testdata/health shows it in no two states of health: add what its controller writes",
				rule.Kind)
		}
	}
}

// TestGoldenStates holds docs/health.md to the states that the rules were run over.
func TestGoldenStates(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# What Argo CD and Flux make of each state

*'make golden' writes this page from the states that the rules of ` + "`" + `tegen gitops` + "`" + ` are tested with.*

Each row is an object as its controller left it, in a cluster of tests or as its source has it. Argo CD has the rules of
` + "`" + `tegen gitops argocd config` + "`" + `, run as it runs them; Flux has the expressions of ` + "`" + `tegen gitops flux --wait` + "`" + `, evaluated as
it evaluates them. *error* is an object without a status, for which Flux waits; – is a kind that Flux judges by itself,
or that no Kustomization waits for. What is *of others* has no label of tegen, *a hook* the annotation of one.

| kind | state | Argo CD | Flux | as written by |
|---|---|---|---|---|
`)
	all := states(t)
	kinds := slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	for _, k := range kinds {
		name := k.Kind
		if k.Group != "" {
			name += " of " + k.Group
		}
		for _, s := range all[k] {
			state := strings.ReplaceAll(s.GetName(), "-", " ")
			flux := cmp.Or(strings.TrimPrefix(s.flux, "none"), "–")
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, state, s.argo, flux, s.from)
		}
	}
	golden.Open(t, "../../docs").Compare(t, "health.md", []byte(b.String()))
}

// TestSuspendedHealthy: the rules of those whose waves must get past a suspended job.
func TestSuspendedHealthy(t *testing.T) {
	all := states(t)
	for _, rule := range Rules(Healthy) {
		for _, s := range all[rule.Kind] {
			want := s.argo
			if want == Suspended && s.GetName() != "suspended-job-of-others" {
				want = Healthy
			}
			if status, _ := health.Argo(t, rule.Lua, s.Object); status != want {
				t.Errorf("%s %s: Argo CD shows %s, want %s", rule.Kind, s.GetName(), status, want)
			}
		}
	}
}

// TestExpressions evaluates Flux's rules as Flux does, over every state.
func TestExpressions(t *testing.T) {
	all := states(t)
	for _, k := range Kinds {
		h := k.Health
		if h.None != "" || h.Passive {
			continue
		}
		if len(all[k.GroupKind()]) == 0 {
			t.Errorf("%s: testdata/health has no state of it", k.GroupKind())
		}
		current, failed := h.CEL()
		for _, s := range all[k.GroupKind()] {
			t.Run(k.GroupKind().String()+"/"+s.GetName(), func(t *testing.T) {
				if got := health.Flux(t, failed, current, s.Object); got != s.flux {
					t.Errorf("Flux says %s, want %s", got, s.flux)
				}
			})
		}
	}
}

// TestEveryKindHasHealth names kinds that nobody asks how they are.
func TestEveryKindHasHealth(t *testing.T) {
	rules := map[schema.GroupKind]bool{}
	for _, r := range Rules(Suspended) {
		rules[r.Kind] = true
		if !strings.HasPrefix(r.Key, "resource.customizations.health.") || strings.ContainsAny(r.Key, "/ ") {
			t.Errorf("argocd-cm cannot have the key %q", r.Key)
		}
	}
	for _, k := range Kinds {
		h := HealthOf(k.GroupKind())
		if h == nil {
			t.Errorf("%s: give it a Health in the file of its kind, or a reason why it has none", k.GroupKind())
			continue
		}
		if rules[k.GroupKind()] == (h.None != "") {
			t.Errorf("%s: a rule of Argo CD: %t, and the reason against one is %q", k.GroupKind(),
				rules[k.GroupKind()], h.None)
		}
	}
	if HealthOf(schema.GroupKind{Kind: "Service"}) != nil {
		t.Error("a Service has a health")
	}
}
