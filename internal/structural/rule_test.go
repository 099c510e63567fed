package structural

import (
	"strconv"
	"testing"
	"testing/fstest"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// forms are the ways in which definitions restrict a scalar.
const forms = `#Forms: {
	any?:     string
	bool?:    bool
	whole?:   int
	port?:    int & >=1024 & <=65535
	choice?:  "a" | "b" | "12"
	numbers?: 1 | 3 | 5
	mixed?:   (int & >=1 & <=4) | "auto" | "none"
	name?:    =~"^[a-z]+$"
	joined?:  =~("^[a-z]+" + "[0-9]$") & !~"b"
	path?:    =~"^(/[a-z.]+)*$" & !="" & !~"(^|/)[.][.](/|$)"
	bytes?:   (number & >=1048576) | =~"^[0-9]+Mi$"
	cpu?:     (number & >0) | =~"^[0-9]+m?$"
	other?:   #Name
	one?:     "only"
	either?:  (!~"^a" | =~"^ab")
	full?:    string & !="" & !~"^b"
}
#Name: =~"^[a-z]+$" & =~"^.{1,3}$"
`

// TestRules: of every form, and every value that could be taken for another, the rule says what CUE says.
func TestRules(t *testing.T) {
	files := fstest.MapFS{"forms.cue": {Data: []byte(forms)}}
	s := NewCompiler(files, nil, "forms.cue").Definition("#Forms")
	ctx := cuecontext.New()
	root, err := Evaluate(ctx, files, "forms.cue")
	if err != nil || len(s.Fields) != 16 {
		t.Fatalf("%d fields, %v", len(s.Fields), err)
	}
	values := []value{
		{yamldoc.Bool, "true"},
		{yamldoc.Bool, "false"},
		{yamldoc.Float, "1.5"},
		{yamldoc.Float, "1.0"},
		{yamldoc.Float, "2097152.5"},
		{yamldoc.Float, "-0.5"},
	}
	for _, n := range []string{"-1", "0", "1", "3", "4", "5", "12", "1023", "1024", "65535", "65536", "1048576"} {
		values = append(values, value{yamldoc.Int, n}, value{yamldoc.String, n})
	}
	for _, text := range []string{
		"", "a", "b", "ab1", "a1", "abc", "abcd", "auto", "none", "only", "true", "/a/b", "/../a", "/a/..", "64Mi",
		"99999999999999999999999", "a\n", "é",
	} {
		values = append(values, value{yamldoc.String, text})
	}
	for _, f := range s.Fields {
		definition := root.LookupPath(cue.MakePath(cue.Def("Forms"), cue.Str(f.Name).Optional()))
		for _, v := range values {
			want := definition.Unify(encode(t, ctx, v)).Validate(cue.Concrete(true)) == nil
			got := f.Schema.scalar.kindFits(v.Kind) && f.Schema.scalar.allows(&Node{Kind: v.Kind, Text: v.Text})
			if got != want {
				t.Errorf("%s of %+v: %t, and CUE says %t", f.Name, v, got, want)
			}
		}
	}
}

func encode(t *testing.T, ctx *cue.Context, v value) cue.Value {
	t.Helper()
	var out any = v.Text
	var err error
	switch v.Kind {
	case yamldoc.Bool:
		out = v.Text == "true"
	case yamldoc.Int:
		out, err = strconv.ParseInt(v.Text, 10, 64)
	case yamldoc.Float:
		out, err = strconv.ParseFloat(v.Text, 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ctx.Encode(out)
}
