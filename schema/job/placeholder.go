package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/structural"
)

// placeholder is what a copied example leaves to be filled in: <NAME> anywhere, <a name> where it is a whole text or a
// whole part of a path or list.
var placeholder = lazy.Regexp(`<[A-Z][A-Z0-9_-]+>|(?:^|[/=:,@-])(<[A-Za-z][A-Za-z0-9 _-]*>)(?:$|[/=:,@.-])`)

// tokens of models that are written like a placeholder in capitals.
var tokens = []string{"<BOS>", "<CLS>", "<EOS>", "<MASK>", "<PAD>", "<SEP>", "<UNK>"}

// Placeholders finds such in a text, and says where each starts and ends. Among the words of a program, and in its
// variables, <pad> and <end_of_turn> are tokens of a model and no placeholders: there one has a capital, a space or
// "your" in it, or is with a _ a part of a path.
func Placeholders(text string, inProgram bool) (all [][2]int) {
	if strings.IndexByte(text, '<') < 0 { // nearly all: a search is faster than the expression
		return nil
	}
	for at := 0; at < len(text); {
		m := placeholder().FindStringSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		from, to := at+m[0], at+m[1]
		if m[2] >= 0 {
			from, to = at+m[2], at+m[3]
		}
		word := text[from:to]
		inPath := from > 0 && strings.ContainsRune("/:@", rune(text[from-1])) || strings.HasPrefix(text[to:], "/")
		named := strings.ToLower(word) != word && !slices.Contains(tokens, word) || strings.Contains(word, " ") ||
			strings.Contains(word, "your") || inPath && strings.Contains(word, "_")
		if !inProgram || named {
			all = append(all, [2]int{from, to})
		}
		at = to
	}
	return all
}

// zeroID is an id or account of AWS that is all zeros, which an overlay has in the place of one that is not known yet:
// a whole value or handle, the start of a file system's name, the account of a role or of a registry of Amazon's. It
// has the form of an id, so that a job which it does not reach renders.
var zeroID = lazy.Regexp(`(?:^|:)((?:eni|fs|fsap|i|sg|snap|subnet|vol|vpc)-0{8,40})(?:$|:|\.(?:efs|fsx)\.)` +
	`|^arn:[a-z0-9:-]*:(0{12}):|^(0{12})\.dkr[.-]ecr[a-z0-9.-]*\.(?:amazonaws\.com|on\.aws)\b`)

// zeros are in every text that zeroID finds.
const zeros = "00000000"

// Unfilled names the values of the job that nobody has put in yet, be they the author's or the Environment's. A job
// that has some can be planned, and must reach no cluster. What a program is told is its own affair: vol-00000000 may
// be a file, and 000000000000 is the account of LocalStack.
func (j *Job) Unfilled() (found []string) {
	if !mayHold(reflect.ValueOf(j), zeros) { // nearly every job: its texts in order are what costs
		return nil
	}
	text, err := json.Marshal(j)
	if err != nil { // it was decoded of JSON
		panic(fmt.Errorf("reading a job again: %w", err))
	}
	var fields any
	if err := json.Unmarshal(text, &fields); err != nil {
		panic(fmt.Errorf("reading a job again: %w", err))
	}
	var walk func(value any, p *structural.Place)
	walk = func(value any, p *structural.Place) {
		switch x := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(x)) {
				walk(x[key], p.Key(key))
			}
		case []any:
			for i, item := range x {
				walk(item, p.At(i))
			}
		case string:
			if m := zeroID().FindStringSubmatch(x); m != nil && !IsProgram(p.String()) {
				found = append(found, fmt.Sprintf("%s: %s is the id of nothing: put in yours, in the job or in its "+
					"Environment", p, strings.Join(m[1:], ""))) // one of them is not empty
			}
		}
	}
	walk(fields, nil)
	return found
}

// IsProgram says whether a field is a part of what a container runs, in a job or its podTemplate.
func IsProgram(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "."), func(step string) bool {
		name, _, _ := strings.Cut(step, "[")
		return name == "command" || name == "args" || name == "env"
	})
}

// mayHold says whether a text occurs in some text of a value. Only what JSON would show of it is looked at, and what it
// would show in another way is looked at too.
func mayHold(v reflect.Value, text string) bool {
	switch v.Kind() {
	case reflect.String:
		return strings.Contains(v.String(), text)
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && mayHold(v.Elem(), text)
	case reflect.Struct:
		for _, i := range exported(v.Type()) {
			if mayHold(v.Field(i), text) {
				return true
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return bytes.Contains(v.Bytes(), []byte(text))
		}
		for i := range v.Len() {
			if mayHold(v.Index(i), text) {
				return true
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if mayHold(entries.Value(), text) {
				return true
			}
		}
	}
	return false
}

var exportedFields sync.Map // a reflect.Type to the []int of its fields that others may read

func exported(t reflect.Type) []int {
	if known, ok := exportedFields.Load(t); ok {
		return known.([]int)
	}
	fields := []int{}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() || f.Anonymous {
			fields = append(fields, i)
		}
	}
	exportedFields.Store(t, fields)
	return fields
}
