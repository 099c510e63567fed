package store

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// work is what a process has done so far.
type work struct {
	cpu   time.Duration
	bytes int64 // read and written
	pages int64 // read from disk for mapped files
}

// working reads it, false where the process has gone.
func working(pid int) (w work, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return w, false
	}
	text := string(stat)
	f := strings.Fields(text[strings.LastIndex(text, ") ")+1:]) // the name before it may hold anything
	if len(f) < 13 {
		return w, false
	}
	number := func(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n }
	w.pages = number(f[9])
	w.cpu = time.Duration(number(f[11])+number(f[12])) * 10 * time.Millisecond // USER_HZ is 100 wherever Go runs
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return w, true
	}
	for line := range strings.Lines(string(io)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && (name == "rchar" || name == "wchar") {
			w.bytes += number(value)
		}
	}
	return w, true
}

// since says whether a process has advanced. One that only waits for a lock wakes up now and then as well, which takes
// less than a hundredth of its time.
func (w work) since(before work, passed time.Duration) bool {
	return w.cpu-before.cpu > passed/20 || w.bytes-before.bytes > 64<<10 || w.pages-before.pages > 16
}
