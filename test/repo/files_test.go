package repo

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the repository's, seen from here.
const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func isDir(name string) bool {
	info, err := os.Stat(filepath.Join(root, name))
	return err == nil && info.IsDir()
}

// files are those of the repository, by their paths from its root; what git ignores is not among them.
func files(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a checkout of git: %v", err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), func(name string) bool {
		info, err := os.Lstat(filepath.Join(root, name))
		return err != nil || !info.Mode().IsRegular() // deleted, and not yet committed
	})
}

// ownParts are folders of the companions whose packages have no row: commands, benches, tests and their own few lines.
var ownParts = regexp.MustCompile(`^(rendezvous|scheduler)/(cmd|internal|bench|test)/?`)

// productPackages are the packages that programs are made of; commands, benches and tests have no row of their own.
func productPackages(t *testing.T) (packages []string) {
	t.Helper()
	for _, name := range files(t) {
		dir, top := path.Dir(name), strings.SplitN(name, "/", 2)[0]
		if !slices.Contains([]string{"schema", "generators", "internal", "rendezvous"}, top) ||
			ownParts.MatchString(dir) ||
			path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || slices.Contains(packages, dir) {
			continue
		}
		packages = append(packages, dir)
	}
	return packages
}
