package importer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// view is a value of an object, which knows where it is. The zero view is nothing, and everything below it too.
type view struct {
	object *object
	path   []string // an index is "[0]"
	value  any
}

func (v view) at(keys ...string) view {
	for _, key := range keys {
		m, _ := v.value.(tree)
		v = view{v.object, append(v.path[:len(v.path):len(v.path)], key), m[key]}
	}
	return v
}

func (v view) items() []view {
	list, _ := v.value.([]any)
	out := make([]view, len(list))
	for i, item := range list {
		out[i] = view{v.object, append(v.path[:len(v.path):len(v.path)], "["+strconv.Itoa(i)+"]"), item}
	}
	return out
}

// item is the item of a list whose key has a value.
func (v view) item(key, value string) view {
	for i, item := range listOf(v.value) { // without a view of each: lists may be long, and many items looked up
		if m, ok := item.(tree); ok && textOf(m[key]) == value {
			return view{v.object, append(v.path[:len(v.path):len(v.path)], "["+strconv.Itoa(i)+"]"), item}
		}
	}
	return view{object: v.object, path: v.path}
}

func (v view) isSet() bool { return v.value != nil }

// text is a scalar as its text, "" for anything else.
func (v view) text() string { return textOf(v.value) }

func textOf(value any) string {
	switch x := value.(type) {
	case string:
		return x
	case nil, tree, []any:
		return ""
	default:
		return fmt.Sprint(x)
	}
}

func (v view) texts() []string {
	var out []string
	for _, item := range v.items() {
		out = append(out, item.text())
	}
	return out
}

func (v view) number() (int64, bool) {
	n, err := strconv.ParseInt(v.text(), 10, 64)
	return n, err == nil
}

func (v view) isTrue() bool { return v.value == true }

func (v view) mapping() tree {
	m, _ := v.value.(tree)
	return m
}

// key is the place, as sets have it.
func (v view) key() string { return v.object.String() + "\n" + strings.Join(v.path, "\n") }

// markTranslated says that a draft keeps the meaning of a value in another form, which the comparison would not find.
func (v view) markTranslated() {
	if v.isSet() {
		v.object.translated[strings.Join(v.path, "\n")] = struct{}{}
	}
}

// suppressReport is markTranslated for a value that is reported as an error elsewhere. A list of words is compared as
// one.
func (v view) suppressReport() {
	if n := len(v.path); n > 1 && strings.HasPrefix(v.path[n-1], "[") && !isTree(v.value) {
		v.path = v.path[:n-1]
	}
	v.markTranslated()
	if n := len(v.path); n > 0 && (v.path[n-1] == "command" || v.path[n-1] == "args") { // the words of one program
		for _, name := range []string{"command", "args"} {
			view{v.object, append(v.path[:n-1:n-1], name), true}.markTranslated()
		}
	}
}

func isTree(value any) bool {
	_, ok := value.(tree)
	return ok
}

func (v view) note(verdict Verdict, format string, args ...any) Note {
	value := ""
	if len(v.path) > 0 { // a whole object has its name
		value = summary(v.value)
	}
	if v.secret() {
		value = redacted
	}
	at := v.object.written(v.path)
	return Note{
		File: v.object.Stream(), Line: v.object.Line(at), Chart: v.object.Template(), Object: v.object.String(),
		Field: dotted(at), Value: value, Verdict: verdict, Why: fmt.Sprintf(format, args...),
	}
}

func dotted(path []string) string { return yamldoc.Path(path).String() }

// walk follows a path with indices.
func (v view) walk(steps []string) view {
	for _, s := range steps {
		list, isList := v.value.([]any)
		if !isList {
			v = v.at(s)
			continue
		}
		i, ok := indexIn(s, len(list))
		if !ok {
			return view{object: v.object, path: v.path}
		}
		v = view{v.object, append(v.path[:len(v.path):len(v.path)], s), list[i]}
	}
	return v
}

// indexIn reads a step "[0]" into a list of a length. In a mapping, such a step is a key.
func indexIn(s string, length int) (int, bool) {
	if !strings.HasPrefix(s, "[") || !strings.HasSuffix(s, "]") {
		return 0, false
	}
	i, err := strconv.Atoi(s[1 : len(s)-1])
	return i, err == nil && i >= 0 && i < length
}

func listOf(value any) []any {
	list, _ := value.([]any)
	return list
}
