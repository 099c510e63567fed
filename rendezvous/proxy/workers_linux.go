package proxy

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// killWorkers kills the workers of a command's run. They are the descendants of the command whose environment has the
// run's id from their agent, and whose parent's environment does not. A command that does not run is 0.
func killWorkers(command int, run string) (killed int) {
	if command == 0 { // all processes descend from it
		return 0
	}
	var workers []int // complete before any is killed, because its children then get another parent
	for pid := range descendants(command) {
		if ofRun(pid, run) && !ofRun(parent(pid), run) {
			workers = append(workers, pid)
		}
	}
	for _, pid := range workers {
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// descendants returns the children of a process, and their descendants.
func descendants(of int) map[int]bool {
	children := map[int][]int{}
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		panic(err) // the pattern is malformed
	}
	for _, path := range entries {
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			children[parent(pid)] = append(children[parent(pid)], pid)
		}
	}
	all := map[int]bool{}
	for next := []int{of}; len(next) > 0; next = next[1:] {
		for _, child := range children[next[0]] {
			if !all[child] {
				all[child] = true
				next = append(next, child)
			}
		}
	}
	return all
}

// parent returns the parent of a process, or 0 if the process has ended.
func parent(pid int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name before it may contain anything
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(fields[1])
	return n
}

// ofRun reports whether a process has the variable that torch's agents set for the workers of a run.
func ofRun(pid int, run string) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for variable := range bytes.SplitSeq(text, []byte{0}) {
		if string(variable) == "TORCHELASTIC_RUN_ID="+run {
			return true
		}
	}
	return false
}
