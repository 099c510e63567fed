package krm

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/fn/runtime/runtimeutil"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/tegen-dev/tegen/internal/dochead"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// The fields of a kustomization that list functions.
const (
	fieldTransformers = "transformers"
	fieldGenerators   = "generators"
	fieldValidators   = "validators"
)

// function is the configuration of a function that a kustomization lists.
type function struct {
	text   string // as kustomize gets it: the name of its file, or the configuration itself
	at     string // its position
	config *yaml.Node
	kind   functionKind
	spec   *runtimeutil.FunctionSpec // how kustomize starts it, nil if it has no annotation
}

type functionKind int

const (
	builtinFunction functionKind = iota // a part of kustomize
	ownFunction                         // tegen, whatever program its annotation names
	foreignFunction
)

// listed reads the functions of a list, in the order in which kustomize runs them: those that are written in the
// kustomization come before those in files.
func (k *kustomization) listed(list string, entries []string) (all []function, err error) {
	var inline, named, configs []function
	for i, entry := range entries {
		found, err := k.entry(list, i, entry)
		if err != nil {
			return nil, err
		}
		configs = append(configs, found...)
		if found, err = inTurn(entry, found); err != nil {
			return nil, err
		}
		if strings.Contains(entry, "\n") {
			inline = append(inline, found...)
		} else {
			named = append(named, found...)
		}
	}
	return append(inline, named...), checkNames(list, configs)
}

// entry reads the functions that an entry of a list holds or names.
func (k *kustomization) entry(list string, index int, entry string) (found []function, err error) {
	text, file, at := []byte(entry), "", "a function in "+relative(filepath.Join(k.dir, k.file))
	if !strings.Contains(entry, "\n") {
		file = filepath.Join(k.dir, entry)
		at = relative(file)
		info, err := os.Stat(file)
		if err != nil {
			return nil, fmt.Errorf("reading a transformer of the overlay: %w", err)
		}
		if info.IsDir() {
			return k.directoryOfFunctions(entry)
		}
		if text, err = readRegular(file); err != nil {
			return nil, fmt.Errorf("reading a transformer of the overlay: %w", err)
		}
		if !within(k.dir, file) {
			return nil, fmt.Errorf("reading %s: %s: %s is outside of its directory: kustomize takes files "+
				"from there alone; put it there, or name the directory that holds it",
				filepath.Join(k.dir, k.file), list, entry)
		}
	}
	docs, err := filled(text) // of any form: kustomize refuses what is no object
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", at, err)
	}
	for _, n := range docs {
		f, err := functionOf(n)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", at, err)
		}
		if f.at = fmt.Sprintf("%s:%d:%d", at, n.Line, n.Column); file == "" {
			f.at = positionIn(filepath.Join(k.dir, k.file), list, index)
		}
		found = append(found, f)
	}
	return found, nil
}

// inTurn gives kustomize an entry as it is, unless other functions are among those that it stands for. Then each has
// its own configuration, because tegen runs what is between them.
func inTurn(entry string, found []function) ([]function, error) {
	if !slices.ContainsFunc(found, func(f function) bool { return f.kind != builtinFunction }) {
		return []function{{text: entry}}, nil
	}
	for i := range found {
		text, err := texts([]*yaml.Node{found[i].config})
		if err != nil {
			return nil, err
		}
		found[i].text = text[0]
	}
	return found, nil
}

// directoryOfFunctions builds the configurations that a directory holds, without any function.
func (k *kustomization) directoryOfFunctions(entry string) (found []function, err error) {
	dir := filepath.Join(k.dir, entry)
	built, err := run(overlaidFS{FileSystem: filesys.MakeFsOnDisk()}, dir)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", relative(dir), err)
	}
	for _, n := range built.ToRNodeSlice() {
		f, err := functionOf(n.YNode())
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", relative(dir), err)
		}
		f.at = relative(dir)
		found = append(found, f)
	}
	return found, nil
}

// functionOf tells tegen's functions and those of others from kustomize's own.
func functionOf(n *yaml.Node) (f function, err error) {
	f.config = n
	h := headOf(n)
	switch key, problem := h.Problem(); {
	case h.Class() == dochead.Broken && h.APIVersion+h.Kind != "": // of any other form: kustomize refuses it
		return f, fmt.Errorf("%s: %s", key, problem)
	case h.APIVersion == konfig.BuiltinPluginApiVersion, h.Class() == dochead.Broken:
		return f, nil
	case h.Class() == dochead.Config && h.APIVersion != names.APIVersion:
		return f, fmt.Errorf("apiVersion: must be %s, not %q", names.APIVersion, h.APIVersion)
	}
	if err := checkObject(n, h.Kind); err != nil {
		return f, err
	}
	f.kind = foreignFunction
	if f.spec, err = runtimeutil.GetFunctionSpec(yaml.NewRNode(n)); err != nil {
		return f, fmt.Errorf("%s: %w", title(n), err)
	}
	if h.Class() == dochead.Config || h.Class() == dochead.Input || h.Kind == "ConfigMap" && f.startsTegen() {
		f.kind = ownFunction
	}
	return f, nil
}

// startsTegen reports whether a function's program, or the image of its container, is called tegen.
func (f *function) startsTegen() bool {
	name := f.program()
	return name == "tegen" || name == "tegen-fn"
}

// program is the name of a function's program, or of the image of its container; "" if there is none.
func (f *function) program() string {
	if f.spec == nil {
		return ""
	}
	if f.spec.Container.Image == "" {
		return path.Base(filepath.ToSlash(f.spec.Exec.Path))
	}
	image, _, _ := strings.Cut(path.Base(f.spec.Container.Image), ":")
	image, _, _ = strings.Cut(image, "@")
	return image
}

// replacedPrograms notes the functions of tegen for which kustomize would run another program. Programs of all versions
// begin with the name.
func (k *kustomization) replacedPrograms() (notes finding.List) {
	for _, s := range k.steps {
		if name := s.program(); s.kind == ownFunction && name != "" && !strings.HasPrefix(name, "tegen") {
			note := s.mistake(fieldTransformers, "kustomize runs "+name+" for it, and tegen renders it without; to "+
				"run the program, give its configuration another kind")
			note.Level = finding.Note
			notes = append(notes, note)
		}
	}
	return notes
}

// checkNames refuses two configurations of one kind and name, as kustomize does.
func checkNames(list string, all []function) error {
	first := map[string]function{}
	var errs finding.List
	for _, f := range all {
		if kind(f.config) == "" { // kustomize refuses it
			continue
		}
		id := anyVersion(identity(f.config))
		if other, ok := first[id]; ok {
			errs = append(errs, f.mistake(list, "another "+kind(f.config)+" of this name is at "+other.at+
				", and kustomize refuses two; give each a different metadata.name"))
		} else {
			first[id] = f
		}
	}
	return errs.Err()
}

// mistake is an error about a function.
func (f *function) mistake(list, message string) finding.Finding {
	out := finding.Finding{
		Rule: "overlay/function", Level: finding.Error,
		Message: list + ": " + title(f.config) + ": " + message,
	}
	return out.At(f.at)
}

// foreign is an error if tegen does not run a function of somebody else, nil if it does.
func (f *function) foreign(list string, exec bool) finding.List {
	refuse := func(message string) finding.List { return finding.List{f.mistake(list, message)} }
	switch {
	case f.spec == nil:
		return refuse("it has no annotation config.kubernetes.io/function, and tegen runs no plugins of kustomize's " +
			"plugin directory; add the annotation with exec, or remove the entry")
	case f.spec.Container.Image != "":
		return refuse("tegen does not run its container " + f.spec.Container.Image + ", since rendering uses no " +
			"network; install its program and name it under exec, build the overlay with kustomize, or remove the " +
			"entry")
	case f.spec.Exec.Path == "":
		return refuse("its annotation config.kubernetes.io/function names no program; add exec: {path: PROGRAM}, or " +
			"remove the entry")
	case !exec:
		return refuse("tegen does not run its program " + strconv.Quote(f.spec.Exec.Path) + " by default; add " +
			"--enable-exec if you trust the overlay, or remove the entry")
	}
	return nil
}

// refuseFunctions refuses functions where tegen does not run them: among validators, and in kustomizations that do not
// list tegen.
func (k *kustomization) refuseFunctions() error {
	runs := map[string]bool{}
	k.eachNested(func(n *kustomization) { runs[n.dir] = true })
	var errs finding.List
	for _, f := range k.folders(k.types) {
		of := kustomization{dir: f.dir, file: f.file}
		lists := map[string][]string{fieldValidators: f.types.Validators}
		if !runs[f.dir] {
			lists[fieldTransformers], lists[fieldGenerators] = f.types.Transformers, f.types.Generators
		}
		for _, list := range []string{fieldGenerators, fieldTransformers, fieldValidators} {
			found, err := of.listed(list, lists[list])
			if err != nil {
				return err
			}
			for _, fn := range found {
				if fn.kind != builtinFunction {
					errs = append(errs, fn.mistake(list, k.misplaced(list)))
				}
			}
		}
	}
	return errs.Err()
}

// misplaced is why tegen does not run a function, and what to do.
func (k *kustomization) misplaced(list string) string {
	if list == fieldValidators {
		return "kustomize accepts no function here, because its runner changes what it validates; list it under " +
			"transformers"
	}
	return "tegen runs functions of a kustomization only if that lists a " + names.KindGenerator + " under " +
		"transformers, and of no component; move it to " + relative(filepath.Join(k.dir, k.file))
}

// eachNested visits a kustomization and those below it that run functions.
func (k *kustomization) eachNested(visit func(*kustomization)) {
	visit(k)
	for _, below := range k.nested {
		below.eachNested(visit)
	}
}

// readFunctions reads what a kustomization lists, and refuses what tegen does not run.
func (k *kustomization) readFunctions() error {
	generators, err := k.listed(fieldGenerators, k.types.Generators)
	if err != nil {
		return err
	}
	transformers, err := k.listed(fieldTransformers, k.types.Transformers)
	if err != nil {
		return err
	}
	k.types.Generators = nil
	for _, f := range generators {
		switch {
		case f.kind == builtinFunction:
			k.types.Generators = append(k.types.Generators, f.text)
		case f.kind == ownFunction && kind(f.config) != names.KindTrainingJob:
			return finding.List{f.mistake(fieldGenerators, "kustomize gives it no TrainingJobs here; list it under "+
				"transformers")}
		default:
			k.generators = append(k.generators, f)
		}
	}
	for _, f := range transformers {
		switch {
		case f.kind == ownFunction && kind(f.config) == names.KindCheck: // Overlay checks all that comes out
		case f.kind != builtinFunction:
			k.steps = append(k.steps, step{function: f})
			if f.kind == ownFunction && k.config == nil {
				k.config = f.config
			}
		case len(k.steps) == 0:
			k.before = append(k.before, f.text)
		default:
			last := &k.steps[len(k.steps)-1]
			last.after = append(last.after, f.text)
		}
	}
	return nil
}

// refuseForeign refuses functions of others unless they may run.
func (k *kustomization) refuseForeign(exec bool) error {
	var errs finding.List
	k.eachNested(func(n *kustomization) {
		for _, f := range n.generators {
			if f.kind == foreignFunction {
				errs = append(errs, f.foreign(fieldGenerators, exec)...)
			}
		}
		for _, s := range n.steps {
			if s.kind == foreignFunction {
				errs = append(errs, s.foreign(fieldTransformers, exec)...)
			}
		}
	})
	return errors.Join(k.refuseFunctions(), errs.Err())
}

// positionIn is the position of an item of a list in a file.
func positionIn(file, list string, index int) string {
	text, err := readRegular(file)
	if err != nil {
		return relative(file)
	}
	root, err := parse(yamldoc.Document{Line: 1, Text: text})
	if err != nil {
		return relative(file)
	}
	items := yamldoc.Target(yamldoc.Field(root, list))
	if items == nil || index >= len(items.Content) {
		return relative(file)
	}
	return fmt.Sprintf("%s:%d:%d", relative(file), items.Content[index].Line, items.Content[index].Column)
}
