package editor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// readDifferently are fixtures about what is YAML at all, of which the server reads more than tegen, or less.
func readDifferently(name string) bool {
	return strings.HasPrefix(name, "yaml-") || name == "document-empty"
}

// testFixtures: no file that tegen renders is marked, and each that the schema refuses is, as schema's own test has it
// of another validator.
func testFixtures(t *testing.T, s *server) {
	accepted := acceptedFixtures(t)
	uris := map[string]string{}
	for _, pattern := range []string{
		"fixtures/valid/*.yaml", "fixtures/invalid/*.yaml", "overlays/*/environment.yaml",
	} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(files) < 2 {
			t.Fatalf("%s: %v %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.ReplaceAll(strings.TrimPrefix(file, "../../"), "/", "-")
			uris[file] = s.open(t, name, withModelines(text))
		}
	}
	marked := 0
	for file, uri := range uris {
		said := s.diagnostics(t, uri)
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		switch invalid := strings.Contains(file, "/invalid/"); {
		case len(said) > 0:
			marked++
			if !invalid || accepted[name] && !readDifferently(name) {
				t.Errorf("%s: %v", file, said)
			}
		case invalid && !accepted[name] && !readDifferently(name):
			t.Errorf("%s has no mark, but the schema refuses it", file)
		}
	}
	t.Logf("%d of %d files are marked", marked, len(uris))
}

// withModelines puts the line before each document that says what it is.
func withModelines(text []byte) string {
	var b strings.Builder
	for _, doc := range yamldoc.Split("", text) {
		name := "trainingjob.schema.json"
		if strings.Contains("\n"+string(doc.Text), "\nkind: Environment") {
			name = "environment.schema.json"
		}
		b.WriteString("---\n" + modeline + name + "\n" + strings.TrimPrefix(string(doc.Text), "---\n") + "\n")
	}
	return b.String()
}

// acceptedFixtures are those of fixtures/invalid that the schema accepts.
func acceptedFixtures(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../schema/testdata/jsonschema/accepted.txt")
	if err != nil {
		t.Fatal(err)
	}
	accepted := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		name, _, _ := strings.Cut(line, ":")
		accepted[name] = true
	}
	return accepted
}
