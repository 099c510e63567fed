package schema

import (
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

var ownKinds = []string{names.KindTrainingJob, names.KindEnvironment}

// isImported reports whether 'tegen import' makes jobs of a kind: of those that it renders.
func isImported(kind string) bool {
	return slices.ContainsFunc(Targets, func(t Target) bool { return t.workload() == kind })
}

// kindOf says what a document is, or is most likely meant to be: its schema then says what is wrong with the rest. Where
// that cannot be known, the errors are all that is wrong with its head.
func kindOf(root *node) (string, Errors) {
	if root.kind != mapKind {
		return "", Errors{root.fail("", "kind", "must be a mapping with apiVersion, kind, metadata and spec, not %s", kindWords[root.kind])}
	}
	version, kind := root.field("apiVersion"), root.field("kind")
	if kind != nil && slices.Contains(ownKinds, kind.text) {
		return kind.text, nil
	}
	own := version != nil && strings.HasPrefix(version.text, strings.Split(names.APIVersion, "/")[0]+"/")
	imported := kind != nil && !own && isImported(kind.text)
	if kind != nil && !imported {
		if meant := nearest(kind.text, ownKinds); meant != "" {
			return meant, nil
		}
	}
	return "", headErrors(root, imported)
}

// headErrors are the mistakes in apiVersion, kind and name of a document that is nothing of ours.
func headErrors(root *node, imported bool) (errs Errors) {
	fail := func(path, rule, format string, args ...any) {
		errs = append(errs, root.fail(path, rule, format, args...))
	}
	version, kind := root.field("apiVersion"), root.field("kind")
	hint := ""
	if imported {
		hint = "; 'tegen import' makes a TrainingJob of a " + kind.text
	}
	switch {
	case version == nil:
		fail("apiVersion", "required", "required field is missing: %s", names.APIVersion)
	case version.text != names.APIVersion:
		fail("apiVersion", "kind", "must be %s, not %s%s", names.APIVersion, version.show(), hint)
	}
	if kind == nil {
		fail("kind", "required", "required field is missing: one of %s", strings.Join(ownKinds, ", "))
	} else {
		fail("kind", "kind", "must be one of %s, not %s", strings.Join(ownKinds, ", "), kind.show())
	}
	return append(errs, nameErrors(root)...)
}

// nameErrors looks at nothing else of the metadata: what else stands there is another kind's.
func nameErrors(root *node) Errors {
	n, s, at := root.field("metadata"), jobShape().field("metadata").shape, &place{name: "metadata"}
	if n != nil && n.kind == mapKind {
		n, s, at = n.field("name"), s.field("name").shape, &place{parent: at, name: "name"}
	}
	if n == nil {
		return Errors{root.fail("metadata.name", "required", "required field is missing")}
	}
	var c checker
	c.check(n, s, at, root.at)
	return c.errs
}
