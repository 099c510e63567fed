package manifest

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// FuzzAppend: of any object of any kind, with any values, what is printed is what encoding/json makes of it, laid out
// as YAML, less what nobody filled in.
func FuzzAppend(f *testing.F) {
	kinds := typedKinds(f)
	for i := range kinds {
		f.Add(uint16(i), uint64(i), "a\nb")
	}
	f.Fuzz(func(t *testing.T, kind uint16, seed uint64, word string) {
		gvk := kinds[int(kind)%len(kinds)]
		obj, err := newTyped(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if left[word] != nil {
			t.Skip("the name of a field as a key")
		}
		g := guesser{rand.New(rand.NewPCG(seed, 0)), word}
		g.fill(reflect.ValueOf(obj).Elem(), 0)
		got := mustAppend(t, obj)
		if diff := cmp.Diff(byJSON(t, gvk, obj), got); diff != "" {
			t.Errorf("%s (-by JSON +printed):\n%s", gvk.Kind, diff)
		}
	})
}

func typedKinds(t testing.TB) (out []schema.GroupVersionKind) {
	s, err := readScheme()
	if err != nil {
		t.Fatal(err)
	}
	for gvk := range s.AllKnownTypes() {
		obj, err := newTyped(gvk)
		if err != nil {
			t.Fatal(err)
		}
		if obj != nil {
			out = append(out, gvk)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// byJSON prints by way of JSON.
func byJSON(t *testing.T, gvk schema.GroupVersionKind, obj runtime.Object) string {
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	head := "apiVersion: " + apiVersion + "\nkind: " + kind + "\n"
	d := decoder(text)
	out := without(t, d, next(d), true)
	if string(out) == "{}" {
		return head
	}
	return head + string(AppendJSON(nil, out))
}

// left are the values for which a field is left out.
var left = map[string][]string{
	"metadata": {"{}"}, "resources": {"{}"}, "strategy": {"{}"}, "updateStrategy": {"{}"}, "spec": {"{}"},
	"status": {"{}"}, "targetPort": {"0"}, "divisor": {`"0"`},
}

// without copies a JSON value without what is left out of typed objects.
func without(t *testing.T, d *json.Decoder, token json.Token, top bool) []byte {
	delim, _ := token.(json.Delim)
	if delim == 0 {
		out, err := json.Marshal(token)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var out [][]byte
	for d.More() {
		var key string
		if delim == '{' {
			key = next(d).(string)
		}
		value := without(t, d, next(d), false)
		if delim == '[' {
			out = append(out, value)
			continue
		}
		head := top && (key == "apiVersion" || key == "kind" || key == "status")
		if head || string(value) == "null" || slices.Contains(left[key], string(value)) {
			continue
		}
		quoted, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, append(append(quoted, ':'), value...))
	}
	next(d)
	end := map[json.Delim]string{'{': "}", '[': "]"}[delim]
	return append(append([]byte(delim.String()), bytes.Join(out, []byte(","))...), end...)
}

// odd has what encoding/json is asked for: fields to choose among, quoted ones, methods, values without an order.
type odd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Plain    oddPlain          `json:"plain"`
	Twice    oddTwice          `json:"twice"`
	Quoted   oddQuoted         `json:"quoted"`
	Embedded oddPointer        `json:"embedded"`
	Numbers  map[int]float64   `json:"numbers"`
	Bytes    map[string][]byte `json:"bytes"`
	Any      map[string]any    `json:"any"`
	Wait     []metav1.Duration `json:"wait"`
	Pairs    [2]oddPlain       `json:"pairs"`
	Zero     time.Time         `json:"zero,omitzero"`
	Hidden   string            `json:"-"`
	hidden   string
}

func (*odd) DeepCopyObject() runtime.Object { return nil }

type oddPlain struct {
	Name  string
	Count uint8 `json:",omitempty"`
}

type oddTwice struct {
	oddPlain

	Name int
}

type oddQuoted struct {
	N int `json:"n,string"`
}

type oddPointer struct {
	*oddPlain

	B bool `json:"b"`
}

// TestAppendOdd: a type that has anything but simple fields is printed as encoding/json reads it.
func TestAppendOdd(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "x.io", Version: "v1", Kind: "Odd"}
	full := &odd{
		TypeMeta: metav1.TypeMeta{APIVersion: "x.io/v1", Kind: "Odd"},
		Plain:    oddPlain{"no", 7},
		Twice:    oddTwice{oddPlain{"hidden", 3}, 5},
		Quoted:   oddQuoted{12},
		Embedded: oddPointer{&oddPlain{"e", 1}, true},
		Numbers:  map[int]float64{10: 1e30, 9: 0.5},
		Bytes:    map[string][]byte{"a": []byte("text"), "none": nil},
		Any: map[string]any{
			"z": []any{nil, 1.5, "a\nb", map[string]any{}, json.Number("1e5"), new(int8(3))}, "none": nil, "b": true,
		},
		Wait:   []metav1.Duration{{Duration: time.Minute}},
		Zero:   time.Unix(1, 0).UTC(),
		Hidden: "x", hidden: "x",
	}
	for _, obj := range []*odd{full, {TypeMeta: full.TypeMeta}} {
		if diff := cmp.Diff(byJSON(t, gvk, obj), mustAppend(t, obj)); diff != "" {
			t.Errorf("(-by JSON +printed):\n%s", diff)
		}
	}
	full.Any["f"] = func() {}
	if out, err := Append([]byte("x"), full); err == nil || string(out) != "x" {
		t.Errorf("printing a function: %q, %v", out, err)
	}
}

// TestAppendKeys: what looks like a field that nobody filled in is an entry where an author chose the key.
func TestAppendKeys(t *testing.T) {
	const want = "apiVersion: v1\nkind: ConfigMap\ndata:\n  divisor: \"0\"\n  status: \"\"\n"
	got := mustAppend(t, &corev1.ConfigMap{Data: map[string]string{"divisor": "0", "status": ""}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// guesser fills values by chance.
type guesser struct {
	*rand.Rand

	word string
}

var spellings = []string{
	"", "yes", "y", "null", "~", "0", "08", "1e3", "0x1f", "12:30", "2001-01-01", " a", "a ", "a: b", "a #b", "#", "-",
	"- a", "--x", "a\n", "a\nb", "\na", "a\n\n", "a\tb", "\u00e9", "\u2028", "\ufeff", "\x00", "\xff\xfe", "\\",
	"'\"", "a\r\nb", "{}", "[]", "<a&b>", "\U0001f600", "true", ".5", "a\n b\n", strings.Repeat("x", 1200),
	strings.Repeat("a b ", 60),
}

func (g guesser) text() string {
	if g.IntN(4) == 0 {
		return g.word
	}
	return spellings[g.IntN(len(spellings))]
}

func (g guesser) fill(v reflect.Value, depth int) {
	if g.IntN(8) < 2+depth/2 { // mostly not at the top, and always far below
		return
	}
	switch x := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*x = *resource.NewScaledQuantity(g.Int64N(1<<40), resource.Scale(g.IntN(12)-6))
		if g.IntN(2) == 0 {
			*x = resource.MustParse([]string{"0", "1Gi", "500m", "1e3", "0.5", "123456789123456789123"}[g.IntN(6)])
		}
		return
	case *metav1.Time:
		x.Time = time.Unix(g.Int64N(1<<33), g.Int64N(1e9))
		return
	case *metav1.MicroTime:
		x.Time = time.Unix(g.Int64N(1<<33), g.Int64N(1e9))
		return
	case *intstr.IntOrString:
		*x = intstr.FromInt32(g.Int32N(3))
		if g.IntN(2) == 0 {
			*x = intstr.FromString(g.text())
		}
		return
	case *metav1.FieldsV1:
		x.SetRawString(`{"f:a":{".":{},"b":[1,"2\n",[true]]}}`)
		return
	case *runtime.RawExtension:
		x.Raw = []byte(`{"z":1.5e30,"a":["x",{"k":"no"},[]]}`)
		return
	}
	g.fillKind(v, depth)
}

func (g guesser) fillKind(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				g.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		g.fill(v.Elem(), depth)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), g.IntN(4), 4))
		for i := range v.Len() {
			g.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range g.IntN(4) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(g.text())
			g.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(g.text())
	case reflect.Bool:
		v.SetBool(g.IntN(2) == 0)
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(g.Int64N(1<<31) >> g.IntN(31) * int64(g.IntN(3)-1))
	case reflect.Uint8:
		v.SetUint(g.Uint64N(256))
	default:
		panic("no value for a " + v.Type().String())
	}
}
