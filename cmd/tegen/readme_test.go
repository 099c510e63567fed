package main

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
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
)

// block is a code block of the README.
type block struct {
	at     string // README.md:12
	marker string // the HTML comment on the line above it, which says where the text comes from
	lang   string
	text   string
}

func readme(t *testing.T) []block {
	t.Helper()
	atRoot(t)
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	var open *block
	marker := ""
	for i, line := range strings.Split(string(text), "\n") {
		lang, fence := strings.CutPrefix(line, "```")
		comment, isComment := strings.CutPrefix(line, "<!-- ")
		switch {
		case fence && open == nil:
			open = &block{at: fmt.Sprintf("README.md:%d", i+1), marker: marker, lang: lang}
		case fence:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += line + "\n"
		}
		marker = ""
		if isComment {
			marker = strings.TrimSuffix(comment, " -->")
		}
	}
	if open != nil {
		t.Fatalf("%s: the code block is not closed", open.at)
	}
	return blocks
}

func marked(t *testing.T, blocks []block, marker string) block {
	t.Helper()
	i := slices.IndexFunc(blocks, func(b block) bool { return b.marker == marker })
	if i < 0 {
		t.Fatalf("README.md has no block marked %q", marker)
	}
	return blocks[i]
}

// TestReadmeJob holds the README's job against the fixture of that name, less its comments.
func TestReadmeJob(t *testing.T) {
	const fixture = "fixtures/valid/minimal.yaml"
	b := marked(t, readme(t), fixture)
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			want.WriteString(line)
		}
	}
	if diff := cmp.Diff(want.String(), b.text); diff != "" {
		t.Errorf("%s differs from %s (-want +got):\n%s", b.at, fixture, diff)
	}
}

// TestReadmeTree holds the README's listing against what the command writes: files, and the kinds in them.
func TestReadmeTree(t *testing.T) {
	const command = "tegen render fixtures/valid/minimal.yaml -o "
	b := marked(t, readme(t), command+"rendered")
	if diff := cmp.Diff(listing(t, renderMinimal(t)), b.text); diff != "" {
		t.Errorf("%s differs from what %q writes (-want +got):\n%s", b.at, command, diff)
	}
}

// renderMinimal writes the minimal job to a folder "rendered" in a directory that it returns.
func renderMinimal(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, msg, code := tegen("", "render", "fixtures/valid/minimal.yaml", "-o",
		filepath.Join(dir, "rendered")); code != cli.ExitOK {
		t.Fatalf("exit %d:\n%s", code, msg)
	}
	return dir
}

var peersRow = regexp.MustCompile("(?m)^\\| (?:[^|]*) \\| (?:nothing, with the image named|(?:nothing, without the " +
	"image; or )?`(rendezvous: [^`]*)`(?:, `(launcher: tegen)`)?) \\|$")

// TestReadmePeers renders each row of the table of stores at the place that the README's Environment describes.
func TestReadmePeers(t *testing.T) {
	blocks := readme(t)
	place := t.TempDir()
	for name, text := range map[string]string{
		"environment.yaml": marked(t, blocks, "lab/environment.yaml").text, "tegen.yaml": content(t,
			"overlays/kind/tegen.yaml"),
		"kustomization.yaml": "resources: [environment.yaml]\ntransformers: [tegen.yaml]\n",
	} {
		if err := os.WriteFile(filepath.Join(place, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	job := filepath.Join(place, "job.yaml")
	rows := peersRow.FindAllStringSubmatch(content(t, "README.md"), -1)
	for _, row := range rows {
		text := content(t, "fixtures/valid/minimal.yaml") + "  " + row[1] + "\n  " + row[2] + "\n"
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
	if len(rows) != 5 {
		t.Errorf("%d rows are read, want 5", len(rows))
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
		kinds[filepath.ToSlash(name)] = strings.Join(found, ", ")
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

// TestReadmeConsole runs what follows "$ tegen" in a console block and compares what it prints.
func TestReadmeConsole(t *testing.T) {
	ran := 0
	for _, b := range readme(t) {
		command, want, _ := strings.Cut(b.text, "\n")
		args, ok := strings.CutPrefix(command, "$ tegen ")
		if b.lang != "console" || !ok {
			continue
		}
		ran++
		out, msg, _ := tegen("", strings.Fields(args)...)
		if diff := cmp.Diff(want, out+msg); diff != "" {
			t.Errorf("%s: %s prints something else (-README +got):\n%s", b.at, command, diff)
		}
	}
	if ran == 0 {
		t.Error("README.md shows no mistake")
	}
}

// TestReadmeCheck builds the README's kustomization over the README's bundle, and checks the result.
func TestReadmeCheck(t *testing.T) {
	const file, command = "production/kustomization.yaml", "kustomize build production | tegen check -"
	blocks := readme(t)
	dir := renderMinimal(t)
	if err := os.Mkdir(filepath.Join(dir, "production"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(marked(t, blocks, file).text), 0o644); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
		filepath.Join(dir, "production"))
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	b := marked(t, blocks, command)
	_, msg, code := tegen(string(manifests), "check", "-")
	want, got := hashOfName.ReplaceAllString(b.text, "-…:"), hashOfName.ReplaceAllString("$ "+command+"\n"+msg, "-…:")
	if diff := cmp.Diff(want, got); diff != "" || code != cli.ExitError {
		t.Errorf("%s: exit %d, and it prints something else (-README +got):\n%s", b.at, code, diff)
	}
}

// hashOfName is another one with each change of what is rendered, which is no reason to change the README.
var hashOfName = regexp.MustCompile(`-[0-9a-f]{8}:`)

// TestReadmeCRDs holds the README's job against the definitions that tegen brings along.
func TestReadmeCRDs(t *testing.T) {
	const command = "cat elasticjob.yaml | tegen check --crds overlays/crds -"
	blocks := readme(t)
	b := marked(t, blocks, command)
	_, msg, code := tegen(marked(t, blocks, "elasticjob.yaml").text, "check", "--crds", "overlays/crds", "-")
	if diff := cmp.Diff(b.text, "$ "+command+"\n"+msg); diff != "" || code != cli.ExitError {
		t.Errorf("%s: exit %d, and it prints something else (-README +got):\n%s", b.at, code, diff)
	}
}

// TestReadmeCommands parses every tegen command line of the README without running it.
func TestReadmeCommands(t *testing.T) {
	parsed := 0
	for _, b := range readme(t) {
		if b.lang != "sh" && b.lang != "console" {
			continue
		}
		for line := range strings.Lines(b.text) {
			if b.lang == "console" && !strings.HasPrefix(line, "$ ") {
				continue // what a command printed
			}
			for _, args := range commands(line) {
				parsed++
				if err := parse(args); err != nil {
					t.Errorf("%s: tegen %s: %v", b.at, strings.Join(args, " "), err)
				}
			}
		}
	}
	if parsed < 5 {
		t.Errorf("%d command lines found: the README has more", parsed)
	}
}

var separators = regexp.MustCompile(`\s*(\|\||&&|[|;])\s*`)

// commands returns the arguments of each tegen in a line of shell.
func commands(line string) [][]string {
	line, _, _ = strings.Cut(strings.TrimPrefix(line, "$ "), " #")
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
	root := newRootCmd(cli.Streams{})
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

// TestReadmeYAML reads every YAML block: one that nobody could apply teaches nothing.
func TestReadmeYAML(t *testing.T) {
	for _, b := range readme(t) {
		if b.lang != "yaml" {
			continue
		}
		if _, err := manifest.Read(b.at, []byte(b.text)); err != nil {
			t.Error(err)
		}
	}
}

var fieldRow = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")

// TestReadmeFields holds the table of fields against the schema: each field of spec has its word there.
func TestReadmeFields(t *testing.T) {
	atRoot(t)
	text, err := os.ReadFile("README.md")
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
	for i := range reflect.TypeFor[schema.Spec]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[schema.Spec]().Field(i).Tag.Get("json"), ",")
		want = append(want, name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of fields (-schema +README):\n%s", diff)
	}
}

var localLink = regexp.MustCompile(`\]\(([^):]+)\)`)

// TestLinks follows every link of the prose that stays in the repository.
func TestLinks(t *testing.T) {
	atRoot(t)
	for _, doc := range []string{
		"README.md", "CONTRIBUTING.md", "docs/design.md", "docs/images.md", "docs/plan.md",
		"docs/rendezvous.md", "docs/checkpoints.md",
	} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range localLink.FindAllSubmatch(text, -1) {
			target, _, _ := strings.Cut(string(m[1]), "#")
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), target)); err != nil {
				t.Errorf("%s: %v", doc, err)
			}
		}
	}
}
