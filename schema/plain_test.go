package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/internal/structural"
)

// TestPlainFiles: every document of the repository is read as the YAML parser reads it, to which documents of more than
// 64 KiB are left.
func TestPlainFiles(t *testing.T) {
	var files []string
	for _, pattern := range []string{"fixtures/*/*.yaml", "golden/*/*.yaml", "golden/*/*/*.yaml"} {
		found, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	padding := bytes.Repeat([]byte("# a\n"), 1<<14)
	documents := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs, errs := structural.Split(structural.Source{Name: file, Data: data})
		if errs != nil {
			continue
		}
		for _, doc := range docs {
			got := structural.Parse(doc)
			doc.Text = append(append(append([]byte(nil), doc.Text...), '\n'), padding...)
			if want := structural.Parse(doc); !reflect.DeepEqual(got, want) {
				t.Errorf("%s:%d (-YAML parser +as it is):\n%s", file, doc.Line,
					cmp.Diff(want, got, cmp.AllowUnexported(structural.Node{})))
			}
			documents++
		}
	}
	if documents < 1000 {
		t.Errorf("%d documents, and there were more", documents)
	}
}
