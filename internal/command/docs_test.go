package command

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
)

// TestGoldenPages runs what the pages of the documentation show, and compares: a block whose marker is a file of the
// repository is that file, less its comments; one marked with a render is what that writes; and in a console block
// follows each command what it prints. "make golden" writes all of them.
func TestGoldenPages(t *testing.T) {
	for _, p := range readPages(t) {
		t.Run(p.name, func(t *testing.T) {
			pages := golden.Open(t, ".")
			p.made(t)
			pages.Compare(t, p.name, []byte(p.String()))
		})
	}
}

var peersRow = regexp.MustCompile("(?m)^\\| (?:[^|]*) \\| (?:nothing, with the image named|(?:nothing, without the " +
	"image; or )?`(rendezvous: [^`]*)`) \\|$")

// TestRendezvousStores renders each row of the table of stores at the place that the page's Environment describes.
func TestRendezvousStores(t *testing.T) {
	atRoot(t)
	const name = "docs/rendezvous.md"
	p := readPage(t, name)
	place := t.TempDir()
	for name, text := range map[string]string{
		"environment.yaml": p.marked(t, "lab/environment.yaml").text, "tegen.yaml": strings.Replace(content(t,
			"overlays/kind/tegen.yaml"), "environment: kind", "environment: lab", 1),
		"kustomization.yaml": "resources: [environment.yaml]\ntransformers: [tegen.yaml]\n",
	} {
		if err := os.WriteFile(filepath.Join(place, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	job := filepath.Join(place, "job.yaml")
	rows := peersRow.FindAllStringSubmatch(content(t, name), -1)
	for _, row := range rows {
		text := content(t, "fixtures/valid/minimal.yaml") + "  " + row[1] + "\n"
		if err := os.WriteFile(job, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, msg, code := tegen("", "render", job, "--overlay", place)
		if code != cli.ExitOK {
			t.Errorf("%s: exit %d:\n%s", row[0], code, msg)
		}
		companion := row[1] == "" || strings.Contains(row[1], "companion")
		if strings.Contains(out,
			"registry.example/tegen-rendezvous:1.0.0\n        args:\n        - serve") != companion {
			t.Errorf("%s: a companion is rendered: %t", row[0], !companion)
		}
	}
	if len(rows) != 6 {
		t.Errorf("%d rows are read, want 6", len(rows))
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var kindLine = regexp.MustCompile(`(?m)^kind: (.*)$`)

func listing(t *testing.T, dir string) string {
	t.Helper()
	kinds := map[string]string{}
	width := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var found []string
		for _, m := range kindLine.FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
		name, err := filepath.Rel(dir, path)
		name = filepath.ToSlash(filepath.Join(filepath.Base(dir), name))
		kinds[name] = strings.Join(found, ", ")
		width = max(width, len(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintln(&out, strings.TrimRight(fmt.Sprintf("%-*s  %s", width, name, kinds[name]), " "))
	}
	return out.String()
}

// TestPageCommands parses every tegen command line of the pages that no test runs.
func TestPageCommands(t *testing.T) {
	parsed := 0
	for _, p := range readPages(t) {
		for _, b := range p.blocks {
			if b.lang != "sh" && !isWorkflow(b) {
				continue
			}
			for line := range strings.Lines(strings.ReplaceAll(b.text, " \\\n", " ")) {
				for _, args := range commands(line) {
					parsed++
					if err := parse(args); err != nil {
						t.Errorf("%s: tegen %s: %v", b.at, strings.Join(args, " "), err)
					}
				}
			}
		}
	}
	if parsed < 40 {
		t.Errorf("%d command lines found: the pages have more", parsed)
	}
}

var separators = regexp.MustCompile(`\s*(\|\||&&|[|;])\s*`)

// commands returns the arguments of each tegen in a line of shell.
func commands(line string) [][]string {
	line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "- run: ")
	line, _, _ = strings.Cut(line, " #")
	var out [][]string
	for _, part := range separators.Split(strings.TrimSpace(line), -1) {
		part, _, _ = strings.Cut(part, " > ")
		for _, name := range []string{"tegen ", "go run ./cmd/tegen "} {
			if args, ok := strings.CutPrefix(part, name); ok {
				out = append(out, strings.Fields(args))
			}
		}
	}
	return out
}

func parse(args []string) error {
	root := ownCommands(cli.Streams{})
	root.InitDefaultCompletionCmd(args...)
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if cmd == root {
		return cli.Usagef("unknown command %q", args[0])
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

func TestParse(t *testing.T) {
	for line, want := range map[string]bool{
		"tegen render a.yaml --overlay b -o c && git add c": true,
		"$ kustomize build x | tegen check -":               true,
		"    - run: tegen check x # in a workflow":          true,
		"    - run: tegen check":                            false,
		"tegen install scheduler > a.yaml":                  true,
		"tegen install scheduler now":                       false,
		"tegen rendr a.yaml":                                false,
		"tegen render a.yaml --overlays b":                  false,
		"tegen check":                                       false,
	} {
		found := commands(line)
		if len(found) != 1 {
			t.Errorf("%q: %d commands found, want 1", line, len(found))
			continue
		}
		if err := parse(found[0]); (err == nil) != want {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// TestPageJobs renders every job that a page shows, and reads every Environment. A block without apiVersion is a part
// of spec, and rendered with the rest of fixtures/valid/minimal.yaml, or one of an
// Environment, as its marker says. Other objects are read alone.
func TestPageJobs(t *testing.T) {
	for _, p := range readPages(t) {
		for _, b := range p.blocks {
			if b.lang == "yaml" && !isCluster(b) {
				b.vet(t)
			}
		}
	}
}

// isCluster says of a block that nothing of tegen's reads it.
func isCluster(b *block) bool {
	return strings.HasSuffix(b.marker, "kustomization.yaml") || isWorkflow(b)
}

func isWorkflow(b *block) bool { return strings.HasPrefix(b.marker, ".github/workflows/") }

func (b *block) vet(t *testing.T) {
	t.Helper()
	var parts map[string]any
	text := b.text
	switch err := yaml.Unmarshal([]byte(text), &parts); {
	case err == nil && b.marker == "of an Environment":
		text = fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: a}\n%s", names.APIVersion, names.KindEnvironment,
			text)
	case err == nil && parts["apiVersion"] == nil:
		text = spliced(t, parts)
	}
	if _, err := manifest.Read(b.at, []byte(text)); err != nil {
		t.Error(err)
	}
	environment := strings.Contains(text, "kind: "+names.KindEnvironment)
	if !environment && !strings.Contains(text, "kind: "+names.KindTrainingJob) {
		return
	}
	args := []string{"vet", "-"}
	if environment {
		args = []string{"vet", "fixtures/valid/minimal.yaml", "--environment", "-"}
	}
	if _, msg, code := tegen(text, args...); code != cli.ExitOK {
		t.Errorf("%s: exit %d:\n%s", b.at, code, msg)
	}
}

// spliced is the minimal job with other fields of spec.
func spliced(t *testing.T, parts map[string]any) string {
	t.Helper()
	var job map[string]any
	if err := yaml.Unmarshal([]byte(content(t, "fixtures/valid/minimal.yaml")), &job); err != nil {
		t.Fatal(err)
	}
	spec, _ := job["spec"].(map[string]any)
	maps.Copy(spec, parts)
	text, err := yaml.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var fieldRow = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")

// TestPageFields holds the table of fields against the schema: each field of spec has its word there.
func TestPageFields(t *testing.T) {
	atRoot(t)
	text, err := os.ReadFile("docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range fieldRow.FindAllSubmatch(text, -1) {
		for name := range bytes.SplitSeq(row[1], []byte(", ")) {
			got = append(got, strings.Trim(string(name), "`"))
		}
	}
	var want []string
	for i := range reflect.TypeFor[job.Spec]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[job.Spec]().Field(i).Tag.Get("json"), ",")
		want = append(want, name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of fields (-schema +page):\n%s", diff)
	}
}
