package importer

import "slices"

// give says that something else takes an object's place. heir is that in the object's own form, asked for once all is
// rendered; nil where nothing does.
func (o *object) give(why string, heir func() tree) {
	o.becomes, o.heir = why, heir
	for _, v := range []view{o.view().at("apiVersion"), o.view().at("kind"), o.view().at("metadata", "name")} {
		v.moved()
	}
}

// replaced tells what took an object's place, and each field that it did not take over.
func (o *object) replaced() []Note {
	notes := []Note{o.note(Translated, "%s", o.becomes)}
	var heir tree
	if o.heir != nil {
		heir = o.heir()
	}
	have, want := clone(o.Object).(tree), clone(heir).(tree)
	fill(want)
	for _, object := range []tree{have, want} {
		for _, pod := range []view{view{value: object}.at("spec"), view{value: object}.at("spec", "template", "spec")} {
			if pod.at("containers").given() {
				resolveMounts(pod.mapping())
			}
		}
	}
	for _, g := range slices.DeleteFunc(diff(have, want, nil), func(g gap) bool { return o.knows(g.steps()) }) {
		if dotted(g.steps()) == "metadata.namespace" {
			continue // it was found in the job's
		}
		notes = append(notes, g.note(o, "its replacement lacks it"))
	}
	return notes
}
