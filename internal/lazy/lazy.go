// Package lazy has regular expressions that are compiled at their first use: compiling all took a tenth of the
// time in which the command starts, and no command uses more than a few.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles an expression once. It panics if the expression is invalid.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
