package names

import (
	"runtime/debug"
	"testing"
)

// TestVersionOf: the version of a program that extends tegen is that of the code that is linked.
func TestVersionOf(t *testing.T) {
	main := debug.Module{Path: "example.com/alerts", Version: "v2.0.0"}
	for want, replaced := range map[string]*debug.Module{
		"v1.0.0 (example.com/alerts v2.0.0)":                  nil,
		"example.com/fork v1.0.1 (example.com/alerts v2.0.0)": {Path: "example.com/fork", Version: "v1.0.1"},
		"v1.0.0, replaced (example.com/alerts v2.0.0)":        {Path: "../tegen", Version: "(devel)"},
	} {
		deps := []*debug.Module{{Path: module, Version: "v1.0.0", Replace: replaced}}
		if got := versionOf(&debug.BuildInfo{Main: main, Deps: deps}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := versionOf(&debug.BuildInfo{Main: main}); got != "v2.0.0" {
		t.Error(got)
	}
}
