package job

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestPlaceholders: what nobody has filled in is found, and a model's tokens are not taken for it.
func TestPlaceholders(t *testing.T) {
	for text, want := range map[string][2]int{ // how many anywhere, and how many in a program
		"<YOUR-BUCKET>":                    {1, 1},
		"s3://<bucket_name>/data":          {1, 1},
		"/data/<user_name>":                {1, 1},
		"--user=<your_name>":               {1, 1},
		"registry/<a name>":                {1, 1},
		"<image>":                          {1, 0},
		"<end_of_turn>":                    {1, 0},
		"--mask=<extra_id_0>":              {1, 0},
		"--pad=<PAD>":                      {1, 0},
		"a < b > c":                        {0, 0},
		"<s>,<unk>,<NAME>":                 {3, 1},
		"--tokens=<PAD>,<REGISTRY>/<MASK>": {3, 1},
	} {
		if got := [2]int{len(Placeholders(text, false)), len(Placeholders(text, true))}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestMayHold: a text is found wherever JSON would show it, and nowhere else.
func TestMayHold(t *testing.T) {
	word := "a fs-00000000 b"
	type embedded struct{ Text string }
	for name, c := range map[string]struct {
		value any
		want  bool
	}{
		"text":                 {word, true},
		"pointer":              {&word, true},
		"no pointer":           {(*string)(nil), false},
		"list":                 {[]string{"", word}, true},
		"mapping":              {map[string]string{"key": word}, true},
		"list of mappings":     {[]map[string][]string{{"key": {word}}}, true},
		"anything":             {map[string]any{"key": []any{1, word}}, true},
		"JSON":                 {json.RawMessage(`{"key":"` + word + `"}`), true},
		"part of another":      {struct{ embedded }{embedded{word}}, true},
		"field":                {struct{ A, B any }{1, embedded{word}}, true},
		"field of nobody else": {struct{ text string }{word}, false},
		"number":               {100000000, false},
		"other texts":          {[]any{"0000000", map[string]string{word: "key"}, json.RawMessage(`"0"`)}, false},
		"job":                  {&Job{Spec: Spec{Images: Images{AWS: word}}}, true},
		"another job":          {&Job{Spec: Spec{Image: "fs-0000"}}, false},
	} {
		if got := mayHold(reflect.ValueOf(c.value), zeros); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
