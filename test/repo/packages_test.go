// Package repo checks what holds for the repository as a whole: that the linter enforces the table of packages, and
// that no line is wider than a screen.
package repo

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const module = "github.com/tegen-dev/tegen"

// banned are the words of the column "must never import", with the import path that depguard has for each. The clock is
// no import path: forbidigo bans it, see TestClock.
var banned = map[string]string{
	"anything of Kubernetes":  "k8s.io/",
	"anything of the project": module,
	"CEL":                     "github.com/google/cel-go",
	"client-go":               "k8s.io/client-go",
	"cobra":                   "github.com/spf13/cobra",
	"cuelang.org/go":          "cuelang.org/go",
	"generators":              module + "/generators",
	"io":                      "io",
	"k8s.io/api":              "k8s.io/api/",
	"k8s.io/apiserver":        "k8s.io/apiserver",
	"k8s.io/kubernetes":       "k8s.io/kubernetes",
	"kyaml":                   "sigs.k8s.io/kustomize/kyaml",
	"log":                     "log",
	"math/rand":               "math/rand",
	"net":                     "net",
	"os":                      "os",
	"schema":                  module + "/schema",
	"time":                    "time",
}

// row is a line of the table of packages in docs/packages.md.
type row struct{ packages, bans []string }

// TestPackages: depguard enforces every row of the table, every package in it exists, and no package of the product is
// without a row.
func TestPackages(t *testing.T) {
	deniedTo := denied(t)
	rows := packageRows(t)
	for _, r := range rows {
		for _, p := range r.packages {
			if dir := strings.TrimSuffix(p, "/*"); !isDir(dir) {
				t.Errorf("docs/packages.md has a row for %s, which does not exist", p)
			}
			for _, ban := range r.bans {
				if ban == "the clock" {
					continue
				}
				imports, known := banned[ban]
				if isDir(ban) { // a package of ours
					imports, known = module+"/"+ban, true
				}
				if !known {
					t.Errorf("row %s of docs/packages.md: add %q to banned in test/repo", p, ban)
				} else if !slices.Contains(deniedTo(p), imports) {
					t.Errorf("%s must never import %s, and no rule of depguard in .golangci.yml denies %s", p, ban,
						imports)
				}
			}
		}
	}
	for _, p := range productPackages(t) {
		if !slices.ContainsFunc(rows, func(r row) bool {
			return slices.ContainsFunc(r.packages, func(pattern string) bool {
				matched, _ := path.Match(pattern, p)
				return matched
			})
		}) {
			t.Errorf("package %s has no row in docs/packages.md", p)
		}
	}
}

// packageRows reads the table of docs/packages.md.
func packageRows(t *testing.T) (rows []row) {
	t.Helper()
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(read(t, "docs/packages.md")) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		var r row
		for _, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
			r.packages = append(r.packages, name[1])
		}
		for ban := range strings.SplitSeq(strings.ReplaceAll(cells[3], " or of ", ", anything of "), ",") {
			ban = strings.TrimPrefix(strings.TrimSpace(ban), "and ")
			if ban == "the same" { // as the row before
				r.bans = append(r.bans, rows[len(rows)-1].bans...)
			} else {
				ban, _, _ = strings.Cut(ban, " but ") // what depguard allows
				r.bans = append(r.bans, ban)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// linting is what .golangci.yml says of imports and the clock.
type linting struct {
	Linters struct {
		Settings struct {
			Depguard struct {
				Rules map[string]struct {
					Files []string
					Deny  []struct{ Pkg string }
				}
			}
			Forbidigo struct {
				Forbid []struct{ Pattern, Msg string }
			}
		}
		Exclusions struct {
			Rules []exclusion
		}
	}
}

type exclusion struct {
	Linters    []string
	Text       string
	PathExcept string `json:"path-except"`
}

func readLinting(t *testing.T) (config linting) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, ".golangci.yml")), &config); err != nil {
		t.Fatal(err)
	}
	return config
}

// denied tells which import paths depguard denies to a package of the table.
func denied(t *testing.T) func(name string) []string {
	t.Helper()
	rules := readLinting(t).Linters.Settings.Depguard.Rules
	for name, rule := range rules {
		for _, file := range rule.Files {
			if out, is := strings.CutPrefix(file, "!"); is && out != "$test" && path.Base(out) != "**" {
				t.Errorf("rule %s of depguard is not for %s: a package that it covers, it covers whole", name, out)
			}
		}
	}
	return func(name string) (imports []string) {
		for _, rule := range rules {
			in := slices.ContainsFunc(rule.Files, func(file string) bool { return covers(file, name) })
			out := slices.ContainsFunc(rule.Files, func(file string) bool {
				file, is := strings.CutPrefix(file, "!")
				return is && covers(file, name)
			})
			if !in || out {
				continue
			}
			for _, d := range rule.Deny {
				imports = append(imports, d.Pkg)
			}
		}
		return imports
	}
}

// covers says whether a rule's glob holds for a whole package, or for all below a directory; not one for single files.
func covers(file, name string) bool {
	glob, ours := strings.CutPrefix(file, "${config-path}/")
	dir, base := path.Split(glob)
	within := base == "**" && strings.HasPrefix(name, dir)
	return ours && (within || path.Clean(dir) == name && (base == "**" || base == "*.go"))
}

// TestCovers: a rule for one file of a package is no rule for the package.
func TestCovers(t *testing.T) {
	for _, c := range []struct {
		glob, name string
		want       bool
	}{
		{"schema/**", "schema", true},
		{"schema/*.go", "schema", true},
		{"rendezvous/**", "rendezvous/*", true},
		{"schema/rules.go", "schema", false},
		{"schema/{a,b}.go", "schema", false},
		{"a/*.go", "a/b", false},
		{"schema/**", "schemas", false},
	} {
		if got := covers("${config-path}/"+c.glob, c.name); got != c.want {
			t.Errorf("covers(%q, %q) = %v", c.glob, c.name, got)
		}
	}
}
