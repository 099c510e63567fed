package krm

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/hasher"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/runfn"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// step is a function of a kustomization, and kustomize's own transformers up to the next function.
type step struct {
	function
	after []string
}

// building is a kustomization while its steps run.
type building struct {
	*kustomization
	own     variant // what the first step got is built of it
	sources []schema.Source
	options render.Options
	fenced  bool // an Environment has a fence

	dropped bool         // a Generator left no jobs to the next
	inputs  []*yaml.Node // jobs and Environments, of which each function of tegen renders
	items   []*yaml.Node // everything else, without the objects of bundles
	bundles []render.Bundle
	settled []render.Bundle // without files, since their objects are among the items
	partial []partialRun
	notes   finding.List
}

// partialRun is what some of the generators made.
type partialRun struct {
	bundles    []render.Bundle
	generators []string
	beside     []*yaml.Node // the items at that time
}

// finish runs all steps and the validators.
func (b *building) finish() (*Output, error) {
	for i, s := range b.steps {
		later := b.steps[i+1:]
		var validators []string
		if len(later) == 0 {
			validators = b.types.Validators
		}
		var text []byte
		var err error
		if s.kind == foreignFunction {
			text, err = b.executeStep(s)
		} else if err = b.renderStep(s, len(later) == 0); err == nil && len(s.after)+len(validators) > 0 {
			text, err = b.all(len(later) > 0)
		}
		if err != nil {
			return nil, err
		}
		if text != nil {
			if err := b.through(text, s.after, validators); err != nil {
				return nil, err
			}
		}
	}
	if len(b.steps) == 0 && len(b.types.Validators) > 0 {
		text, err := b.all(false)
		if err == nil {
			err = b.through(text, nil, b.types.Validators)
		}
		if err != nil {
			return nil, err
		}
	}
	return b.output()
}

func (b *building) output() (*Output, error) {
	if err := b.leftOver(); err != nil {
		return nil, err
	}
	if err := b.notePartial(); err != nil {
		return nil, err
	}
	// The objects of a job are all in files, or all among the rest.
	if renamed(b.items, b.bundles) || slices.ContainsFunc(b.bundles, func(of render.Bundle) bool {
		return bundleOf(b.settled, of) != nil
	}) {
		if err := b.settle(); err != nil {
			return nil, err
		}
	}
	rest, err := stream(b.items)
	return &Output{append(b.bundles, b.settled...), append([]byte{}, rest...), b.notes, b.behind.digest()}, err
}

// leftOver refuses inputs that a function made after the last function of tegen.
func (b *building) leftOver() error {
	var errs []error
	for _, n := range b.inputs {
		if !isLocal(n) {
			errs = append(errs, fmt.Errorf("reading %s: %s comes from a function behind the last %s and is not "+
				"rendered; list the function in front of it", relative(filepath.Join(b.dir, b.file)), title(n),
				names.KindGenerator))
		}
	}
	return errors.Join(errs...)
}

// renderStep renders the jobs among the inputs. What an earlier step rendered of the same objects is replaced.
func (b *building) renderStep(s step, last bool) error {
	cfg, err := configFor(b.options.Generators, s.config)
	if err != nil {
		return finding.List{s.mistake(fieldTransformers, err.Error())}
	}
	inputs := b.inputs
	if last {
		b.inputs = nil // nobody keeps them while they are rendered: they are larger than what is made of them
	}
	if cfg.job != nil {
		if len(b.sources) > 0 {
			return finding.List{s.mistake(fieldTransformers, "files of jobs cannot take the place of a job that is a "+
				"function; list it under resources, and a "+names.KindGenerator+" here")}
		}
		inputs = append(slices.Clone(inputs), cfg.job)
	}
	bundles, err := b.render(inputs, cfg, b.sources, b.options)
	if err != nil {
		return err
	}
	if len(bundles) == 0 && b.dropped {
		note := s.mistake(fieldTransformers, "no TrainingJob is left for it; remove jobs: drop from the Generator in "+
			"front of it")
		note.Level = finding.Note
		b.notes = append(b.notes, note)
	}
	if b.overlaps(bundles) {
		if err := b.settle(); err != nil {
			return err
		}
	}
	var notes []string
	if b.items, notes, err = keep(b.items, bundles, len(cfg.generators) == 0); err != nil {
		return err
	}
	for _, note := range notes {
		b.note(note)
	}
	if len(b.steps) > 1 || len(cfg.generators) > 0 {
		b.partial = append(b.partial, partialRun{slices.Clone(bundles), cfg.generators, b.items})
	}
	b.join(bundles)
	if cfg.dropJobs {
		b.dropped = true
		b.inputs = slices.DeleteFunc(b.inputs, func(n *yaml.Node) bool { return kind(n) == names.KindTrainingJob })
	}
	for _, n := range b.inputs {
		if err := markLocal(n); err != nil {
			return err
		}
	}
	return nil
}

func (b *building) note(text string) {
	b.notes = append(b.notes, finding.Noted(text).At(relative(filepath.Join(b.dir, b.file))))
}

// overlaps reports whether an earlier step rendered some of the objects of bundles, or may have.
func (b *building) overlaps(bundles []render.Bundle) bool {
	return slices.ContainsFunc(bundles, func(of render.Bundle) bool {
		earlier := bundleOf(b.bundles, of)
		return earlier != nil && slices.ContainsFunc(of.Files, func(f render.File) bool {
			return slices.ContainsFunc(earlier.Files, func(g render.File) bool { return f.Concern == g.Concern })
		})
	})
}

// join adds bundles to those of the steps before. A job has one.
func (b *building) join(bundles []render.Bundle) {
	if len(b.bundles) == 0 {
		b.bundles = bundles
		return
	}
	for _, of := range bundles {
		if earlier := bundleOf(b.bundles, of); earlier != nil {
			earlier.Join(of)
		} else {
			b.bundles = append(b.bundles, of)
		}
	}
}

// bundleOf is the bundle of the same job among bundles, nil if there is none.
func bundleOf(bundles []render.Bundle, of render.Bundle) *render.Bundle {
	for i := range bundles {
		if s := bundles[i].Summary; s.Name == of.Summary.Name && s.Namespace == of.Summary.Namespace {
			return &bundles[i]
		}
	}
	return nil
}

// notePartial checks what some of the generators made, together with everything that the other steps made.
func (b *building) notePartial() error {
	for i, run := range b.partial {
		var others []render.Bundle
		for j, other := range b.partial {
			if i != j {
				others = append(others, other.bundles...)
			}
		}
		notes, err := partial(b.options.Generators, run.bundles, others, slices.Concat(run.beside, b.items),
			run.generators)
		if err != nil {
			return err
		}
		for _, note := range notes {
			b.note(note)
		}
	}
	return nil
}

// settle puts the objects of bundles among the items.
func (b *building) settle() error {
	if len(b.bundles) == 0 {
		return nil
	}
	var objects bytes.Buffer
	if err := render.Write(&objects, b.bundles); err != nil {
		return fmt.Errorf("building %s: %w", b.dir, err)
	}
	var nodes []*yaml.Node
	var err error
	if renamed(b.items, b.bundles) {
		nodes, err = b.resolved(objects.Bytes())
	} else {
		nodes, err = filled(objects.Bytes())
	}
	b.items = append(b.items, nodes...)
	b.drop()
	return err
}

// drop keeps no more of bundles than their jobs, since their objects are among the items.
func (b *building) drop() {
	if len(b.settled) == 0 {
		b.settled, b.bundles = withoutFiles(b.bundles), nil
		return
	}
	for _, of := range b.bundles {
		if bundleOf(b.settled, of) == nil {
			b.settled = append(b.settled, withoutFiles([]render.Bundle{of})...)
		}
	}
	b.bundles = nil
}

// all is everything as one stream. What nothing applies is left out of it, unless inputs are for a later step.
func (b *building) all(inputs bool) ([]byte, error) {
	if renamed(b.items, b.bundles) {
		if err := b.settle(); err != nil {
			return nil, err
		}
	}
	rest, err := stream(b.items)
	if err != nil {
		return nil, err
	}
	text, err := (&Output{Bundles: b.bundles, Rest: rest}).stream()
	if err != nil || !inputs {
		b.drop()
		return text, err
	}
	b.drop()
	docs, err := texts(b.inputs)
	if len(text) > 0 {
		docs = append([]string{string(text)}, docs...)
	}
	return []byte(strings.Join(docs, manifest.Separator)), err
}

// through has kustomize's own transformers change everything.
func (b *building) through(text []byte, transformers, validators []string) error {
	b.watch()
	last := types.Kustomization{
		Resources: []string{"tegen-rendered.yaml"}, Transformers: transformers, Validators: validators,
	}
	files := map[string][]byte{"tegen-rendered.yaml": text}
	if err := configure(&last, files, b.folders(b.types)); err != nil {
		return err
	}
	nodes, err := b.kustomize(last, files)
	b.inputs, b.items = parted(nodes)
	return err
}

// executeStep runs the program of a function of somebody else over everything, and returns what comes out.
func (b *building) executeStep(s step) ([]byte, error) {
	if err := b.settle(); err != nil {
		return nil, err
	}
	docs, err := texts(slices.Concat(b.items, b.inputs))
	if err != nil {
		return nil, err
	}
	before, policies := hashed(b.items), policyNames(b.items)
	b.items, b.inputs = nil, nil
	out, err := b.execute(fieldTransformers, s.function, strings.Join(docs, manifest.Separator))
	if err != nil {
		return nil, err
	}
	after, err := filled(out)
	if err != nil {
		return nil, finding.List{s.mistake(fieldTransformers, "its output: "+err.Error())}
	}
	for id := range hashed(after) {
		delete(before, id)
	}
	for _, n := range after {
		if yamldoc.Field(annotations(n), names.Policy) != nil && !policies[identity(n)] {
			return nil, finding.List{s.mistake(fieldTransformers, "it makes the policy "+title(n)+", and policies are "+
				"read before functions run; list it under resources")}
		}
		if before[identity(n)] {
			return nil, finding.List{s.mistake(fieldTransformers, "it changes the content of "+title(n)+", whose name "+
				"ends in a hash of the content, so the name would be wrong; set disableNameSuffixHash: true for it")}
		}
	}
	return out, nil
}

// policyNames are the items that are annotated as policies.
func policyNames(items []*yaml.Node) map[string]bool {
	found := map[string]bool{}
	for _, n := range items {
		if yamldoc.Field(annotations(n), names.Policy) != nil {
			found[identity(n)] = true
		}
	}
	return found
}

// hashed are the ConfigMaps and Secrets whose name ends in the hash of their content. kustomize itself computes the
// hash when all functions have run.
func hashed(items []*yaml.Node) map[string]bool {
	found := map[string]bool{}
	for _, n := range items {
		if kind(n) != "ConfigMap" && kind(n) != "Secret" {
			continue
		}
		hash, err := (&hasher.Hasher{}).Hash(yaml.NewRNode(n))
		if err == nil && strings.HasSuffix(name(n), "-"+hash) {
			found[identity(n)] = true
		}
	}
	return found
}

// execute runs the program of a function, as kustomize does. Without input the function gets its configuration alone,
// as it does under generators.
func (k *kustomization) execute(list string, f function, input string) ([]byte, error) {
	config := yaml.NewRNode(f.config).Copy()
	if err := markLocal(config.YNode()); err != nil {
		return nil, err
	}
	text, err := config.String()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.at, err)
	}
	if input == "" {
		input = text
	}
	input = strings.ReplaceAll(input, "internal."+localConfig, localConfig)
	k.watch()
	k.behind["function "+title(f.config)] = sha256.Sum256([]byte(text + digestOfProgram(k.dir, f.spec.Exec.Path)))
	var out bytes.Buffer
	program := runfn.RunFns{
		Functions: []*yaml.RNode{config}, Input: strings.NewReader(input), Output: &out, WorkingDir: k.dir,
		EnableExec: true, DisableContainers: true,
	}
	if err := program.Execute(); err != nil {
		return nil, finding.List{f.mistake(list, "its program "+strconv.Quote(f.spec.Exec.Path)+" failed: "+err.Error()+
			"; see what it printed to standard error, or correct exec.path, which is relative to "+relative(k.dir))}
	}
	return out.Bytes(), nil
}

// digestOfProgram is a digest of a program, "" if it cannot be read: starting it reports that.
func digestOfProgram(dir, program string) string {
	if filepath.Base(program) == program {
		program, _ = exec.LookPath(program)
	} else if !filepath.IsAbs(program) {
		program = filepath.Join(dir, program)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// generate runs the functions under generators, and adds what they make to the resources. It returns the jobs among
// them, whose objects are there.
func (k *kustomization) generate(first *types.Kustomization, files map[string][]byte, sources []schema.Source,
	options render.Options,
) (settled []render.Bundle, err error) {
	first.Resources = slices.Clone(first.Resources)
	for i, f := range k.generators {
		var text bytes.Buffer
		if f.kind == ownFunction {
			if len(sources) > 0 {
				return nil, finding.List{f.mistake(fieldGenerators, "files of jobs cannot take the place of a job "+
					"that is a function; list it under resources, and a "+names.KindGenerator+" under transformers")}
			}
			bundles, err := k.generateJob(f, options, &text)
			if err != nil {
				return nil, err
			}
			settled = append(settled, withoutFiles(bundles)...)
		} else if err := k.generateBy(f, &text); err != nil {
			return nil, err
		}
		if text.Len() > 0 {
			name := fmt.Sprintf("tegen-generated-%d.yaml", i)
			first.Resources, files[name] = append(first.Resources, name), text.Bytes()
		}
	}
	return settled, nil
}

// generateJob renders a job under generators. The job itself is there for the functions that follow.
func (k *kustomization) generateJob(f function, options render.Options, into *bytes.Buffer) ([]render.Bundle, error) {
	bundles, err := k.render([]*yaml.Node{f.config}, config{job: f.config}, nil, options)
	if err != nil {
		return nil, err
	}
	if err := render.Write(into, bundles); err != nil || k.config == nil {
		return bundles, err
	}
	job := yaml.NewRNode(f.config).Copy().YNode()
	if err := markLocal(job); err != nil {
		return nil, err
	}
	text, err := texts([]*yaml.Node{job})
	if err == nil {
		into.WriteString(manifest.Separator + text[0])
	}
	return bundles, err
}

// generateBy runs a function of somebody else under generators.
func (k *kustomization) generateBy(f function, into *bytes.Buffer) error {
	out, err := k.execute(fieldGenerators, f, "")
	if err != nil {
		return err
	}
	made, err := filled(out)
	if err != nil {
		return finding.List{f.mistake(fieldGenerators, "its output: "+err.Error())}
	}
	for _, n := range made {
		for _, option := range []string{"needs-hash", "behavior"} {
			if yamldoc.Field(annotations(n), "kustomize.config.k8s.io/"+option) != nil {
				return finding.List{f.mistake(fieldGenerators, "it gives "+title(n)+" the annotation "+
					"kustomize.config.k8s.io/"+option+", which tegen does not support; remove it, or use a "+
					"configMapGenerator")}
			}
		}
	}
	text, err := stream(made)
	into.Write(text)
	return err
}
