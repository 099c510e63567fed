package importer

// texts are the mappings and lists of which the API takes nothing but strings.
var texts = map[string]bool{
	"labels": true, "annotations": true, "nodeSelector": true, "matchLabels": true,
	"command": true, "args": true,
}

// textFields are fields that are strings wherever they are, and a variable's value is one too.
var textFields = map[string]bool{"name": true, "namespace": true, "key": true, "image": true, "claimName": true}

// stringify puts quotes where the author forgot them, around what was written: an API server refuses the object, or
// drops the value.
func stringify(v view) (notes []Note) {
	quote := func(child view, put func(string)) {
		switch child.value.(type) {
		case bool, int64, float64:
			note := child.note(Error,
				"must be a string, and is %s, which an API server refuses or drops: it was put in quotes",
				kindOfScalar(child.value))
			if text := child.object.Text(child.path); text != "" {
				note.Value = text
			}
			notes = append(notes, note)
			put(note.Value)
		default:
			notes = append(notes, stringify(child)...)
		}
	}
	last := ""
	if len(v.path) > 0 {
		last = v.path[len(v.path)-1]
	}
	switch x := v.value.(type) {
	case tree:
		for _, key := range sortedKeys(x) {
			isEnv := key == "value" && x["name"] != nil && len(v.path) > 1 && v.path[len(v.path)-2] == "env"
			if child := v.at(key); texts[last] || textFields[key] || isEnv {
				quote(child, func(text string) { x[key] = text })
			} else {
				notes = append(notes, stringify(child)...)
			}
		}
	case []any:
		for i, child := range v.items() {
			if texts[last] {
				quote(child, func(text string) { x[i] = text })
			} else {
				notes = append(notes, stringify(child)...)
			}
		}
	}
	return notes
}

func kindOfScalar(value any) string {
	if _, ok := value.(bool); ok {
		return "a boolean"
	}
	return "a number"
}
