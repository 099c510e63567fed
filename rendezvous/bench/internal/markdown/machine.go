package markdown

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Machine says what the figures were measured on, and beside how much else: see Load.
func Machine(loadBefore, loadAfter string) string {
	return fmt.Sprintf("%s, %d cores, load %s before and %s after.", runtime.Version(), runtime.NumCPU(), loadBefore,
		loadAfter)
}

// Load is the machine's load average over one minute.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

// Seconds prints a duration to three digits.
func Seconds(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 1:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 10:
		return fmt.Sprintf("%.2f s", s)
	default:
		return fmt.Sprintf("%.1f s", s)
	}
}
