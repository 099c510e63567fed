package image

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shipped is what a Dockerfile of images/ says of the image that it ends in.
type shipped struct {
	Base, User   string
	Entrypoint   []string
	Package      string // what is compiled
	Program      string // where it is in the image
	Instructions int    // of the last stage
}

// TestDockerfiles: the images of this repository's own programs are those that their Dockerfiles build. Nothing is
// compiled for it: a file stands for the program.
func TestDockerfiles(t *testing.T) {
	stand := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(stand, []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{Rendezvous, Scheduler} {
		p := programs[name]
		p.build = func(context.Context, io.Writer, string) (string, error) { return stand, nil }
		r, err := p.recipe(t.Context(), io.Discard, name)
		if err != nil {
			t.Fatal(err)
		}
		// The licences are for those who get the image.
		got := shipped{
			Base: "scratch", User: r.config.User, Entrypoint: r.config.Entrypoint, Package: p.source,
			Instructions: 5,
		}
		for _, l := range r.layers {
			entries, err := l.entries()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if !e.mode.IsDir() {
					got.Program += e.path // one: a second would make this no path of the Dockerfile's
				}
			}
		}
		path := filepath.Join("../../../images", name, "Dockerfile")
		if diff := cmp.Diff(dockerfile(t, string(read(t, path))), got); diff != "" {
			t.Errorf("%s (-%s +programs.go):\n%s", name, path, diff)
		}
	}
}

var (
	compiled = regexp.MustCompile(`-o /out/(\S+) (\./cmd/\S+)`)
	copied   = regexp.MustCompile(`(?m)^COPY --from=build /out/ (/\S+/)$`)
)

// dockerfile reads the five instructions of a last stage that copies one program and the licences, and what the first
// compiles.
func dockerfile(t *testing.T, text string) (s shipped) {
	t.Helper()
	build, last := text[:strings.LastIndex(text, "\nFROM ")], text[strings.LastIndex(text, "\nFROM "):]
	program, folder := compiled.FindStringSubmatch(build), copied.FindStringSubmatch(last)
	if program == nil || folder == nil {
		t.Fatalf("no program is compiled and copied in:\n%s", text)
	}
	s.Program, s.Package = folder[1]+program[1], program[2]
	for line := range strings.Lines(last) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "", "#":
			continue
		case "FROM":
			s.Base = rest
		case "USER":
			s.User = rest
		case "ENTRYPOINT":
			if err := json.Unmarshal([]byte(rest), &s.Entrypoint); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		s.Instructions++
	}
	return s
}
