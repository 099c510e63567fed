package importer_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// TestMain collects garbage less often: importing allocates much and holds little, and a third of the time went there.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// unread are the fixtures with what import tells, and does not read: podTemplate of the pods that serve the rendezvous,
// and settings of those that fetch.
var unread = map[string]bool{
	"roles-companion": true, "roles-etcd": true,
}

// TestFixtures holds import against every job that the project shows: what a fixture renders is imported, and the
// imported jobs render the same bytes, with nothing lost and nothing to say.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/valid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if unread[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := renderedFixture(t, name)
			out := importer.Jobs([]schema.Source{{Name: "rendered.yaml", Data: want}})
			for _, n := range out.Notes {
				t.Error(n)
			}
			got := rendered(t, out.YAML)
			if bytes.Equal(want, got) {
				return
			}
			for _, place := range differences(t, string(want), string(got)) {
				t.Errorf("%s; internal/importer must read this field of what is rendered", place)
			}
			t.Errorf("imported as\n%s(-rendered +rendered after import):\n%s", out.YAML,
				cmp.Diff(string(want), string(got)))
		})
	}
}

// TestDifferences: the message of a failed round trip shows each place that differs, and where in a long value.
func TestDifferences(t *testing.T) {
	t.Parallel()
	const before = "kind: A\nmetadata: {name: x}\nspec: {a: 1, list: [{p: 1}, {p: 2}], text: %s1}\n---\nkind: " +
		"B\nmetadata: {name: y}\n"
	const after = "kind: A\nmetadata: {name: x}\nspec: {b: 1, list: [{p: 1}, {p: 3}], text: %s2}\n"
	long := strings.Repeat("abcdefghij", 30)
	got := differences(t, fmt.Sprintf(before, long), fmt.Sprintf(after, long))
	want := []string{
		`A x: spec.a: rendered "1", after import nothing`,
		`A x: spec.list[1].p: rendered "2", after import "3"`,
		`A x: spec.text: rendered "…abcdefghij1", after import "…abcdefghij2"`,
		`A x: spec.b: rendered nothing, after import "1"`,
		`B y: kind: rendered "B", after import nothing`,
		`B y: metadata.name: rendered "y", after import nothing`,
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// differences are the places at which two streams of objects differ, each with both values.
func differences(t *testing.T, before, after string) (out []string) {
	t.Helper()
	scalars := func(stream string) map[string]string {
		all := map[string]string{}
		for _, object := range documents(t, stream) {
			metadata, _ := object["metadata"].(map[string]any)
			walk(object, "", "", func(path, _, value string) {
				all[fmt.Sprintf("%v %v: %s", object["kind"], metadata["name"], path)] = value
			})
		}
		return all
	}
	was, is := scalars(before), scalars(after)
	for _, place := range slices.Sorted(maps.Keys(was)) {
		if value, ok := is[place]; !ok {
			out = append(out, fmt.Sprintf("%s: rendered %q, after import nothing", place, was[place]))
		} else if value != was[place] {
			a, b := cutToDifference(was[place], value)
			out = append(out, fmt.Sprintf("%s: rendered %q, after import %q", place, a, b))
		}
	}
	for _, place := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[place]; !ok {
			out = append(out, fmt.Sprintf("%s: rendered nothing, after import %q", place, is[place]))
		}
	}
	return out
}

// cutToDifference leaves of two texts ten characters before the first that differs, and all behind.
func cutToDifference(a, b string) (string, string) {
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	if same <= 10 {
		return a, b
	}
	return "…" + a[same-10:], "…" + b[same-10:]
}

func renderedFixture(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../fixtures/valid/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return rendered(t, text)
}

func rendered(t *testing.T, jobs []byte) []byte {
	t.Helper()
	loaded, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: jobs}})
	if err != nil {
		t.Fatalf("%v\n%s", err, jobs)
	}
	bundles, err := render.Jobs(loaded, render.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, jobs)
	}
	var b bytes.Buffer
	if err := render.Write(&b, bundles); err != nil {
		t.Fatal(err)
	}
	return digests.ReplaceAll(b.Bytes(), nil)
}

// digests are of documents, and an imported job is another document.
var digests = regexp.MustCompile(`(?m)^    tegen\.dev/input: .*\n`)

// TestImageOfRelease: an image stays named where it is that of the release that imports, since another release has
// another.
func TestImageOfRelease(t *testing.T) {
	const image = "ghcr.io/acme/tegen-rendezvous:1.0.0"
	text := renderedFixture(t, "companion-etcd")
	if !bytes.Contains(text, []byte("image: "+image+"\n")) {
		t.Fatalf("the fixture has another image than %s", image)
	}
	names.ReleasedRendezvous = image
	t.Cleanup(func() { names.ReleasedRendezvous = "" })
	out := importer.Jobs([]schema.Source{{Name: "bundle.yaml", Data: text}})
	if !bytes.Contains(out.YAML, []byte("rendezvous: "+image)) {
		t.Errorf("the image is not named in\n%s", out.YAML)
	}
}
