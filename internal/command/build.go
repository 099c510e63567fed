package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// addOverlayFlag adds the flag that names overlays. more is what the command does with several.
func addOverlayFlag(cmd *cobra.Command, overlays *[]string, more string) {
	cmd.Flags().StringArrayVar(overlays, "overlay", nil,
		"directory of a kustomization with tegen among its transformers"+more)
	completeBy(cmd, "overlay", directories)
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if more == "" && len(*overlays) > 1 {
			return cli.Usagef("%s takes one --overlay, not %d", cmd.Name(), len(*overlays))
		}
		if err := checkOverlays(*overlays); err != nil {
			return err
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
}

// input is what a command renders: the jobs of files, and of those below directories, through overlays, with the
// Environment of a file, under policies.
type input struct {
	files, overlays []string
	environment     string
	policies        []string
	exec            bool // programs that overlays name may run
	generators      generators.Set
}

// addInputFlags adds the flags of commands that render jobs. more is what the command does with several overlays.
func addInputFlags(cmd *cobra.Command, in *input, more string) {
	addOverlayFlag(cmd, &in.overlays, more)
	addOptional(cmd, &in.environment, "environment", "file", "file of the Environment that is merged into every job; "+
		"an overlay names its own")
	completeBy(cmd, "environment", yamlFiles)
	addPolicyFlag(cmd, &in.policies)
	cmd.Flags().BoolVar(&in.exec, "enable-exec", false,
		"run the programs of other functions that the overlay lists, as kustomize does")
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case in.exec && len(in.overlays) == 0:
			return cli.Usagef("--enable-exec is for the functions of an overlay: add --overlay")
		case in.environment == "":
		case len(in.overlays) > 0:
			return cli.Usagef("--environment is for jobs without --overlay: list the file under resources of the " +
				"overlay, and set spec.environment in its Generator")
		case in.environment == "-" && slices.Contains(args, "-"):
			return cli.Usagef("standard input cannot be both jobs and the Environment")
		case len(args) == 0:
			return cli.Usagef("--environment needs the files of the jobs that it is for")
		}
		return before(cmd, args)
	}
}

// checkOverlays refuses an empty name, as where a script's variable is unset, and one overlay by two names.
func checkOverlays(overlays []string) error {
	for i, overlay := range overlays {
		if overlay == "" {
			return cli.Usagef("--overlay needs the name of a directory")
		}
		for _, other := range overlays[:i] {
			if resolved(other) == resolved(overlay) {
				return cli.Usagef("--overlay %s and --overlay %s are one directory: name it once", printable(other),
					printable(overlay))
			}
		}
	}
	return nil
}

// resolved is the absolute name of what a path leads to, whether or not it exists.
func resolved(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	for there := abs; ; there = filepath.Dir(there) {
		if target, err := filepath.EvalSymlinks(there); err == nil {
			rest, err := filepath.Rel(there, abs)
			if err != nil {
				return abs
			}
			return filepath.Join(target, rest)
		}
		if there == filepath.Dir(there) {
			return abs
		}
	}
}

// addOptional adds a flag that may be left out, but not be empty, as it is where a script's variable is unset: the
// command would do something else and succeed.
func addOptional(cmd *cobra.Command, value *string, flag, what, usage string) {
	cmd.Flags().StringVar(value, flag, "", usage)
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed(flag) && *value == "" {
			return cli.Usagef("--%s needs the name of a %s", flag, what)
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
}

// purpose is what is done with what is built.
type purpose struct {
	git      bool // it goes into git, as that of an overlay always does
	yamlOnly bool // its YAML and its notes alone are used, so that jobs are released once they are rendered
}

// build renders an input, through each overlay that is named, and prints the notes.
func build(s cli.Streams, in input, p purpose) ([]*krm.Output, error) {
	outs, notes, err := built(s.In, in, p)
	if err != nil {
		return nil, err
	}
	return outs, printNotes(s.Err, notes)
}

// built is build without a word: the notes are its second result. A mistake or a note that several overlays have in
// common is there once.
func built(stdin io.Reader, in input, p purpose) ([]*krm.Output, finding.List, error) {
	overlays := in.overlays
	if len(in.files) == 0 && len(overlays) == 0 {
		return nil, nil, cli.Usagef("no file given, and no --overlay with jobs of its own")
	}
	rules, err := loadPolicy(in.policies)
	if err != nil {
		return nil, nil, err
	}
	sources, err := in.read(stdin)
	if err != nil {
		return nil, nil, err
	}
	var outs []*krm.Output
	var errs []error
	under := schema.WithPolicy(rules)
	if len(overlays) == 0 {
		out := &krm.Output{}
		for _, name := range in.files {
			if info, err := os.Stat(name); err == nil && info.IsDir() {
				out.Notes = append(out.Notes, krm.Unused(name)...)
			}
		}
		out.Bundles, err = in.plain(sources, p, under)
		err = render.WithObjects(err, func(o schema.Option) error {
			_, err := in.plain(sources, p, under, o)
			return err
		})
		outs, errs = append(outs, out), append(errs, err)
	}
	for _, overlay := range overlays {
		through := krm.Build{Printed: p.yamlOnly, Exec: in.exec, Generators: in.generators}.Overlay
		out, err := through(overlay, sources, under)
		err = render.WithObjects(err, func(o schema.Option) error {
			_, err := through(overlay, sources, under, o)
			return err
		})
		outs, errs = append(outs, out), append(errs, err)
	}
	for i, out := range outs {
		// an empty render would have a reconciler delete everything
		if errs[i] == nil && len(out.Bundles) == 0 && len(out.Rest) == 0 {
			errs[i] = errors.New("nothing to render: there is no TrainingJob in the input")
		}
	}
	if err := render.AtPodTemplates(finding.Of(errors.Join(errs...)), textOf(sources)).Once().Err(); err != nil {
		return nil, nil, err
	}
	return outs, notes(outs, overlays), nil
}

// textOf returns the text of a source by its name, and reads other files once.
func textOf(sources []schema.Source) func(file string) []byte {
	texts := map[string][]byte{}
	for _, s := range sources {
		texts[s.Name] = s.Data
	}
	return func(file string) []byte {
		if _, ok := texts[file]; !ok {
			texts[file], _ = readFile(file, schema.MaxFile) // without a text, the job's own position stays
		}
		return texts[file]
	}
}

// read reads the files of jobs, and that of the Environment, which may be among them.
func (in input) read(stdin io.Reader) ([]schema.Source, error) {
	files, err := filesBelow(in.files)
	if err != nil {
		return nil, err
	}
	if in.environment != "" {
		own := resolved(in.environment)
		files = slices.DeleteFunc(files, func(name string) bool { return name != "-" && resolved(name) == own })
		files = append(files, in.environment)
	}
	sources, err := read(stdin, files, schema.MaxFile) // Load says so where there is more
	if err == nil && in.environment != "" {
		sources[len(sources)-1].Environment = schema.AnyEnvironment
	}
	return sources, err
}

// printNotes prints notes for people, a line each.
func printNotes(w io.Writer, notes finding.List) error {
	var text strings.Builder
	for _, note := range notes {
		text.WriteString(note.String() + "\n")
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("writing a note: %w", err)
	}
	return nil
}

// notes are in the order of the overlays. One that is not about all of them names those that it is about.
func notes(outs []*krm.Output, overlays []string) finding.List {
	if len(outs) == 1 {
		return notesOf(outs[0])
	}
	var all finding.List
	about := map[string][]string{}
	for i, out := range outs {
		own := slices.Clone(out.Notes)
		for _, b := range out.Bundles {
			for _, note := range b.Summary.Notes {
				own = append(own, finding.Noted(note).At(b.Summary.Position()))
			}
		}
		for _, note := range own {
			line := note.String()
			if about[line] == nil {
				all = append(all, note)
			}
			if about[line] == nil || !slices.Contains(about[line], placeOf(overlays, i)) {
				about[line] = append(about[line], placeOf(overlays, i))
			}
		}
	}
	for i, note := range all {
		if named := about[note.String()]; len(named) < len(outs) {
			all[i] = note.With(" (" + strings.Join(named, ", ") + ")")
		}
	}
	jobs := map[string]int{}
	for _, note := range all {
		jobs[saying(note)]++
	}
	return brief(all, jobs)
}

// notesOf are those of one output. Where a job stands is asked of the few that are named alone: that reads files. Jobs
// that stand in one place, as variants of a base, are named once.
func notesOf(out *krm.Output) finding.List {
	all := slices.Clone(out.Notes)
	jobs := map[string]int{}
	for _, note := range all {
		jobs[saying(note)]++
	}
	noted, placed := map[string]finding.Finding{}, map[string]bool{}
	for _, b := range out.Bundles {
		for _, text := range b.Summary.Notes {
			note, known := noted[text]
			if !known {
				note = finding.Noted(text)
				noted[text] = note
			}
			what := saying(note)
			if jobs[what] > fewJobs {
				jobs[what]++
			} else if at := b.Summary.Position(); !placed[at+" "+what] {
				placed[at+" "+what] = true
				jobs[what]++
				all = append(all, note.At(at))
			}
		}
	}
	return brief(all.Once(), jobs)
}

// saying is what a note says, wherever.
func saying(note finding.Finding) string { return note.Field + note.Message }

// fewJobs of which one thing is said are each named.
const fewJobs = 3

// brief says what more than a few jobs have in common of the first of them alone: beside hundreds of such lines nobody
// sees the others. jobs is how many have it.
func brief(all finding.List, jobs map[string]int) (out finding.List) {
	for _, note := range all {
		what := saying(note)
		switch n := jobs[what]; {
		case n < 0: // said
			continue
		case n > fewJobs:
			note = note.With(fmt.Sprintf(" (and of %d more jobs)", n-1))
			jobs[what] = -1
		}
		out = append(out, note)
	}
	return out
}

// placeOf is what an output's overlay is called, "" without one.
func placeOf(overlays []string, i int) string {
	if len(overlays) == 0 {
		return ""
	}
	return placeName(overlays[i])
}

// placeName is what an overlay is called: the last part of its name, be it a link or a dot.
func placeName(overlay string) string {
	if abs, err := filepath.Abs(overlay); err == nil {
		overlay = abs
	}
	return filepath.Base(overlay)
}

func (in input) plain(sources []schema.Source, p purpose, opts ...schema.Option) ([]render.Bundle, error) {
	load := schema.Load
	if p.git {
		load = schema.LoadForGit
	}
	jobs, err := load(sources, opts...)
	if err != nil {
		return nil, err
	}
	return render.Jobs(jobs, render.Options{Generators: in.generators, Printed: p.yamlOnly})
}

// read loads the named files, "-" being standard input. No more than limit bytes of each are read, and one more to see
// that there is more.
func read(stdin io.Reader, files []string, limit int64) ([]schema.Source, error) {
	sources := make([]schema.Source, len(files))
	for i, name := range files {
		var data []byte
		var err error
		if name == "-" {
			name = "<stdin>"
			data, err = io.ReadAll(io.LimitReader(stdin, limit+1))
		} else {
			data, err = readFile(name, limit+1)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", printable(name), err)
		}
		if wrong := yamldoc.CheckCount(printable(name), data); wrong != nil {
			return nil, finding.List{{
				Rule: "job/size", Level: finding.Error, File: wrong.Stream, Line: wrong.Line, Column: wrong.Col,
				Message: wrong.Msg,
			}}
		}
		sources[i] = schema.Source{Name: printable(name), Data: yamldoc.JoinSurrogates(data)}
	}
	return sources, nil
}

func readFile(name string, limit int64) ([]byte, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, limit))
}

// openFile opens a file to be read, and no directory.
func openFile(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close() // nothing was read
		return nil, errors.New("it is a directory: name the files in it")
	}
	return f, nil
}
