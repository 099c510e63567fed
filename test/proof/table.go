package main

import (
	"regexp"
	"slices"
	"strings"
)

// resultLine is what go test prints about a test that has ended.
var resultLine = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+)`)

// collect adds the results of all tests of an output, by the names of the tests, and returns how many passed. A test
// that failed once has failed.
func collect(results map[string]string, output string) (passed int) {
	for _, m := range resultLine.FindAllStringSubmatch(output, -1) {
		if m[1] == "PASS" {
			passed++
		}
		if results[m[2]] != "FAIL" {
			results[m[2]] = m[1]
		}
	}
	return passed
}

var inCode = regexp.MustCompile("`([^`]+)`")

// update sets the last cell of each row whose tests have all passed.
func update(page string, results map[string]string, lastRun string) string {
	var out strings.Builder
	test := -1 // the column of tests
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 {
			test = -1
		} else if test < 0 {
			test = slices.IndexFunc(cells, func(c string) bool { return strings.TrimSpace(c) == "test" })
		} else if test < len(cells)-2 && passed(cells[test], results) {
			cells[len(cells)-2] = " " + lastRun + " "
			line = strings.Join(cells, "|") + "\n"
		}
		out.WriteString(line)
	}
	return out.String()
}

// passed says whether all tests that a cell names have passed. None named is none passed.
func passed(cell string, results map[string]string) bool {
	names := inCode.FindAllStringSubmatch(cell, -1)
	for _, m := range names {
		if results[m[1]] != "PASS" {
			return false
		}
	}
	return len(names) > 0
}

// tables are the tables with tests of a page.
func tables(page string) string {
	var out strings.Builder
	in := false
	for line := range strings.Lines(page) {
		row := strings.HasPrefix(line, "|")
		if row && !in {
			in = strings.Contains(line, "| test |")
			if in {
				out.WriteString("\n")
			}
		}
		in = in && row
		if in {
			out.WriteString(line)
		}
	}
	return out.String()
}
