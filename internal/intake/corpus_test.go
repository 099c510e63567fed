package intake_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/intake"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// corpus is a folder beside the repository: manifests that others published. None of them is in the repository.
const corpus = "../../../shared/corpus"

var (
	imageLine    = regexp.MustCompile(`(?m)^(\s*(?:- )?image: *["']?)([^\s"'#]+)`)
	nameOfOthers = regexp.MustCompile(`(?m)^(\s*)generateName: *(.*?)-? *$`)
)

// prepared is a manifest with a tag on each image that has none, and a name where an API server would make one up.
func prepared(text []byte) []byte {
	text = imageLine.ReplaceAllFunc(text, func(line []byte) []byte {
		m := imageLine.FindSubmatch(line)
		image := string(m[2])
		if strings.ContainsAny(image, "$@<{") || strings.Contains(image[strings.LastIndex(image, "/")+1:], ":") && !strings.HasSuffix(image, ":latest") {
			return line
		}
		return []byte(string(m[1]) + strings.TrimSuffix(image, ":latest") + ":v1")
	})
	return nameOfOthers.ReplaceAll(text, []byte("${1}name: $2"))
}

// TestCorpus holds import against published manifests: it ends, what it calls sound renders, and it refuses few.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Skip("the manifests of others are not on this machine: nothing is compared with them")
	}
	refused, sound, strict := 0, 0, 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out := intake.Jobs([]schema.Source{{Name: "in.yaml", Data: prepared(text)}})
			var notes strings.Builder
			for _, n := range out.Notes {
				fmt.Fprintln(&notes, n)
			}
			switch {
			case out.Jobs == 0:
				refused++
				t.Logf("refused\n%s", notes.String())
				return
			case out.Flawed:
				t.Logf("flawed\n%s%s", out.YAML, notes.String())
				return
			}
			sound++
			if !out.Lossy {
				strict++
			}
			t.Logf("sound, lossy %v\n%s%s", out.Lossy, out.YAML, notes.String())
			jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: out.YAML}})
			if err != nil {
				t.Fatalf("it does not load: %v", err)
			}
			bundles, err := render.Jobs(jobs, nil)
			if err == nil {
				err = render.Write(&bytes.Buffer{}, bundles)
			}
			if err != nil {
				t.Fatalf("it does not render: %v", err)
			}
		})
	}
	t.Logf("%d files: %d refused, %d that render, %d of them with nothing lost", len(files), refused, sound, strict)
}
