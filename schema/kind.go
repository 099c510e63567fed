package schema

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/dochead"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/target"
)

var ownKinds = []string{names.KindTrainingJob, names.KindEnvironment}

// isImported reports whether 'tegen import' makes jobs of a kind: of those that it renders.
func isImported(kind string) bool {
	return slices.ContainsFunc(target.All, func(t target.Target) bool { return t.Workload() == kind })
}

// kindOf says what a document is, or is most likely meant to be: its schema then says what is wrong with the rest.
// Where that cannot be known, the errors are all that is wrong with its head.
func kindOf(root *structural.Node) (string, Errors) {
	if root.Kind != yamldoc.Map {
		return "",
			Errors{root.Errorf("", "kind", "must be a mapping with apiVersion, kind, metadata and spec, not %s",
				structural.KindWord(root.Kind))}
	}
	version, kind := root.Field("apiVersion"), root.Field("kind")
	if kind != nil && slices.Contains(ownKinds, kind.Text) {
		return kind.Text, nil
	}
	own := version != nil && strings.HasPrefix(version.Text, strings.Split(names.APIVersion, "/")[0]+"/")
	imported := kind != nil && !own && isImported(kind.Text)
	if kind != nil && !imported {
		if meant := spelling.Nearest(kind.Text, ownKinds); meant != "" {
			return meant, nil
		}
	}
	return "", headErrors(root, imported)
}

// headErrors are the mistakes in apiVersion, kind and name of a document that is nothing of ours.
func headErrors(root *structural.Node, imported bool) (errs Errors) {
	fail := func(path, rule, format string, args ...any) {
		errs = append(errs, root.Errorf(path, rule, format, args...))
	}
	version, kind := root.Field("apiVersion"), root.Field("kind")
	var keys dochead.Head
	for _, f := range root.Fields {
		keys.Keys = append(keys.Keys, f.Key)
	}
	hint := ""
	if imported {
		hint = "; 'tegen import' makes a TrainingJob of a " + kind.Text
	}
	switch {
	case version == nil:
		fail("apiVersion", "required", "required field is missing: %s%s", names.APIVersion, keys.Hint("apiVersion"))
	case version.Text != names.APIVersion:
		fail("apiVersion", "kind", "must be %s, not %s%s", names.APIVersion, version.Show(), hint)
	}
	switch {
	case kind == nil:
		fail("kind", "required", "required field is missing: one of %s%s", strings.Join(ownKinds, ", "),
			keys.Hint("kind"))
	case kind.Text == names.KindGenerator || kind.Text == names.KindCheck:
		fail("kind", "kind", "must be one of %s, not %s, which configures the function: list its file under "+
			"transformers of a kustomization", strings.Join(ownKinds, ", "), kind.Show())
	default:
		fail("kind", "kind", "must be one of %s, not %s", strings.Join(ownKinds, ", "), kind.Show())
	}
	return append(errs, nameErrors(root)...)
}

// nameErrors looks at nothing else of the metadata: what else stands there is another kind's.
func nameErrors(root *structural.Node) Errors {
	n, s, at := root.Field("metadata"), definition.Job().Field("metadata").Schema,
		(*structural.Place)(nil).Key("metadata")
	if n != nil && n.Kind == yamldoc.Map {
		n, s, at = n.Field("name"), s.Field("name").Schema, at.Key("name")
	}
	if n == nil {
		return Errors{root.Errorf("metadata.name", "required", "required field is missing")}
	}
	c := newChecker(names.KindTrainingJob)
	c.Check(n, s, at, root.At)
	return c.Errs
}

// misplaced refuses an Environment that nobody named, since it would change every job, and a job in the file of the
// Environment.
func misplaced(root *structural.Node, kind, named string) Errors {
	if kind != names.KindEnvironment {
		if named == AnyEnvironment {
			return Errors{root.Errorf("kind", "kind", "is in the file of the Environment: put jobs into another file")}
		}
		return nil
	}
	name := root.Below("metadata", "name")
	if named == AnyEnvironment || name != nil && named != "" && named == name.Text {
		return nil
	}
	own := "NAME"
	if name != nil {
		own = name.Text
	}
	return Errors{root.Errorf("kind", "environment", "no option selects this Environment: move it to a separate file "+
		"and use --environment FILE; in an overlay, set spec.environment: %s in its Generator", own)}
}

// lacking reports the sources whose Environment is not there.
func lacking(sources []Source) (errs Errors) {
	for _, src := range sources {
		if src.Environment == AnyEnvironment {
			errs = append(errs, Error{File: src.Name, Line: 1, Col: 1, Rule: "empty", Msg: "no Environment is in it"})
		}
	}
	return errs
}
