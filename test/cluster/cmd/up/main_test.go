package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseGates(t *testing.T) {
	tests := []struct {
		reason string
		args   []string
		want   map[string]bool
	}{
		{"none", nil, map[string]bool{}},
		{"on and off", []string{"A=true", "B=false"}, map[string]bool{"A": true, "B": false}},
		{"no value", []string{"A"}, nil},
		{"no name", []string{"=true"}, nil},
		{"no boolean", []string{"A=maybe"}, nil},
	}
	for _, tt := range tests {
		got, err := parseGates(tt.args)
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.want != nil) {
			t.Errorf("%s: error %v (-want +got)\n%s", tt.reason, err, diff)
		}
	}
}
