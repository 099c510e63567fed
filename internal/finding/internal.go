package finding

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// InternalRule is the rule of what a recovered panic leaves.
const InternalRule = "job/internal"

// issues is where a fault of tegen is reported.
const issues = "https://github.com/tegen-dev/tegen/issues"

// Internal describes a panic, with the place in the code that caused it. Call it in the deferred function that
// recovered the panic.
func Internal(recovered any) string {
	text := described(recovered, func(function string) bool { return strings.Contains(function, "tegen-dev/tegen/") })
	return fmt.Sprintf("%s%s; this is a fault of tegen. Report it at %s with the job and this message", internalPrefix,
		text, issues)
}

// Panic describes a panic in code that is not tegen's, with the place that caused it. Call it like Internal.
func Panic(recovered any) string {
	return "panic: " + described(recovered, func(function string) bool {
		return !strings.HasPrefix(function, "runtime.")
	})
}

func described(recovered any, in func(function string) bool) string {
	text, _, _ := strings.Cut(fmt.Sprint(recovered), "\n")
	if at := panicPlace(in); at != "" {
		text += " (" + at + ")"
	}
	return text
}

const internalPrefix = "internal error: "

// IsInternal reports whether a message contains a text of Internal.
func IsInternal(message string) bool {
	return strings.Contains(message, internalPrefix) && strings.Contains(message, issues)
}

// panicPlace is file:line of the innermost function that panicked among some, "" if it is not known.
func panicPlace(in func(function string) bool) string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && in(f.Function):
			return fmt.Sprintf("%s:%d", path.Join(path.Base(path.Dir(f.File)), path.Base(f.File)), f.Line)
		}
		if !more {
			return ""
		}
	}
}

// HasInternal reports whether one of the findings is a fault of tegen.
func (l List) HasInternal() bool {
	for _, f := range l {
		if f.Rule == InternalRule {
			return true
		}
	}
	return false
}
