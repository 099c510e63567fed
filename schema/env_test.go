package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/note"
)

// TestEnvNotes: what no mistake is, and nothing else would tell of: an amount that the worker has not, and a key of two
// sources.
func TestEnvNotes(t *testing.T) {
	for says, want := range map[string]string{
		"env: [{name: X, resource: limits.cpu}]":                                      "",
		"env: [{name: X, resource: limits.cpu}], resources: {cpu: none}":              "spec.env[0].resource",
		"env: [{name: X, resource: requests.cpu}], resources: {requests: {cpu: 1}}":   "",
		"env: [{name: X, resource: limits.cpu}], resources: {requests: {cpu: 1}}":     "spec.env[0].resource",
		"env: [{name: X, resource: limits.ephemeral-storage}]":                        "spec.env[0].resource",
		"envFrom: [{secret: a}, {configMap: b}]":                                      "spec.envFrom[1]",
		"envFrom: [{secret: a}, {configMap: b, prefix: B_}]":                          "",
		"envFrom: [{secret: a, prefix: A_}, {configMap: b}, {secret: c, prefix: A_}]": "spec.envFrom[2]",
	} {
		j := loadOne(t, jobHead+"workers: {replicas: 1}, "+says+"}\n")
		got := ""
		for _, note := range note.EnvNotes(&j.Spec) {
			at, _, _ := strings.Cut(note, ": ")
			got += at
		}
		if got != want {
			t.Errorf("%s: notes at %q, want %q", says, got, want)
		}
	}
}
