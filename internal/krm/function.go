// Package krm is the door for kustomize and kpt: a list of resources in, the same list with every TrainingJob's objects
// appended out. It holds the KRM function itself, and the same thing done to a kustomization without starting a
// process. What kustomize keeps to itself, a function's results, also goes into the error.
package krm

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/kio/kioutil"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/contract"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

const localConfig = "config.kubernetes.io/local-config"

// Process is the KRM function. Its configuration says what it does: a Generator renders the TrainingJobs among the
// items, a TrainingJob renders itself, a Check only checks references; none at all is a Generator.
func Process(rl *framework.ResourceList) error {
	config, err := parseConfig(rl.FunctionConfig)
	if err != nil {
		return fail(rl, err)
	}
	if config.check {
		return fail(rl, checkItems(rl.Items))
	}
	if config.job != nil && slices.ContainsFunc(rl.Items, config.isJob) {
		config.job = nil // under generators, kustomize hands a function its configuration as an item too
	}
	inputs := rl.Items
	if config.job != nil {
		inputs = append(slices.Clone(inputs), config.job)
	}
	bundles, err := renderItems(inputs, config.generators)
	if err != nil {
		return fail(rl, err)
	}
	for _, b := range bundles {
		for _, note := range b.Job.Notes() {
			rl.Results = append(rl.Results, &framework.Result{Message: b.Job.Metadata.Name + ": " + note, Severity: framework.Info})
		}
	}
	rl.Items, err = merge(rl.Items, bundles, len(config.generators) == 0)
	return fail(rl, err)
}

// fail records an error as results and returns it, so that the process ends in failure: kustomize shows no results.
func fail(rl *framework.ResourceList, err error) error {
	if err == nil {
		return nil
	}
	var mistakes schema.Errors
	if !errors.As(err, &mistakes) {
		for _, line := range strings.Split(err.Error(), "\n") {
			rl.Results = append(rl.Results, &framework.Result{Message: line, Severity: framework.Error})
		}
		return err
	}
	lines := make([]string, len(mistakes))
	for i, m := range mistakes {
		lines[i] = itemError(m)
		rl.Results = append(rl.Results, &framework.Result{
			Message:  m.Msg,
			Severity: framework.Error,
			Field:    &framework.Field{Path: m.Path},

			ResourceRef: reference(rl.Items, m.File),
			File:        &framework.File{Path: m.File},
			Tags:        map[string]string{"rule": m.Rule},
		})
	}
	return errors.New(strings.Join(lines, "\n"))
}

// reference names the item that a mistake is in, nil where it is in none.
func reference(items []*yaml.RNode, file string) *yaml.ResourceIdentifier {
	for i, n := range items {
		if itemName(n, i) == file {
			return &yaml.ResourceIdentifier{
				TypeMeta: yaml.TypeMeta{APIVersion: n.GetApiVersion(), Kind: n.GetKind()},
				NameMeta: yaml.NameMeta{Name: n.GetName(), Namespace: n.GetNamespace()},
			}
		}
	}
	return nil
}

// itemError leaves the position out: an item was written anew on its way here, so its lines are not the file's.
func itemError(m schema.Error) string {
	return strings.Replace(m.Error(), fmt.Sprintf("%s:%d:%d: ", m.File, m.Line, m.Col), m.File+": ", 1)
}

// config is what a function's configuration says.
type config struct {
	check      bool
	generators []string
	job        *yaml.RNode
}

// isJob says whether an item is the job that the configuration is.
func (c config) isJob(n *yaml.RNode) bool {
	return isInput(n) && n.GetKind() == contract.KindTrainingJob && n.GetName() == c.job.GetName() && n.GetNamespace() == c.job.GetNamespace()
}

// generatorConfig is a Generator; a ConfigMap with the same names under data is kpt's short form of it.
type generatorConfig struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   any      `json:"metadata"`
	Generators []string `json:"generators"`
	Spec       struct {
		Generators []string `json:"generators"`
	} `json:"spec"`
	Data struct {
		Generators string `json:"generators"`
	} `json:"data"`
}

func parseConfig(n *yaml.RNode) (config, error) {
	if n == nil || n.IsNilOrEmpty() {
		return config{}, nil
	}
	kind, version := n.GetKind(), n.GetApiVersion()
	switch {
	case isInput(n) && kind == contract.KindTrainingJob:
		return config{job: n.Copy()}, nil
	case version == contract.APIVersion && (kind == contract.KindGenerator || kind == contract.KindCheck), kind == "ConfigMap":
	default:
		return config{}, fmt.Errorf("the function's configuration is a %s of %s: must be %s, %s or %s of %s", kind, version,
			contract.KindGenerator, contract.KindCheck, contract.KindTrainingJob, contract.APIVersion)
	}
	text, err := n.String()
	if err != nil {
		return config{}, fmt.Errorf("reading the function's configuration: %w", err)
	}
	var g generatorConfig
	if err := sigsyaml.UnmarshalStrict([]byte(text), &g); err != nil {
		return config{}, fmt.Errorf("reading the function's configuration: %w", err)
	}
	var out config
	switch kind {
	case contract.KindCheck:
		out.check = true
	case contract.KindGenerator:
		out.generators = append(g.Generators, g.Spec.Generators...) // with spec or without: nothing else stands there
	default:
		for name := range strings.SplitSeq(g.Data.Generators, ",") {
			if name = strings.TrimSpace(name); name != "" {
				out.generators = append(out.generators, name)
			}
		}
	}
	for _, name := range out.generators {
		if !slices.Contains(generators.Names(), name) {
			return out, fmt.Errorf("spec.generators: %q is no generator: one of %s", name, strings.Join(generators.Names(), ", "))
		}
	}
	return out, nil
}

// renderItems renders the TrainingJobs among items, merged with the Environment among them.
func renderItems(items []*yaml.RNode, only []string) ([]render.Bundle, error) {
	var sources []schema.Source
	for i, n := range items {
		if !isInput(n) {
			continue
		}
		text, err := n.String()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", itemName(n, i), err)
		}
		sources = append(sources, schema.Source{Name: itemName(n, i), Data: []byte(text)})
	}
	jobs, err := schema.Load(sources)
	if err != nil {
		return nil, err
	}
	return render.Jobs(jobs, only)
}

// isInput knows inputs by their group, so that the schema refuses another version, which would pass through otherwise.
func isInput(n *yaml.RNode) bool {
	group, _, _ := strings.Cut(contract.APIVersion, "/")
	return strings.HasPrefix(n.GetApiVersion(), group+"/") && (n.GetKind() == contract.KindTrainingJob || n.GetKind() == contract.KindEnvironment)
}

// itemName is the file that an item came from, or what tells it from the others.
func itemName(n *yaml.RNode, i int) string {
	if path, _, err := kioutil.GetFileAnnotations(n); err == nil && path != "" {
		return path
	}
	if name := n.GetName(); name != "" {
		return n.GetKind() + "/" + name
	}
	return "items[" + strconv.Itoa(i) + "]"
}

// merge appends the bundles' objects to the items. What an earlier run of the function made of the same jobs is
// replaced, since kpt hands a function its own output of the last time; of jobs that are not whole, only the same
// objects are, since another run may make the others.
func merge(items []*yaml.RNode, bundles []render.Bundle, whole bool) ([]*yaml.RNode, error) {
	var made []*yaml.RNode
	jobs, again := map[string]bool{}, map[string]bool{}
	for _, b := range bundles {
		jobs[b.Job.Metadata.Namespace+"/"+b.Job.Metadata.Name] = true
		for _, f := range b.Files {
			nodes, err := kio.FromBytes(f.YAML)
			if err != nil {
				return nil, fmt.Errorf("reading what was rendered: %w", err)
			}
			for i, n := range nodes {
				if err := place(n, b.Job.Metadata.Name+"/"+f.Concern+".yaml", i); err != nil {
					return nil, err
				}
				again[identity(n)] = true
			}
			made = append(made, nodes...)
		}
	}
	var out []*yaml.RNode
	for _, n := range items {
		if jobs[madeFor(n)] && (whole || again[identity(n)]) {
			continue
		}
		if isInput(n) { // stays in its repository, and is applied to no cluster
			if err := n.PipeE(yaml.SetAnnotation(localConfig, "true")); err != nil {
				return nil, fmt.Errorf("marking %s as local: %w", n.GetName(), err)
			}
		}
		out = append(out, n)
	}
	return append(out, made...), nil
}

// madeFor is the namespace and name of the job that an object was rendered from, "" where tegen did not render it.
func madeFor(n *yaml.RNode) string {
	l := n.GetLabels()
	if l["app.kubernetes.io/managed-by"] != contract.ManagedBy {
		return ""
	}
	namespace := n.GetNamespace()
	if namespace == "" {
		namespace = l["tegen.dev/namespace"]
	}
	return namespace + "/" + l["app.kubernetes.io/instance"]
}

// identity is what tells an object from every other.
func identity(n *yaml.RNode) string {
	return strings.Join([]string{n.GetApiVersion(), n.GetKind(), n.GetNamespace(), n.GetName()}, " ")
}

// place says which file kpt writes an object to.
func place(n *yaml.RNode, path string, index int) error {
	err := n.PipeE(yaml.SetAnnotation(kioutil.PathAnnotation, path))
	if err == nil {
		err = n.PipeE(yaml.SetAnnotation(kioutil.IndexAnnotation, strconv.Itoa(index)))
	}
	if err != nil {
		return fmt.Errorf("placing %s: %w", n.GetName(), err)
	}
	return nil
}

// checkItems checks the references among items that are applied.
func checkItems(items []*yaml.RNode) error {
	var text strings.Builder
	for _, n := range items {
		if n.GetAnnotations()[localConfig] == "true" || isInput(n) {
			continue
		}
		doc, err := n.String()
		if err != nil {
			return fmt.Errorf("reading %s: %w", n.GetName(), err)
		}
		text.WriteString(manifest.Separator + doc)
	}
	objects, err := manifest.Read("items", []byte(text.String()))
	if err != nil {
		return err
	}
	return render.Broken("", refs.Check(objects))
}
