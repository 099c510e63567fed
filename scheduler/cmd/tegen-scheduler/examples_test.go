package main

import (
	"strings"
	"testing"
)

// TestExamples: the flags of every example are those of the command.
func TestExamples(t *testing.T) {
	lines := 0
	for line := range strings.Lines(newCommand().Example) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		lines++
		if err := newCommand().ParseFlags(words[1:]); err != nil || words[0] != newCommand().Name() {
			t.Errorf("%s: %v", line, err)
		}
	}
	if lines < 2 {
		t.Errorf("the help has %d examples, fewer than 2", lines)
	}
}
