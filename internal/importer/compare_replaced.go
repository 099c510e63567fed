package importer

import "slices"

// replaceWith says that another object takes an object's place: replacement returns it in the object's own form once
// all is rendered, and is nil where there is none.
func (o *object) replaceWith(why string, replacement func() tree) {
	o.replacedBy, o.replacement = why, replacement
	for _, v := range []view{o.view().at("apiVersion"), o.view().at("kind"), o.view().at("metadata", "name")} {
		v.markTranslated()
	}
}

// replaced reports what took an object's place, and each field that the replacement lacks.
func (o *object) replaced() []Note {
	notes := []Note{o.note(Translated, "%s", o.replacedBy)}
	var replacement tree
	if o.replacement != nil {
		replacement = o.replacement()
	}
	have, want := clone(o.Object).(tree), clone(replacement).(tree)
	applyDefaults(want)
	for _, object := range []tree{have, want} {
		for _, pod := range []view{view{value: object}.at("spec"), view{value: object}.at("spec", "template", "spec")} {
			if pod.at("containers").isSet() {
				resolveMounts(pod.mapping())
			}
		}
	}
	for _, g := range slices.DeleteFunc(diff(have, want, nil), func(g gap) bool { return o.isTranslated(g.steps()) }) {
		if dotted(g.steps()) == "metadata.namespace" {
			continue // it was found in the job's
		}
		notes = append(notes, g.note(o, "its replacement lacks it"))
	}
	return notes
}
