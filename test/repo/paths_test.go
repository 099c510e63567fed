package repo

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quoted is a path below a folder of the repository, as documents quote it.
var quoted = regexp.MustCompile("`((?:cmd|schema|generators|internal|rendezvous|scheduler|test|fixtures|golden|docs|" +
	"overlays|images|bench)/[^` ]*)`")

// TestPaths: what documents call by its path is there, or a reader follows them into nowhere. A part in <> is anyone's.
func TestPaths(t *testing.T) {
	found := 0
	for _, name := range files(t) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		for _, match := range quoted.FindAllStringSubmatch(read(t, name), -1) {
			path := match[1]
			found++
			if strings.ContainsAny(path, "<*{") {
				path = filepath.Dir(path[:strings.IndexAny(path, "<*{")] + "x")
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s names %s, which does not exist", name, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no document names a path")
	}
}
