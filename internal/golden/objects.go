package golden

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// objectsFile lists the objects that no golden file contains: a line for each object with its case, kind, namespace,
// name and digest. The cases are sorted; the objects of a case are in the order in which they are rendered.
const objectsFile = "objects.txt"

// Object is one document of a YAML stream, with the separator that follows it. The texts of all objects of a stream
// are the stream, so that their digests cover every byte.
type Object struct {
	Kind, Namespace, Name string
	Text                  string
}

// Objects splits a stream of rendered objects.
func Objects(stream []byte) (all []Object, err error) {
	for text := range strings.SplitAfterSeq(string(stream), "\n---\n") {
		var head struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
		}
		if err := yaml.Unmarshal([]byte(strings.TrimSuffix(text, "---\n")), &head); err != nil {
			return nil, fmt.Errorf("reading a rendered object: %w", err)
		}
		if head.Kind == "" || head.Metadata.Name == "" {
			return nil, fmt.Errorf("reading a rendered object: no kind or no name in:\n%s", text)
		}
		all = append(all, Object{head.Kind, head.Metadata.Namespace, head.Metadata.Name, text})
	}
	return all, nil
}

// line is the object's line in the list, without its case.
func (o Object) line() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s %.8x", o.Kind, name, sha256.Sum256([]byte(o.Text)))
}

// CompareObjects compares the objects of a case with its lines in objects.txt.
func (d *Dir) CompareObjects(t testing.TB, name string, got []byte) {
	t.Helper()
	if d.objects == nil {
		d.objects = readObjects(t, filepath.Join(d.root, objectsFile))
	}
	d.seenObjects[name] = true
	objects, err := Objects(got)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	want, lines, changed := d.objects[name], []string(nil), ""
	for _, o := range objects {
		lines = append(lines, o.line())
		if !slices.Contains(want, o.line()) {
			changed += "\n" + o.Text
		}
	}
	switch {
	case slices.Equal(want, lines):
	case updating():
		d.objects[name] = lines
		d.writeObjects(t)
	default:
		t.Errorf("%s: the objects differ from those in %s (-want +got); 'make golden' accepts them and prints how "+
			"each differs; the changed objects are now:\n%s%s",
			name, filepath.Join(d.root, objectsFile), cmp.Diff(want, lines), changed)
	}
}

// OrphanObjects fails for every case in objects.txt that CompareObjects was not called with, or removes it when
// updating. It does nothing if only some of a test's cases ran.
func (d *Dir) OrphanObjects(t testing.TB) {
	t.Helper()
	if partial() {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(d.objects)) {
		if d.seenObjects[name] {
			continue
		}
		if !updating() {
			t.Errorf("%s: no case renders %s; 'make golden' removes it", filepath.Join(d.root, objectsFile), name)
		}
		delete(d.objects, name)
	}
	if updating() {
		d.writeObjects(t)
	}
}

func readObjects(t testing.TB, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && (!updating() || !errors.Is(err, fs.ErrNotExist)) {
		t.Fatal(err)
	}
	lines := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		name, object, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		lines[name] = append(lines[name], object)
	}
	return lines
}

func (d *Dir) writeObjects(t testing.TB) {
	t.Helper()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.objects)) {
		for _, object := range d.objects[name] {
			text.WriteString(name + " " + object + "\n")
		}
	}
	if err := os.WriteFile(filepath.Join(d.root, objectsFile), []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
