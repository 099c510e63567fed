package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a test whose errors are kept; nothing in this package calls its other methods.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, format)
	_ = args
}

const (
	one = "kind: A\nmetadata:\n  name: x\n"
	two = "kind: B\nmetadata:\n  name: z\n  namespace: ns\ndata:\n  a: |\n    ---\n    b\n"
)

func list(t *testing.T, dir string) *Dir {
	t.Helper()
	return &Dir{root: dir, seen: map[string]bool{}, seenObjects: map[string]bool{}}
}

// TestCompareObjects: the list holds every byte, the order and the number of objects, for each case alone.
func TestCompareObjects(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TEGEN_UPDATE", "1")
	first := list(t, dir)
	first.CompareObjects(t, "b/base", []byte(one))
	first.CompareObjects(t, "a/base", []byte(one+"---\n"+two))
	text, err := os.ReadFile(filepath.Join(dir, objectsFile))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		lines = append(lines, line[:strings.LastIndexByte(line, ' ')])
	}
	if got := strings.Join(lines, ", "); got != "a/base A x, a/base B ns/z, b/base A x" {
		t.Errorf("the list is of %s", got)
	}
	t.Setenv("TEGEN_UPDATE", "")
	for what, stream := range map[string]string{
		"":                    one + "---\n" + two,
		"a changed byte":      one + "---\n" + strings.Replace(two, "    b", "    c", 1),
		"another order":       two + "---\n" + one,
		"an object less":      one,
		"an object more":      one + "---\n" + two + "---\n" + one,
		"another last line":   one + "---\n" + two + "\n",
		"another separator":   one + "\n---\n" + two,
		"the same, two times": one + "---\n" + one,
	} {
		r := &recorder{TB: t}
		list(t, dir).CompareObjects(r, "a/base", []byte(stream))
		if (len(r.errors) > 0) != (what != "") {
			t.Errorf("%q: %d errors", what, len(r.errors))
		}
	}
	r := &recorder{TB: t}
	list(t, dir).CompareObjects(r, "c/base", []byte(one))
	if len(r.errors) == 0 {
		t.Error("a case that is not in the list is accepted")
	}
}

// TestOrphanObjects: a case of the list that nothing rendered is an error, and is removed when updating.
func TestOrphanObjects(t *testing.T) {
	if partial() {
		t.Skip("some of the cases run: nothing is an orphan")
	}
	dir := t.TempDir()
	t.Setenv("TEGEN_UPDATE", "1")
	first := list(t, dir)
	first.CompareObjects(t, "a/base", []byte(one))
	first.CompareObjects(t, "b/base", []byte(one))
	t.Setenv("TEGEN_UPDATE", "")
	r, second := &recorder{TB: t}, list(t, dir)
	second.CompareObjects(r, "b/base", []byte(one))
	if second.OrphanObjects(r); len(r.errors) != 1 {
		t.Errorf("%d errors, want one about a/base", len(r.errors))
	}
	t.Setenv("TEGEN_UPDATE", "1")
	third := list(t, dir)
	third.CompareObjects(t, "b/base", []byte(one))
	third.OrphanObjects(t)
	text, err := os.ReadFile(filepath.Join(dir, objectsFile))
	if err != nil || strings.Contains(string(text), "a/base") {
		t.Errorf("a/base stays: %v\n%s", err, text)
	}
}

// TestObjects: what is no object is an error.
func TestObjects(t *testing.T) {
	for _, stream := range []string{"", one + "---\n", "kind: A\n", "metadata: {name: x}\n", one + "---\na: b: c\n"} {
		if all, err := Objects([]byte(stream)); err == nil {
			t.Errorf("%q: %v", stream, all)
		}
	}
}
