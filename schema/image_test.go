package schema_test

import (
	"testing"

	"github.com/tegen-dev/tegen/schema"
)

func TestCheckImage(t *testing.T) {
	const rule = "must be an image with a tag other than latest, or a digest: registry/name:tag, not "
	for image, want := range map[string]string{
		"registry.example/tegen-scheduler:1.0.0":                                                   "",
		"localhost:5000/a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef": "",
		"":                       rule + `""`,
		"tegen-scheduler":        rule + `"tegen-scheduler"`,
		"tegen-scheduler:latest": rule + `"tegen-scheduler:latest"`,
		"A:1 2":                  rule + `"A:1 2"`,
	} {
		got := ""
		if err := schema.CheckImage(image); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("CheckImage(%q): %q, want %q", image, got, want)
		}
	}
}
