package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/golden"
)

// The repository's root: fixtures name their files relative to it, as a person's command line would.
const root = "../.."

// overlays that every fixture is rendered with; base means without one.
var overlays = []string{"base", "kind", "eks"}

// overlaid are the fixtures that show what an overlay changes: resources, placement, storage, identity, images, gangs.
// The others' renderings with overlays are checked and not kept.
var overlaid = []string{
	"checkpoint-etcd", "gang-kueue", "gang-volcano", "horovod-job-minimal", "identity-irsa", "imagenet", "minimal",
	"mxnet-job-servers", "network", "placement", "storage-efs", "storage-two-volumes", "suspend-checkpoint",
}

// tegen runs the program in this process, in the repository's root.
func tegen(stdin string, args ...string) (stdout, stderr string, code int) {
	var out, err bytes.Buffer
	code = run(append([]string{"tegen"}, args...), strings.NewReader(stdin), &out, &err)
	return out.String(), err.String(), code
}

func atRoot(t *testing.T) {
	t.Helper()
	t.Chdir(root)
}

func cases(t *testing.T, kind string) []string {
	t.Helper()
	files, err := filepath.Glob("fixtures/" + kind + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures/%s: %v", kind, err)
	}
	return files
}

func renderArgs(t *testing.T, file, overlay string) []string {
	t.Helper()
	if overlay == "base" {
		return []string{"render", file}
	}
	return []string{"render", file, "--overlay", golden.Overlay(t, ".", overlay)}
}

func caseName(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") }

func TestGolden(t *testing.T) {
	atRoot(t)
	files := golden.Open(t, "golden")
	valid := cases(t, "valid")
	if len(valid) < 20 {
		t.Errorf("%d valid fixtures: want at least 20", len(valid))
	}
	for _, file := range valid {
		for _, overlay := range overlays {
			t.Run(caseName(file)+"/"+overlay, func(t *testing.T) {
				out, msg, code := tegen("", renderArgs(t, file, overlay)...)
				if code != cli.ExitOK || msg != "" && !strings.Contains(msg, ": note: ") {
					t.Fatalf("exit %d:\n%s", code, msg)
				}
				if overlay == "base" || slices.Contains(overlaid, caseName(file)) {
					files.Compare(t, caseName(file)+"/"+overlay+".yaml", []byte(out))
				} else if _, msg, code := tegen(out, "check", "-"); code != cli.ExitOK {
					t.Errorf("check: exit %d:\n%s", code, msg)
				}
			})
		}
		files.Orphans(t, caseName(file))
	}
	folders, err := os.ReadDir("golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if _, err := os.Stat("fixtures/valid/" + f.Name() + ".yaml"); err != nil && f.Name() != "invalid" &&
			!strings.HasPrefix(f.Name(), installGolden) {
			files.Orphans(t, f.Name())
		}
	}
}

func TestGoldenInvalid(t *testing.T) {
	atRoot(t)
	files := golden.Open(t, "golden")
	invalid := cases(t, "invalid")
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
