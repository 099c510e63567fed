package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/test/cases"
)

// The repository's root: fixtures name their files relative to it, as a person's command line would.
const root = "../.."

// ownCommands are the commands of a program without added generators.
func ownCommands(s cli.Streams) *cobra.Command { return newRootCmd(s, generators.Set{}) }

// tegen runs the program in this process, in the repository's root.
func tegen(stdin string, args ...string) (stdout, stderr string, code int) {
	var out, err bytes.Buffer
	code = run(generators.Set{}, append([]string{"tegen"}, args...), strings.NewReader(stdin), &out, &err)
	return out.String(), err.String(), code
}

func atRoot(t *testing.T) {
	t.Helper()
	t.Chdir(root)
}

func fixtures(t *testing.T, kind string) []string {
	t.Helper()
	files, err := filepath.Glob("fixtures/" + kind + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures/%s: %v", kind, err)
	}
	return files
}

func renderArgs(t *testing.T, file, overlay string) []string {
	t.Helper()
	if overlay == cases.Base {
		return []string{"render", file}
	}
	return []string{"render", file, "--overlay", golden.Overlay(t, ".", overlay)}
}

func caseName(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") }

func TestGolden(t *testing.T) {
	atRoot(t)
	files := golden.Open(t, "golden")
	valid := fixtures(t, "valid")
	if len(valid) < 20 {
		t.Errorf("%d valid fixtures: want at least 20", len(valid))
	}
	for _, file := range valid {
		for _, overlay := range cases.Overlays {
			c := cases.Case{Fixture: caseName(file), Overlay: overlay}
			t.Run(c.String(), func(t *testing.T) {
				out, msg, code := tegen("", renderArgs(t, file, overlay)...)
				if code != cli.ExitOK || msg != "" && !strings.Contains(msg, ": note: ") {
					t.Fatalf("exit %d:\n%s", code, msg)
				}
				if c.Golden() {
					compare(t, files, c, out)
				} else if _, msg, code := tegen(out, "check", "-"); code != cli.ExitOK {
					t.Errorf("check: exit %d:\n%s", code, msg)
				}
			})
		}
		files.Orphans(t, caseName(file))
	}
	files.OrphanObjects(t)
	folders, err := filepath.Glob("golden/*/")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		f = filepath.Base(f)
		if _, err := os.Stat("fixtures/valid/" + f + ".yaml"); err != nil && f != "invalid" &&
			!strings.HasPrefix(f, installGolden) {
			files.Orphans(t, f)
		}
	}
}

// compare compares the rendering of a case with its golden file or its digests, and with what other tests take for it.
func compare(t *testing.T, files *golden.Dir, c cases.Case, out string) {
	t.Helper()
	if c.InFull() {
		files.Compare(t, c.String()+".yaml", []byte(out))
	} else {
		files.CompareObjects(t, c.String(), []byte(out))
	}
	same, err := c.Render(".")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out, string(same)); diff != "" {
		t.Errorf("test/cases renders other objects (-tegen render +cases):\n%s", diff)
	}
}

func TestGoldenInvalid(t *testing.T) {
	atRoot(t)
	files := golden.Open(t, "golden")
	invalid := fixtures(t, "invalid")
	if len(invalid) < 60 {
		t.Errorf("%d invalid fixtures: want at least 60", len(invalid))
	}
	for _, file := range invalid {
		t.Run(caseName(file), func(t *testing.T) {
			out, msg, code := tegen("", "render", file)
			if code != cli.ExitError || out != "" {
				t.Fatalf("exit %d, want %d with nothing on stdout; stdout:\n%s", code, cli.ExitError, out)
			}
			for line := range strings.Lines(msg) {
				if !strings.HasPrefix(line, file+":") {
					t.Errorf("a message without a position: %q", line)
				}
			}
			files.Compare(t, "invalid/"+caseName(file)+".txt", []byte(msg))
		})
	}
	files.Orphans(t, "invalid")
}
