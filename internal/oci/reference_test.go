package oci

import (
	"strings"
	"testing"
)

func TestParseReference(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for text, want := range map[string]string{
		"oci://registry.example/team/jobs:eks":          "registry.example/team/jobs:eks@" + digest,
		"oci://registry.example:5000/jobs:1.2.3-rc_1":   "registry.example:5000/jobs:1.2.3-rc_1@" + digest,
		"oci://localhost/jobs:eks":                      "localhost/jobs:eks@" + digest,
		"oci://registry.example/team/jobs@" + digest:    "registry.example/team/jobs@" + digest,
		"oci://registry.example/team/jobs:a@" + digest:  "registry.example/team/jobs@" + digest,
		"oci://registry.example/" + "a/b/c/d/e/f/g:eks": "registry.example/a/b/c/d/e/f/g:eks@" + digest,
	} {
		ref, err := ParseReference(text, false)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := ref.At(digest); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		if got := ref.IsDigest(); got != strings.Contains(text, "@") {
			t.Errorf("%s: IsDigest is %t", text, got)
		}
	}
}

// TestParseReferenceErrors: each says what to write, and none repeats what may be a password.
func TestParseReferenceErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                              `must begin with oci://, as in`,
		"registry.example/jobs:eks":     `must begin with oci://, as in`,
		"https://registry.example/a:b":  `must begin with oci://, as in`,
		"oci://":                        `must name a registry and a repository in it`,
		"oci://registry.example":        `must name a registry and a repository in it`,
		"oci://registry.example/":       `must name a registry and a repository in it`,
		"oci://team/jobs:eks":           `must name a registry and a repository in it`,
		"oci://registry.example/jobs":   `has no tag: say which, such as oci://registry.example/jobs:eks`,
		"oci://r.example/jobs:latest":   `the tag latest says nothing of what is there: name a place or a release`,
		"oci://r.example/Jobs:eks":      `is no reference: a repository has lower-case letters`,
		"oci://r.example/jobs:e ks":     `is no reference: a repository has lower-case letters`,
		"oci://r.example/jobs:":         `is no reference: a repository has lower-case letters`,
		"oci://r.example/jobs@sha256:0": `is no reference: a repository has lower-case letters`,
		"oci://r.example/jobs:a:b":      `is no reference: a repository has lower-case letters`,
		"oci://me:secret@r.example/a:b": `must hold no user and no password: log in with 'docker login'`,
		"oci://me@r.example/jobs:eks":   `must hold no user and no password`,
	} {
		_, err := ParseReference(text, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error holds the password: %v", text, err)
		}
	}
}
