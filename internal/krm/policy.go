package krm

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/dochead"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// policyAmong is the policy of the ConfigMaps among items that are annotated as one; nil if there is none. A policy
// comes as a ConfigMap, because every form of a KRM function receives items, and only some can read files.
func policyAmong(items []*yaml.Node) (*policy.Policy, error) {
	var sources []policy.Source
	for _, n := range items {
		annotation := yamldoc.Field(annotations(n), names.Policy)
		if annotation == nil {
			continue
		}
		value := textOf(annotation)
		switch {
		case value != "true":
			return nil, fmt.Errorf("%s: metadata.annotations[%q]: must be %q, not %q", title(n), names.Policy, "true",
				value)
		case kind(n) != "ConfigMap" || apiVersion(n) != "v1":
			return nil, fmt.Errorf("%s: the annotation %s is for a ConfigMap with CUE files", title(n), names.Policy)
		}
		files, err := cueFiles(n)
		if err != nil {
			return nil, err
		}
		sources = append(sources, files...)
	}
	if len(sources) == 0 {
		return nil, nil
	}
	return policy.Load(sources, render.PolicyTypes())
}

// cueFiles are the files of a ConfigMap, in the order of their names.
func cueFiles(n *yaml.Node) (sources []policy.Source, err error) {
	text, err := texts([]*yaml.Node{n})
	if err != nil {
		return nil, err
	}
	var content struct {
		Data       map[string]string `json:"data"`
		BinaryData map[string]any    `json:"binaryData"`
	}
	if err := sigsyaml.Unmarshal([]byte(text[0]), &content); err != nil {
		return nil, fmt.Errorf("reading %s: %w", title(n), err)
	}
	if len(content.BinaryData) > 0 || len(content.Data) == 0 {
		return nil, fmt.Errorf("%s: a policy has CUE files under data, and nothing else", title(n))
	}
	for _, file := range slices.Sorted(maps.Keys(content.Data)) {
		if path.Ext(file) != ".cue" {
			return nil, fmt.Errorf("%s: data[%q]: the name of a policy's file must end in .cue", title(n), file)
		}
		sources = append(sources, policy.Source{Name: file, Scope: title(n), Text: []byte(content.Data[file])})
	}
	return sources, nil
}

// judge checks the rendered objects of bundles, and all items that are applied, against a policy.
func judge(items []*yaml.Node, bundles []render.Bundle, p *policy.Policy) error {
	if p == nil {
		return nil
	}
	docs, err := texts(slices.DeleteFunc(slices.Clone(items), func(n *yaml.Node) bool {
		return headOf(n).Class() != dochead.Foreign || isLocal(n)
	}))
	if err != nil {
		return err
	}
	objects, err := manifest.Read("items", []byte(strings.Join(docs, manifest.Separator)))
	if err != nil {
		return err
	}
	for _, b := range bundles {
		rendered, err := read(b)
		if err != nil {
			return err
		}
		objects = append(objects, rendered...)
	}
	return render.Violations(objects, p).Err()
}

// withPolicies is what kustomize builds, with the policies that are marked as local. kustomize drops what is marked so
// from its output, which a function, unlike this process, sees before that.
func (k *kustomization) withPolicies(t types.Kustomization, files map[string][]byte) ([]*yaml.Node, error) {
	slashes := strings.NewReplacer("/", "~1")
	keep := fmt.Sprintf(`apiVersion: builtin
kind: PatchTransformer
metadata: {name: internal-tegen-policies}
target: {annotationSelector: "%s,%s,%s!=false"}
patch: |
  - {op: replace, path: /metadata/annotations/%s, value: "false"}
  - {op: add, path: /metadata/annotations/%s, value: "true"}
`, names.Policy, localConfig, localConfig, slashes.Replace(localConfig), slashes.Replace(keptPolicy))
	keeping := t
	keeping.Transformers = append(slices.Clone(t.Transformers), keep)
	if !slices.Contains(t.BuildMetadata, types.TransformerAnnotations) {
		return k.kustomize(keeping, files)
	}
	// Every object would name this transformer: only the policies are taken from the second build.
	items, err := k.kustomize(t, files)
	if err != nil {
		return nil, err
	}
	all, err := k.kustomize(keeping, files)
	if err != nil {
		return nil, err
	}
	return append(items, slices.DeleteFunc(all, func(n *yaml.Node) bool { return !isKept(n) })...), nil
}

// keptPolicy is the annotation of what withPolicies keeps.
const keptPolicy = "internal.tegen.dev/policy"

// policies takes the policies that withPolicies kept out of items, and adds those of all items to the options.
func (k *kustomization) policies(items []*yaml.Node) ([]*yaml.Node, error) {
	found, err := policyAmong(items)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", relative(k.dir), err)
	}
	k.policy = found
	k.opts = append(slices.Clone(k.opts), schema.WithPolicy(schema.PolicyOf(k.opts).With(found)))
	if name, fenced := fenceAmong(items); fenced && len(k.nested) > 0 {
		return nil, fmt.Errorf("reading %s: the fence of %s does not reach the jobs of kustomizations below that have "+
			"tegen themselves: give it to their Generator", relative(filepath.Join(k.dir, k.file)), name)
	}
	if found.HasJobRules() && len(k.nested) > 0 {
		return nil, fmt.Errorf("reading %s: the policy's rules for jobs do not reach the jobs of kustomizations below "+
			"that have tegen themselves: list the policy there, or use --policy",
			relative(filepath.Join(k.dir, k.file)))
	}
	return slices.DeleteFunc(items, isKept), nil
}

func isKept(n *yaml.Node) bool { return yamldoc.Field(annotations(n), keptPolicy) != nil }

// judge checks everything that the kustomization builds against its own policy.
func (k *kustomization) judge(out *Output, err error) (*Output, error) {
	if err != nil || k.policy == nil {
		return out, err
	}
	text, err := out.stream()
	if err != nil {
		return nil, err
	}
	objects, err := manifest.Read(relative(k.dir), text)
	if err != nil {
		return nil, err
	}
	return out, out.located(render.Violations(objects, k.policy), relative(k.dir))
}

// located are findings about the output as an error: violations of policies at the job whose object it is, unless
// something changed the object later, and others at the overlay.
func (out *Output) located(list finding.List, dir string) error {
	jobs := map[string]string{}
	for _, b := range out.Bundles {
		for _, id := range b.IDs() {
			jobs[id] = b.Summary.Position()
		}
	}
	for i, f := range list {
		at := dir
		if strings.HasPrefix(f.Rule, "policy/") {
			at = cmp.Or(jobs[f.Object], dir)
		}
		list[i] = f.At(at)
	}
	return list.Err()
}

// fenceAmong is the title of an Environment with a fence.
func fenceAmong(items []*yaml.Node) (name string, ok bool) {
	for _, n := range items {
		fence := yamldoc.Field(yamldoc.Field(n, "spec"), "fence")
		if kind(n) == names.KindEnvironment && isInput(n) && fence != nil && fence.Value == "true" {
			return title(n), true
		}
	}
	return "", false
}

// onlyJobs refuses other objects in the files of jobs that were named to the command, if an Environment has a fence:
// it judges what jobs are rendered to, and who may write jobs could add any object.
func (b *building) onlyJobs(out *Output, err error) (*Output, error) {
	if err != nil || !b.fenced {
		return out, err
	}
	var list finding.List
	for _, source := range b.sources {
		for _, doc := range yamldoc.Split(source.Name, source.Data) {
			n, err := doc.Parse()
			if n = yamldoc.Target(n); err != nil || n == nil || kind(n) == names.KindTrainingJob {
				continue // who loads the jobs reports what is no YAML
			}
			other := finding.Said("job/policy", finding.Error,
				title(n)+": not allowed in a file of jobs under a fence: list it in the overlay")
			list = append(list, other.At(fmt.Sprintf("%s:%d:%d", source.Name, n.Line, n.Column)))
		}
	}
	return out, list.Err()
}
