package editor

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSchemaStore holds schema/schemastore.json to what SchemaStore asks of its catalog: the fields of
// schema-catalog.json there, and the checks of its cli.js, as of August 2026.
func TestSchemaStore(t *testing.T) {
	text, err := os.ReadFile("../../schema/schemastore.json")
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct {
		Name        string            `json:"name"`
		Description string            `json:"description"`
		FileMatch   []string          `json:"fileMatch"`
		URL         string            `json:"url"`
		Versions    map[string]string `json:"versions"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&entries); err != nil {
		t.Fatal(err)
	}
	assets, err := os.ReadFile("../../release/documents.go")
	if err != nil {
		t.Fatal(err)
	}
	unwanted := regexp.MustCompile(`(?i)schema|\n|[,. \t-]$`)
	seen := map[string]bool{}
	for _, e := range entries {
		for _, words := range []string{e.Name, e.Description} {
			if words == "" || unwanted.MatchString(words) || seen[words] {
				t.Errorf("SchemaStore refuses %q as a name or description", words)
			}
			seen[words] = true
		}
		address, err := url.Parse(e.URL)
		if err != nil || released+path.Base(address.Path) != e.URL {
			t.Errorf("%s is not of a release: %v", e.URL, err)
		}
		if !strings.Contains(string(assets), `"`+path.Base(e.URL)+`"`) {
			t.Errorf("no release has the file of %s", e.URL)
		}
		if len(e.FileMatch) == 0 {
			t.Errorf("%s matches no file", e.Name)
		}
		for _, pattern := range e.FileMatch {
			if seen[pattern] || strings.ContainsAny(pattern, "{}/[]!()") {
				t.Errorf("%s is there twice, or not simple", pattern)
			}
			seen[pattern] = true
			for _, other := range []string{"kustomization.yaml", "environment.yaml", "tegen.yaml", "job.yaml"} {
				if ok, err := filepath.Match(pattern, other); ok || err != nil {
					t.Errorf("%s takes %s too: %v", pattern, other, err)
				}
			}
		}
	}
	if len(entries) != 2 {
		t.Errorf("%d entries", len(entries))
	}
}
