package structural

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

const definitions = `package zoo

import "list"

// An animal.
#Animal: {
	// Name of the animal. It is unique.
	name!: =~"^[a-z]+$" @must("lower-case letters")
	// Number of its legs.
	legs?: int & >=0 & <=8
	// What it eats.
	food?: "grass" | "meat"
	// Weight of the animal.
	weight?: #Weight
	// Names of its children.
	children?: [...string]
	// Where it lives.
	home?: #Home
	// Anything else.
	notes?: {...}
	// Words of others for it.
	aliases?: [string]: string
	// Size of the home it had before.
	before?: int
	// Size of the home it gets.
	after?: int
	// What it is called.
	called?: #Called
	// What its toys are called.
	toys?: [#Called]: int
	// Days of its walks.
	walks?: [...int] & list.MinItems(1) & list.MaxItems(3) & list.UniqueItems() @few(requires,"names no ",
		"day") @many(range,"has {} days, above 3")
	// Where it sleeps.
	bed?: #Bed
}

#Called: =~"^[a-z]+$" & !~"^it$" & #NoDog @must("lower-case letters")

#NoDog: !~"^dog." @refuse(reserved,"{} is of a dog")

#Bed: #Beds & matchN(1, [{box!: _}, {tree!: _}])

#Beds: {
	// Number of a box.
	box?: int
	// Number of a tree.
	tree?: int
}

#Home: matchN(<=1, [{cage!: _}, {field!: _}]) & #House

#House: {
	// Number of a cage.
	cage?: int
	// Size of a field.
	field?: int
	// Whether it is heated.
	heated?: bool
}

#Weight: =~"^[0-9]+kg$" @format(even) @must("an even weight such as 4kg")
`

const defaults = `package zoo

#Effective: #Animal & {
	legs:   *4 | _
	food:   *"grass" | _
	home?: heated: *false | _
	before: *after | _
	after:  *before | _
}
`

func zoo(t *testing.T) *Schema {
	t.Helper()
	files := fstest.MapFS{"zoo.cue": {Data: []byte(definitions)}, "defaults.cue": {Data: []byte(defaults)}}
	even := func(text string) bool { return strings.ContainsRune("02468", rune(text[len(text)-3])) }
	s := NewCompiler(files, map[string]func(string) bool{"even": even}, "zoo.cue").Definition("#Animal")
	if err := AddDefaults(s, files, "defaults.cue"); err != nil {
		t.Fatal(err)
	}
	return s
}

func parsed(t *testing.T, text string) *Node {
	t.Helper()
	docs, errs := Split(Source{Name: "f", Data: []byte(text)})
	if errs != nil {
		t.Fatal(errs)
	}
	d := Parse(docs[0])
	if d.Errs != nil {
		t.Fatal(d.Errs)
	}
	return d.Root
}

// TestCheck: a mistake of each sort is reported once, at its place, with what would be right, and leaves out of the
// tree what cannot be decoded.
func TestCheck(t *testing.T) {
	s := zoo(t)
	for _, c := range []struct{ text, want, left string }{
		{"{name: cow, legs: 4, home: {cage: 1}}", "", `{"name":"cow","legs":4,"home":{"cage":1}}`},
		{"{legs: 4}", "f:1:1: name: required field is missing: Name of the animal", `{"legs":4}`},
		{"{name: Cow}", `f:1:8: name: must be lower-case letters, not "Cow"`, `{}`},
		{"{name: 5}", `f:1:8: name: must be lower-case letters, not 5`, `{}`},
		{
			"{name: cow, children: [a, 5]}",
			`f:1:27: children[1]: must be a string, not an integer: write "5" with quotes`,
			`{"name":"cow","children":["a"]}`,
		},
		{"{name: cow, legs: 9, food: fish}", "f:1:19: legs: must be an integer from 0 to 8, not 9\n" +
			`f:1:28: food: must be one of grass, meat, not "fish"`, `{"name":"cow"}`},
		{
			"{name: cow, food: maet}", `f:1:19: food: must be one of grass, meat, not "maet"; did you mean "meat"?`,
			`{"name":"cow"}`,
		},
		{"{name: cow, leg: 4}", `f:1:13: leg: unknown field; did you mean "legs"?`, `{"name":"cow","leg":4}`},
		{"{name: cow, weight: 3kg}", `f:1:21: weight: must be an even weight such as 4kg, not "3kg"`, `{"name":"cow"}`},
		{
			"{name: cow, weight: https://me:word@x}",
			`f:1:21: weight: must be an even weight such as 4kg, not "https://***@x"`, `{"name":"cow"}`,
		},
		{
			"{name: cow, home: {cage: 1, field: 2}}",
			"f:1:29: home.field: only one of cage, field may be given; cage stands on line 1",
			`{"name":"cow","home":{"cage":1,"field":2}}`,
		},
		{"{name: cow, called: it}", `f:1:21: called: must be lower-case letters, not "it"`, `{"name":"cow"}`},
		{"{name: cow, called: dogs}", "f:1:21: called: dogs is of a dog", `{"name":"cow","called":"dogs"}`},
		{
			"{name: cow, toys: {dogs: x, Dog: 1}}",
			"f:1:20: toys.dogs: dogs is of a dog\nf:1:29: toys.Dog: is not a key: lower-case letters",
			`{"name":"cow","toys":{}}`,
		},
		{"{name: cow, walks: []}", "f:1:20: walks: names no day", `{"name":"cow","walks":[]}`},
		{
			"{name: cow, walks: [1, 1, 2, 3]}",
			"f:1:20: walks: has 4 days, above 3\nf:1:24: walks[1]: 1 is listed twice",
			`{"name":"cow","walks":[1,1,2,3]}`,
		},
		{"{name: cow, walks: [a]}", `f:1:21: walks[0]: must be an integer, not "a"`, `{"name":"cow","walks":[]}`},
		{"{name: cow, bed: {}}", "f:1:13: bed: one of box, tree is needed", `{"name":"cow","bed":{}}`},
		{"{name: cow, home: 3}", "f:1:19: home: must be a mapping, not an integer: write {cage: 3}", `{"name":"cow"}`},
		{"{name: cow, home: 3 m}", "f:1:19: home: must be a mapping, not a string", `{"name":"cow"}`},
		{
			"{name: cow, children: ann bob}", "f:1:23: children: must be a list, not a string: write [ann, bob]",
			`{"name":"cow"}`,
		},
		{
			"{name: cow, children: ann -np 16 no 1e3 a1}",
			"f:1:23: children: must be a list, not a string: write [ann, -np, '16', no, '1e3', a1]",
			`{"name":"cow"}`,
		},
		{"{name: cow, children: 'ann; bob'}", "f:1:23: children: must be a list, not a string", `{"name":"cow"}`},
		{"{name: cow, home: [], notes: {a: null}}", "f:1:19: home: must be a mapping, not a list\n" +
			"f:1:34: notes.a: has no value: write one", `{"name":"cow"}`},
		{
			"{name: cow, aliases: {a/b: 1}}",
			`f:1:28: aliases["a/b"]: must be a string, not an integer: write "1" with quotes`,
			`{"name":"cow","aliases":{}}`,
		},
	} {
		root, checker := parsed(t, c.text), Checker{}
		checker.Check(root, s, nil, root.At)
		root.Without(checker.Bad)
		if diff := cmp.Diff(c.want, checker.Errs.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
		if left := string(root.AppendJSON(nil)); left != c.left {
			t.Errorf("%s: left is %s, want %s", c.text, left, c.left)
		}
	}
}

// TestComplete: what the author wrote stays, a reference takes the other field's value, and two fields that refer to
// each other and are both left out have none.
func TestComplete(t *testing.T) {
	s := zoo(t)
	for text, want := range map[string]string{
		"{name: cow}":                 `{"name":"cow","legs":4,"food":"grass"}`,
		"{name: emu, legs: 2}":        `{"name":"emu","legs":2,"food":"grass"}`,
		"{name: cow, home: {}}":       `{"name":"cow","home":{"heated":false},"legs":4,"food":"grass"}`,
		"{name: cow, after: 7}":       `{"name":"cow","after":7,"legs":4,"food":"grass","before":7}`,
		"{name: cow, before: 7, a: }": `{"name":"cow","before":7,"a":null,"legs":4,"food":"grass","after":7}`,
	} {
		root := parsed(t, text)
		root = Completed(root, s)
		if got := string(root.AppendJSON(nil)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if n := root.Entry("legs"); strings.Contains(text, "legs") != (n.At.Line > 0) ||
			root.IsSet("legs") != (n.At.Line > 0) {
			t.Errorf("%s: a default has position %v", text, n.At)
		}
	}
}

// TestMerge: mappings merge field by field; a list, and a mapping of alternatives, is one value.
func TestMerge(t *testing.T) {
	s := zoo(t)
	const below = "{legs: 2, children: [b], home: {field: 5}, aliases: {x: y}}"
	for _, c := range []struct {
		override bool
		want     string
	}{
		{false, `{"name":"cow","children":["a"],"home":{"cage":1},"aliases":{"v":"w","x":"y"},"legs":2}`},
		{true, `{"name":"cow","children":["b"],"home":{"field":5},"aliases":{"v":"w","x":"y"},"legs":2}`},
	} {
		root := parsed(t, "{name: cow, children: [a], home: {cage: 1}, aliases: {v: w}}")
		Merge(root, parsed(t, below).MarkMerged(), s, c.override)
		if got := string(root.AppendJSON(nil)); got != c.want {
			t.Errorf("override %t: %s, want %s", c.override, got, c.want)
		}
		if !root.Field("legs").Merged || root.Field("name").Merged {
			t.Error("what was merged is not marked, or all is")
		}
	}
}

func TestExplain(t *testing.T) {
	s := zoo(t)
	hint := func(_, name string, known []string) string { return spelling.Suggest(name, known) }
	at, below, err := s.Explain("home", hint)
	want := Explanation{Path: "home", Doc: "Where it lives.", Type: "a mapping with at most one of cage, field"}
	if diff := cmp.Diff(want, at); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if len(below) != 3 || below[2].Default != "false" {
		t.Errorf("below: %+v", below)
	}
	for path, want := range map[string]string{
		"home.cag":    `home.cag: unknown field; did you mean "cage"?`,
		"legs.number": "legs is one value and has no fields",
		"notes.a":     "notes takes any field",
	} {
		if _, _, err := s.Explain(path, hint); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if f, _, _ := s.Explain("after", hint); f.Default != "as before" {
		t.Errorf("a reference: %+v", f)
	}
}

// TestErrorf: a mistake stands at the value, at the parent's key where the field is missing, and a key's at the key.
func TestErrorf(t *testing.T) {
	root := parsed(t, "name: cow\nhome:\n  cage: 1\nchildren: [a,\n b]\naliases:\n  a/b: c\n")
	root.Add("legs", Position{}, &Node{Kind: yamldoc.Int, Text: "4"})
	for path, want := range map[string]string{
		"home.cage": "f:3:9", "home.field": "f:2:1", "children[1]": "f:5:2", "children[7]": "f:4:1", "legs": "f:1:1",
		`aliases["a/b"]`: "f:7:8", "": "f:1:1",
	} {
		if got := root.Errorf(path, "r", "m").Error(); !strings.HasPrefix(got, want+": ") {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := root.KeyErrorf("aliases", "a/b", "r", "is bad").Error(); got != `f:7:3: aliases["a/b"]: is bad` {
		t.Errorf("a key: %s", got)
	}
}
