package schema

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

var ownKinds = []string{names.KindTrainingJob, names.KindEnvironment}

// isImported reports whether 'tegen import' makes jobs of a kind: of those that it renders.
func isImported(kind string) bool {
	return slices.ContainsFunc(Targets, func(t Target) bool { return t.workload() == kind })
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
	hint := ""
	if imported {
		hint = "; 'tegen import' makes a TrainingJob of a " + kind.Text
	}
	switch {
	case version == nil:
		fail("apiVersion", "required", "required field is missing: %s", names.APIVersion)
	case version.Text != names.APIVersion:
		fail("apiVersion", "kind", "must be %s, not %s%s", names.APIVersion, version.Show(), hint)
	}
	if kind == nil {
		fail("kind", "required", "required field is missing: one of %s", strings.Join(ownKinds, ", "))
	} else {
		fail("kind", "kind", "must be one of %s, not %s", strings.Join(ownKinds, ", "), kind.Show())
	}
	return append(errs, nameErrors(root)...)
}

// nameErrors looks at nothing else of the metadata: what else stands there is another kind's.
func nameErrors(root *structural.Node) Errors {
	n, s, at := root.Field("metadata"), jobSchema().Field("metadata").Schema, (*structural.Place)(nil).Key("metadata")
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
