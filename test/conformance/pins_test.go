package conformance

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPins keeps versions together that different files pin. Each go get moves
// only its own file, and raises what it needs there without asking.
func TestPins(t *testing.T) {
	product := requirements(t, root+"/go.mod")
	tools := requirements(t, toolsMod)
	for _, module := range []string{"sigs.k8s.io/kustomize/api", "sigs.k8s.io/kustomize/kyaml"} {
		if tools[module] != product[module] {
			t.Errorf("%s is %s in tools.mod and %s in go.mod: the kustomize that checks would not be the kustomize "+
				"that is linked",
				module, tools[module], product[module])
		}
	}
	for _, module := range []string{"k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/apiserver"} {
		if product[module] != product["k8s.io/api"] {
			t.Errorf("%s is %s and k8s.io/api %s: custom resources would be evaluated by another release than "+
				"built-in kinds",
				module, product[module], product["k8s.io/api"])
		}
	}
	kubernetes := requirements(t, schemasMod)["k8s.io/kubernetes"]
	if linked, want := product["k8s.io/api"], strings.Replace(kubernetes, "v1.", "v0.", 1); linked != want {
		t.Errorf("k8s.io/api is %s in go.mod, but the schemas are those of Kubernetes %s", linked, kubernetes)
	}
	if product["k8s.io/kubernetes"] != kubernetes {
		t.Errorf("k8s.io/kubernetes is %s in go.mod, but the schemas are those of %s", product["k8s.io/kubernetes"],
			kubernetes)
	}
	if !strings.HasPrefix(kubernetes, scoredKubernetes+".") {
		t.Errorf("kube-score evaluates by %s, but the schemas are those of %s", scoredKubernetes, kubernetes)
	}
}

// requirements maps the modules that a mod file requires to their versions.
func requirements(t *testing.T, modfile string) map[string]string {
	t.Helper()
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(goCommand(t, "mod", "edit", "-json", modfile), &file); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Path] = r.Version
	}
	return versions
}
