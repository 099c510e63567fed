package krm_test

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/krm"
)

// list is a ResourceList of a configuration, "" for none, and items.
func list(t *testing.T, config string, items ...string) *framework.ResourceList {
	t.Helper()
	rl := &framework.ResourceList{}
	for _, text := range items {
		nodes, err := kio.FromBytes([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		rl.Items = append(rl.Items, nodes...)
	}
	if config != "" {
		n, err := yaml.Parse(config)
		if err != nil {
			t.Fatal(err)
		}
		rl.FunctionConfig = n
	}
	return rl
}

// run gives the function a list, as kustomize does, and returns its answer.
func run(t *testing.T, rl *framework.ResourceList) error {
	t.Helper()
	var in, out bytes.Buffer
	w := kio.ByteWriter{
		Writer: &in, KeepReaderAnnotations: true, FunctionConfig: rl.FunctionConfig,
		WrappingKind: "ResourceList", WrappingAPIVersion: "config.kubernetes.io/v1",
	}
	if err := w.Write(rl.Items); err != nil {
		t.Fatal(err)
	}
	failure := krm.Run(generators.Set{}, in.Bytes(), &out, io.Discard)
	r := kio.ByteReader{Reader: &out, OmitReaderAnnotations: true}
	items, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	rl.Items, rl.Results = items, nil
	if r.Results != nil {
		text, err := r.Results.String()
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(text), &rl.Results); err != nil {
			t.Fatal(err)
		}
	}
	return failure
}

// unguarded is the note on a job whose Environment takes its NetworkPolicies away.
const unguarded = "no NetworkPolicy of the job guards the rendezvous"

// process runs the function and returns its items as Kind namespace/name, in order. Its results, if any, contain one of
// some texts.
func process(t *testing.T, rl *framework.ResourceList, results ...string) []string {
	t.Helper()
	if err := run(t, rl); err != nil {
		t.Fatal(err)
	}
	for _, r := range rl.Results {
		if !slices.ContainsFunc(results, func(text string) bool { return strings.Contains(r.Message, text) }) {
			t.Errorf("results without an error: %v", r)
		}
	}
	return itemIDs(rl)
}

func itemIDs(rl *framework.ResourceList) (out []string) {
	for _, n := range rl.Items {
		out = append(out, n.GetKind()+" "+n.GetNamespace()+"/"+n.GetName())
	}
	return out
}

func itemTexts(t *testing.T, rl *framework.ResourceList) (out []string) {
	t.Helper()
	for _, n := range rl.Items {
		text, err := n.String()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	return out
}
