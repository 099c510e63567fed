package structural

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

type decoded struct {
	Name string
	In   struct {
		N    int8     `json:"n"`
		List []string `json:"list"`
	} `json:"in"`
	Self    *decoded          `json:"self"`
	Pairs   map[string][]bool `json:"pairs"`
	Any     any               `json:"any"`
	Numbers map[int]float64   `json:"numbers"`
	Pair    [2]uint           `json:"pair"`
	Time    time.Time         `json:"time"` // has UnmarshalJSON
	Raw     json.RawMessage   `json:"raw"`
	Bytes   []byte            `json:"bytes"`
	Twice   decodedTwice      `json:"twice"`
	Pointed decodedPointed    `json:"pointed"`
	Quoted  decodedQuoted     `json:"quoted"`
	Hidden  string            `json:"-"`
	hidden  string
}

type decodedPlain struct {
	Name string `json:"name"`
	More string `json:"more"`
}

type decodedTwice struct {
	decodedPlain

	Name string `json:"name"`
}

type decodedPointed struct {
	*DecodedPlain
}

// DecodedPlain is exported, since encoding/json sets no pointer to another.
type DecodedPlain struct {
	Name string `json:"name"`
}

type decodedQuoted struct {
	N int `json:"n,string"`
}

// TestDecode: every form of a Go type is filled as encoding/json fills it.
func TestDecode(t *testing.T) {
	root := parsed(t, `
name: other case
in: {n: -5, list: [a, "1", ""], unknown: {x: 1}}
self: {Name: inner, pairs: {"a.b": [true, false], "": []}, self: {}}
any: {a: [1, 2.5, x, null, {}]}
numbers: {"1": 2.5}
pair: [1, 2]
time: 2026-01-02T03:04:05Z
raw: {b: [1, "x"], a: {}}
bytes: aGVsbG8=
twice: {name: outer, more: m}
pointed: {name: p}
quoted: {n: "12"}
Hidden: x
hidden: x
`)
	var got, want decoded
	if err := json.Unmarshal(root.AppendJSON(nil), &want); err != nil {
		t.Fatal(err)
	}
	if err := root.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error(cmp.Diff(want, got, cmp.AllowUnexported(decoded{}, decodedTwice{})))
	}
	if got.Name != "other case" || got.Self.Name != "inner" || got.Twice.More != "m" || got.Pointed.Name != "p" ||
		got.Quoted.N != 12 || string(got.Bytes) != "hello" || got.hidden != "" {
		t.Errorf("%+v", got)
	}
}

// TestDecodeMismatch: what does not fit is a mistake, and what stands beside it is read.
func TestDecodeMismatch(t *testing.T) {
	for _, wrong := range []string{
		"in: 5", "in: [1]", "in: {n: 300}", "in: {n: 1.5}", "in: {n: x}", "in: {list: {}}", "in: {list: [1]}",
		"pairs: []", "pairs: {a: [1]}", "pairs: {a: x}", "self: x", "Name: 5", "Name: true", "time: never", "pair: x",
		"quoted: {n: x}",
	} {
		var got, byJSON decoded
		root := parsed(t, wrong+"\nbytes: aGVsbG8=\n")
		if json.Unmarshal(root.AppendJSON(nil), &byJSON) == nil {
			t.Errorf("%s is taken by encoding/json", wrong)
		}
		if err := root.Decode(&got); err == nil || string(got.Bytes) != "hello" {
			t.Errorf("%s: %+v, %v", wrong, got, err)
		}
	}
}

// TestDecodeDefaults: what all documents share is read once, and none gets hold of what another one has.
func TestDecodeDefaults(t *testing.T) {
	number := func(text string) *Field {
		return &Field{Name: "n", Value: &Node{Kind: yamldoc.Int, Text: text}, Schema: &Schema{Kind: yamldoc.Int}}
	}
	in := &Schema{Kind: yamldoc.Map, Fields: []*Field{number("7")}}
	self := &Schema{Kind: yamldoc.Map, Fields: []*Field{{Name: "in", create: true, Schema: in}}}
	data, err := Pack(&Schema{Kind: yamldoc.Map, Fields: []*Field{
		{Name: "in", create: true, Schema: in}, {Name: "self", create: true, Schema: self},
	}})
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := Unpack(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all [3]decoded
	for i, text := range []string{"Name: a", "Name: b", "in: {n: 1}"} {
		root := Completed(parsed(t, text), schemas[0])
		if err := root.Decode(&all[i]); err != nil {
			t.Fatal(err)
		}
	}
	all[0].Self.In.N = 0
	got := []int8{all[0].In.N, all[1].In.N, all[2].In.N, all[1].Self.In.N, all[2].Self.In.N}
	if diff := cmp.Diff([]int8{7, 7, 1, 7, 7}, got); diff != "" {
		t.Error(diff)
	}
	root := Completed(parsed(t, strings.Repeat(" ", 2)+"Name: c"), schemas[0])
	changed := root.Clone()
	changed.Field("in").Field("n").Text = "8"
	var one decoded
	if err := changed.Decode(&one); err != nil || one.In.N != 8 {
		t.Errorf("a changed copy of a default is %d, %v", one.In.N, err)
	}
}
