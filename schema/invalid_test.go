package schema

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rendersTwice has two jobs that Load has nothing against. What they render has the same names, which the tests of
// internal/command see.
const rendersTwice = "two-jobs-one-etcd"

// TestInvalid holds what Load says of every invalid fixture to the text that people read. The golden test of
// internal/command writes those files; here they prove the rules, each of which some fixture breaks.
func TestInvalid(t *testing.T) {
	for _, file := range fixtures(t, "invalid") {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile("../golden/invalid/" + name + ".txt")
			if err != nil {
				t.Fatalf("%v; 'make golden' writes it", err)
			}
			if name == rendersTwice {
				want = []byte{}
			}
			got := ""
			if _, err := Load([]Source{{Name: strings.TrimPrefix(file, "../"), Data: text}}); err != nil {
				got = err.Error() + "\n"
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
