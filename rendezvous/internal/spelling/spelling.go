// Package spelling guesses which of some words a mistyped one was meant to be: of fields, values, commands and flags.
package spelling

import (
	"fmt"
	"strings"
)

// Suggest returns "; did you mean …?" for the candidate nearest to a mistyped word, or nothing where none is near.
func Suggest(word string, candidates []string) string {
	best := Nearest(word, candidates)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// Nearest returns the candidate that a mistyped word most likely is, "" for none.
func Nearest(word string, candidates []string) string {
	best, distance := "", len(word)/3+1
	if len(word) <= 3 { // of three letters, two others make another word
		distance = 1
	}
	for _, c := range candidates {
		if d := Distance(strings.ToLower(word), strings.ToLower(c)); d <= distance && (best == "" || d < distance) {
			best, distance = c, d
		}
	}
	return best
}

// Distance counts the insertions, deletions, substitutions and swaps of neighbours between two words.
func Distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 { // no field or value is that long
		return 64
	}
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
