package repo

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// clocks are what reads or waits for the time.
var clocks = []string{
	"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc", "time.Tick", "time.NewTimer",
	"time.NewTicker",
}

// pureRules are depguard's rules for files without clock, disk, network, log or chance.
var pureRules = []string{"rendezvous-pure", "gangcache"}

// TestClock: forbidigo bans the clock from every file of the packages that docs/packages.md bans it from, and from all
// other files that depguard keeps pure.
func TestClock(t *testing.T) {
	config := readLinting(t)
	hasNone := withoutClock(t, config)
	var sources []string
	for _, name := range files(t) {
		if path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
			sources = append(sources, name)
		}
	}
	for _, r := range packageRows(t) {
		if !slices.Contains(r.bans, "the clock") {
			continue
		}
		for _, name := range sources {
			if slices.Contains(r.packages, path.Dir(name)) && !hasNone(name) {
				t.Errorf("docs/packages.md bans the clock from %s, and .golangci.yml does not", name)
			}
		}
	}
	for _, rule := range pureRules {
		for _, glob := range config.Linters.Settings.Depguard.Rules[rule].Files {
			glob, ours := strings.CutPrefix(glob, "${config-path}/")
			for _, one := range alternatives(glob) {
				of := slices.DeleteFunc(slices.Clone(sources), func(name string) bool { return !matches(one, name) })
				if ours && len(of) == 0 {
					t.Errorf("rule %s of depguard is for %s, which is no file", rule, one)
				}
				if i := slices.IndexFunc(of, func(name string) bool { return !hasNone(name) }); i >= 0 {
					t.Errorf("rule %s of depguard keeps %s pure, but nothing bans the clock from it", rule, of[i])
				}
			}
		}
	}
}

// withoutClock tells from which files .golangci.yml bans all clocks. One exclusion lets all other files have them.
func withoutClock(t *testing.T, config linting) func(name string) bool {
	t.Helper()
	rules := slices.DeleteFunc(slices.Clone(config.Linters.Exclusions.Rules), func(rule exclusion) bool {
		return len(rule.Linters) > 0 && !slices.Contains(rule.Linters, "forbidigo")
	})
	if len(rules) != 1 || rules[0].PathExcept == "" || rules[0].Text == "" {
		t.Fatalf("exclusions of .golangci.yml take from forbidigo more than the clock, or less: %+v", rules)
	}
	for _, clock := range clocks {
		banned := false
		for _, f := range config.Linters.Settings.Forbidigo.Forbid {
			ours := strings.Contains(f.Msg, rules[0].Text)
			banned = banned || ours && regexp.MustCompile(f.Pattern).MatchString(clock)
		}
		if !banned {
			t.Errorf("forbidigo lets %s pass", clock)
		}
	}
	return regexp.MustCompile(rules[0].PathExcept).MatchString
}

// alternatives are a glob's, one for each word in its braces.
func alternatives(glob string) (globs []string) {
	before, rest, braces := strings.Cut(glob, "{")
	words, after, closed := strings.Cut(rest, "}")
	if !braces || !closed {
		return []string{glob}
	}
	for word := range strings.SplitSeq(words, ",") {
		globs = append(globs, before+word+after)
	}
	return globs
}

// matches says whether a file is one of a glob's, which may end in "**" for all below.
func matches(glob, name string) bool {
	if dir, all := strings.CutSuffix(glob, "**"); all {
		return strings.HasPrefix(name, dir)
	}
	ok, _ := path.Match(glob, name)
	return ok
}
