// Package krm is the interface to kustomize and kpt: a list of resources in, the same list with every TrainingJob's
// objects appended out. It holds the KRM function, and builds a kustomization that has the function in this process.
// kustomize discards a function's results, so they are also in the error.
package krm

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/dochead"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/schema"
)

// Run is the KRM function: a ResourceList in, a ResourceList out. On an error it has the items as they were and results
// that say why. Input that is no ResourceList gives an error alone.
//
// kustomize discards the results, so what the function itself has to note is printed to notes too. set is the
// generators that there are.
func Run(set generators.Set, in []byte, out, notes io.Writer) error {
	l, err := readList(in)
	if err != nil {
		return fmt.Errorf("reading the ResourceList: %w", err)
	}
	l.generators = set
	bundles, results, failure := l.process()
	if failure != nil {
		results, failure = l.failed(failure)
	}
	if err := l.answer(results); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	if err := l.write(out, bundles); err != nil {
		return fmt.Errorf("writing the ResourceList: %w", err)
	}
	for _, note := range l.notes {
		if _, err := fmt.Fprintln(notes, "note: "+note); err != nil {
			return fmt.Errorf("writing a note: %w", err)
		}
	}
	return failure
}

// process does what the configuration says: a Generator renders the TrainingJobs among the items, a TrainingJob renders
// itself, a Check only checks references; none at all is a Generator. On an error the items stay as they are.
func (l *list) process() ([]render.Bundle, framework.Results, error) {
	config, err := configFor(l.generators, l.config)
	if err != nil {
		return nil, nil, err
	}
	rules, err := policyAmong(l.items)
	if err != nil {
		return nil, nil, err
	}
	if config.check {
		return nil, nil, errors.Join(checkItems(l.items), judge(l.items, nil, rules))
	}
	if err := errors.Join(moved(l.items), hidden(l.items)); err != nil {
		return nil, nil, err
	}
	inputs := slices.DeleteFunc(slices.Clone(l.items), l.isConfig)
	// kustomize hands a generator its configuration as an item too.
	if config.job != nil && !slices.ContainsFunc(l.items, config.isJob) {
		inputs = append(inputs, config.job)
	}
	options := render.Options{Generators: l.generators}
	bundles, err := renderItems(inputs, config, nil, options, schema.WithPolicy(rules))
	if err != nil {
		return nil, nil, render.WithObjects(err, func(o schema.Option) error {
			bundles, err := renderItems(inputs, config, nil, options, schema.WithPolicy(rules), o)
			if err != nil {
				return err
			}
			return judge(l.items, bundles, rules)
		})
	}
	var results framework.Results
	var unfilled []error
	for _, b := range bundles {
		for _, what := range b.Summary.Unfilled {
			unfilled = append(unfilled, errors.New(b.Summary.Name+": "+what))
		}
		for _, note := range b.Summary.Notes {
			results = append(results, &framework.Result{
				Message:  b.Summary.Name + ": " + note,
				Severity: framework.Info,
			})
		}
	}
	if err := errors.Join(unfilled...); err != nil {
		return nil, nil, err
	}
	kept, notes, err := keep(l.items, bundles, len(config.generators) == 0)
	if err != nil {
		return nil, nil, err
	}
	if err := judge(kept, bundles, rules); err != nil {
		return nil, nil, err
	}
	more, err := partial(l.generators, bundles, nil, kept, config.generators)
	if err != nil {
		return nil, nil, err
	}
	for _, note := range append(notes, more...) {
		results = append(results, &framework.Result{Message: note, Severity: framework.Info})
		l.notes = append(l.notes, note)
	}
	if config.dropJobs {
		kept = slices.DeleteFunc(kept, func(n *yaml.Node) bool {
			return isInput(n) && kind(n) == names.KindTrainingJob
		})
	}
	for _, n := range kept {
		if isInput(n) {
			if err := markLocal(n); err != nil {
				return nil, nil, err
			}
		}
	}
	l.items = kept
	return bundles, results, nil
}

// failed makes results of an error, and one error of them all, since kustomize shows no results.
func (l *list) failed(err error) (framework.Results, error) {
	var results framework.Results
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, one := range several.Unwrap() {
			more, err := l.failed(one)
			results, errs = append(results, more...), append(errs, err)
		}
		return results, errors.Join(errs...)
	}
	var mistakes schema.Errors
	if !errors.As(err, &mistakes) {
		for _, line := range strings.Split(err.Error(), "\n") {
			results = append(results, &framework.Result{Message: line, Severity: framework.Error})
		}
		return results, err
	}
	items := map[string]*yaml.ResourceIdentifier{}
	for i, n := range slices.Backward(l.items) { // the first of a name wins
		items[itemName(n, i)] = &yaml.ResourceIdentifier{
			TypeMeta: yaml.TypeMeta{APIVersion: apiVersion(n), Kind: kind(n)},
			NameMeta: yaml.NameMeta{Name: name(n), Namespace: namespace(n)},
		}
	}
	for _, m := range mistakes {
		results = append(results, &framework.Result{
			Message:     m.Msg,
			Severity:    framework.Error,
			Field:       &framework.Field{Path: m.Path},
			ResourceRef: items[m.File], // none where it is in the configuration
			File:        &framework.File{Path: m.File},
			Tags:        map[string]string{"rule": m.Rule},
		})
	}
	return results, withoutLines(mistakes, "")
}

// withoutLines are mistakes of items, after some words: kustomize and kpt print items anew, so that their lines are not
// a file's.
func withoutLines(mistakes schema.Errors, words string) error {
	list := mistakes.Findings()
	for i, f := range list {
		f.Object, f.File, f.Line, f.Column = f.File, "", 0, 0
		f.Text, f.Message = words+f.String(), words+f.Message
		list[i] = f
	}
	return list
}

// config is what a function's configuration says.
type config struct {
	check       bool
	generators  []string
	environment string // the name of the Environment that applies; any other is a mistake
	dropJobs    bool   // in place of marking them as local
	job         *yaml.Node
}

// isConfig reports whether an item is the configuration itself, which kpt has among the files of a package.
func (l *list) isConfig(n *yaml.Node) bool {
	return l.config != nil && headOf(n).Class() == dochead.Config && identity(n) == identity(l.config)
}

// isJob says whether an item is the job that the configuration is.
func (c config) isJob(n *yaml.Node) bool {
	return isInput(n) && kind(n) == names.KindTrainingJob && name(n) == name(c.job) && namespace(n) == namespace(c.job)
}

// generatorConfig is a Generator; a ConfigMap with the same names under data is kpt's short form of it.
type generatorConfig struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   any      `json:"metadata"`
	Generators []string `json:"generators"`
	Spec       struct {
		Generators  []string `json:"generators"`
		Environment string   `json:"environment"`
		Jobs        string   `json:"jobs"`
	} `json:"spec"`
	Data struct {
		Generators  string `json:"generators"`
		Environment string `json:"environment"`
	} `json:"data"`
}

// configFor is a configuration whose generators are those of a set.
func configFor(set generators.Set, n *yaml.Node) (config, error) {
	c, err := parseConfig(n)
	if err != nil {
		return c, err
	}
	for _, name := range c.generators {
		if !slices.Contains(set.Names(), name) {
			return c, fmt.Errorf("spec.generators: %q is no generator: one of %s", name,
				strings.Join(set.Names(), ", "))
		}
	}
	return c, nil
}

func parseConfig(n *yaml.Node) (config, error) {
	if n == nil || len(n.Content) == 0 {
		return config{}, nil
	}
	kind, version := kind(n), apiVersion(n)
	switch {
	case headOf(n).Class() == dochead.Input && kind == names.KindTrainingJob:
		return config{job: n}, nil
	case headOf(n).Class() == dochead.Input:
		return config{}, fmt.Errorf("the function's configuration is an %s: add it to the items, and "+
			"configure the function with a %s with spec.environment: %s", kind, names.KindGenerator, name(n))
	case version == names.APIVersion && (kind == names.KindGenerator || kind == names.KindCheck), kind == "ConfigMap":
	default:
		return config{}, fmt.Errorf("the function's configuration is a %s of %s: must be %s, %s or %s of %s%s", kind,
			version, names.KindGenerator, names.KindCheck, names.KindTrainingJob, names.APIVersion,
			spelling.Suggest(kind, []string{names.KindGenerator, names.KindCheck, names.KindTrainingJob}))
	}
	text, err := texts([]*yaml.Node{n})
	if err != nil {
		return config{}, fmt.Errorf("reading the function's configuration: %w", err)
	}
	var g generatorConfig
	if err := sigsyaml.UnmarshalStrict([]byte(text[0]), &g); err != nil {
		return config{}, fmt.Errorf("reading the function's configuration: %w", err)
	}
	var out config
	switch kind {
	case names.KindCheck:
		out.check = true
	case names.KindGenerator:
		out.generators = append(g.Generators, g.Spec.Generators...) // with spec or without: the rest is metadata
		out.environment = g.Spec.Environment
		switch g.Spec.Jobs {
		case "", "keep":
		case "drop":
			out.dropJobs = true
		default:
			return out, fmt.Errorf("spec.jobs: must be keep or drop, not %q", g.Spec.Jobs)
		}
	default:
		out.environment = g.Data.Environment
		for name := range strings.SplitSeq(g.Data.Generators, ",") {
			if name = strings.TrimSpace(name); name != "" {
				out.generators = append(out.generators, name)
			}
		}
	}
	if out.environment == schema.AnyEnvironment {
		return out, errors.New("spec.environment: must be the name of an Environment, not *")
	}
	return out, nil
}

// renderItems renders the TrainingJobs among items, merged with the Environment among them that the configuration
// names. place, if any, returns where a job was written, "" if that is unknown. kustomize and kpt print items anew, so
// an item's own lines mean nothing. kustomize and kpt write for git, as overlays do.
func renderItems(items []*yaml.Node, cfg config, place func(name, namespace string) string, options render.Options,
	opts ...schema.Option,
) ([]render.Bundle, error) {
	environment, named := cfg.environmentAmong(items)
	var sources []schema.Source
	for i, n := range items {
		if isInput(n) {
			sources = append(sources, schema.Source{Name: itemName(n, i), Root: n, Environment: environment})
		}
	}
	jobs, err := schema.LoadForGit(sources, opts...)
	if err == nil && !named {
		err = fmt.Errorf("spec.environment: no Environment is called %q: list its file under resources, or correct "+
			"the name", cfg.environment)
	}
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		j.AddInput(cfg.generators...)
		j.WithoutPolicy() // its objects are checked once all transformers have run
		// nothing else of the job is kept
		item, name, namespace := j.Source(), strings.Clone(j.Metadata.Name), strings.Clone(j.Metadata.Namespace)
		j.Relocate(func() string {
			if place != nil {
				if at := place(name, namespace); at != "" {
					return at
				}
			}
			return item
		})
	}
	options.Only = cfg.generators
	return render.Jobs(jobs, options)
}

// checkItems checks the references among items that are applied.
func checkItems(items []*yaml.Node) error {
	applied := slices.DeleteFunc(slices.Clone(items), func(n *yaml.Node) bool {
		class := headOf(n).Class() // a mistake is for manifest.Read
		return class == dochead.Input || class == dochead.Config || class == dochead.Foreign && isLocal(n)
	})
	docs, err := texts(applied)
	if err != nil {
		return err
	}
	objects, err := manifest.Read("items", []byte(strings.Join(docs, manifest.Separator)))
	if err != nil {
		return err
	}
	return errors.Join(render.Judge("", objects, nil), render.Changed(objects).Err())
}

// environmentAmong is the name that the configured Environment has among items, and whether it is there. kustomize's
// namePrefix and nameSuffix rename the Environment and the jobs, and not the configuration. So without one of that very
// name the only one counts whose name has it between a prefix and a suffix that all jobs have too.
func (c config) environmentAmong(items []*yaml.Node) (string, bool) {
	if c.environment == "" {
		return "", true
	}
	var renamed []string
	for _, n := range items {
		switch {
		case !isInput(n) || kind(n) != names.KindEnvironment:
		case name(n) == c.environment:
			return c.environment, true
		default:
			prefix, suffix, found := strings.Cut(name(n), c.environment)
			if found && !slices.ContainsFunc(items, func(job *yaml.Node) bool {
				return isInput(job) && kind(job) == names.KindTrainingJob &&
					(!strings.HasPrefix(name(job), prefix) || !strings.HasSuffix(name(job), suffix))
			}) {
				renamed = append(renamed, name(n))
			}
		}
	}
	if len(renamed) == 1 {
		return renamed[0], true
	}
	return c.environment, false
}
