package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/test/cluster"
)

// TestArguments: what is meant as a program or as a command and is neither starts nothing.
func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		`programs are named with --build alone, and a command behind --, got ["kubectl"]`: {"kubectl"},
		`programs are named with --build alone, and a command behind --, got ["a" "b"]`:   {"a", "--", "b"},
		`reading --operators: operator "nope" is unknown; known are ` +
			strings.Join(cluster.Operators(), ", "): {"--operators", "jobset,nope"},
		`reading --gate "A": want Name=true or Name=false`: {"--gate", "A", "--", "true"},
	} {
		cmd := command()
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
}

func TestRunCommand(t *testing.T) {
	var out strings.Builder
	cmd := command()
	cmd.SetOut(&out)
	says := []string{"sh", "-c", "echo $TEGEN_A $TEGEN_B"}
	if err := runCommand(cmd, says, []string{"TEGEN_A=1", "TEGEN_B=2"}); err != nil {
		t.Error(err)
	}
	if out.String() != "1 2\n" {
		t.Errorf("the command sees %q", out.String())
	}
	for want, command := range map[string][]string{
		"running sh -c exit 3: exit status 3":                                                  {"sh", "-c", "exit 3"},
		`running no-such-program: exec: "no-such-program": executable file not found in $PATH`: {"no-such-program"},
	} {
		if err := runCommand(cmd, command, nil); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", command, err, want)
		}
	}
}

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
