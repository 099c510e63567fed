package command

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/tegen-dev/tegen/internal/cli"
)

// page is a page of the documentation: text between code blocks, and these.
type page struct {
	name   string // docs/check.md
	prose  []string
	blocks []*block // blocks[i] follows prose[i]; the last prose follows the last block
}

// block is a code block.
type block struct {
	at     string // docs/check.md:12
	marker string // the HTML comment on the line above it, which says where the text comes from
	lang   string
	text   string
}

// readPages reads the pages whose blocks are run and compared.
func readPages(t *testing.T) (pages []*page) {
	t.Helper()
	atRoot(t)
	names, err := filepath.Glob("docs/*.md")
	if err != nil || len(names) < 20 {
		t.Fatalf("docs has %d pages: %v", len(names), err)
	}
	for _, name := range append(names, "README.md", "overlays/eks/README.md") {
		pages = append(pages, readPage(t, name))
	}
	return pages
}

func readPage(t *testing.T, name string) *page {
	t.Helper()
	p := &page{name: name}
	prose, marker := "", ""
	var open *block
	for i, line := range strings.Split(strings.TrimSuffix(content(t, name), "\n"), "\n") {
		lang, fence := strings.CutPrefix(line, "```")
		comment, isComment := strings.CutPrefix(line, "<!-- ")
		switch {
		case fence && open == nil:
			open = &block{at: fmt.Sprintf("%s:%d", name, i+1), marker: marker, lang: lang}
			p.prose, prose = append(p.prose, prose+line+"\n"), ""
		case fence:
			p.blocks, open = append(p.blocks, open), nil
			prose = line + "\n"
		case open != nil:
			open.text += line + "\n"
		default:
			prose += line + "\n"
		}
		marker = ""
		if isComment {
			marker = strings.TrimSuffix(comment, " -->")
		}
	}
	if open != nil {
		t.Fatalf("%s: the code block is not closed", open.at)
	}
	p.prose = append(p.prose, prose)
	return p
}

func (p *page) String() string {
	var b strings.Builder
	for i, prose := range p.prose {
		b.WriteString(prose)
		if i < len(p.blocks) {
			b.WriteString(p.blocks[i].text)
		}
	}
	return b.String()
}

func (p *page) marked(t *testing.T, marker string) *block {
	t.Helper()
	i := slices.IndexFunc(p.blocks, func(b *block) bool { return b.marker == marker })
	if i < 0 {
		t.Fatalf("%s has no block marked %q", p.name, marker)
	}
	return p.blocks[i]
}

// isFile says of a marker that the block below it is a file of that name.
var isFile = regexp.MustCompile(`^[\w./-]+\.(yaml|yml|json)$`).MatchString

// made sets the text of each block that files and commands make, as they make it now. Commands run in a directory
// with the overlays and fixtures of the repository and the files of the page.
func (p *page) made(t *testing.T) {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	desk := t.TempDir()
	if err := os.CopyFS(filepath.Join(desk, "overlays"), os.DirFS("overlays")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "fixtures"), filepath.Join(desk, "fixtures")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(desk)
	for _, b := range p.blocks {
		command, isCommand := strings.CutPrefix(b.marker, "tegen ")
		repository, err := os.ReadFile(filepath.Join(root, b.marker))
		switch {
		case isFile(b.marker) && err == nil:
			b.text = withoutComments(string(repository))
		case isFile(b.marker):
			write(t, b.marker, b.text)
		case isCommand:
			b.text = b.listed(t, strings.Fields(command))
		case b.lang == "console":
			b.run(t)
		case b.lang == "sh":
			b.try(t)
		}
	}
	t.Chdir(root)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withoutComments leaves out the lines that are comments alone.
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// listed is what a render wrote: files below its -o, and the kinds in them.
func (b *block) listed(t *testing.T, args []string) string {
	t.Helper()
	at := slices.Index(args, "-o")
	if at < 0 || at+1 == len(args) {
		t.Fatalf("%s: %q writes no directory", b.at, b.marker)
	}
	if _, msg, code := tegen("", args...); code != cli.ExitOK {
		t.Fatalf("%s: %q: exit %d:\n%s", b.at, b.marker, code, msg)
	}
	return listing(t, args[at+1])
}

// run makes the text of the block: each line that begins with "$ ", and what the command prints. Where that is what
// the page has but for hashes in names, the page's text stays.
func (b *block) run(t *testing.T) {
	t.Helper()
	var made strings.Builder
	for line := range strings.Lines(b.text) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok {
			continue
		}
		out, err := pipe(t, command)
		if err != nil {
			t.Errorf("%s: %v", b.at, err)
		}
		made.WriteString(line + out)
	}
	if hashOfName.ReplaceAllString(made.String(), "-…") != hashOfName.ReplaceAllString(b.text, "-…") {
		b.text = made.String()
	}
}

// hashOfName is another one with each change of what is rendered, which is no reason to change a page.
var hashOfName = regexp.MustCompile(`-[0-9a-f]{8}\b`)

// pipe runs commands that hand on their output: tegen's, "kustomize build DIR" and "cat FILE".
func pipe(t *testing.T, line string) (out string, err error) {
	t.Helper()
	notes := ""
	for command := range strings.SplitSeq(line, " | ") {
		args := strings.Fields(command)
		switch {
		case args[0] == "tegen":
			var msg string
			out, msg, _ = tegen(out, args[1:]...)
			notes += msg
		case args[0] == "cat" && len(args) == 2:
			out = content(t, args[1])
		case args[0] == "kustomize" && len(args) == 3 && args[1] == "build":
			built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), args[2])
			if err != nil {
				return "", fmt.Errorf("%s: %w", command, err)
			}
			text, err := built.AsYaml()
			if err != nil {
				return "", fmt.Errorf("%s: %w", command, err)
			}
			out = string(text)
		default:
			return "", fmt.Errorf("a test cannot run %q: what it cannot run is in a block of sh, without its output",
				command)
		}
	}
	return out + notes, nil
}

// try runs those commands of a script that need nothing but files of the page: they succeed.
func (b *block) try(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(b.text, " \\\n", " ")) {
		for _, args := range commands(line) {
			if !slices.Contains([]string{"explain", "graph", "plan", "render", "runbook", "vet"}, args[0]) ||
				strings.Contains(line, "--check") || slices.ContainsFunc(args[1:], isAbsent) {
				continue
			}
			if _, msg, code := tegen("", args...); code != cli.ExitOK {
				t.Errorf("%s: tegen %s: exit %d:\n%s", b.at, strings.Join(args, " "), code, msg)
			}
		}
	}
}

// isAbsent says of an argument that it looks like a file or a directory of jobs, and is none here.
func isAbsent(arg string) bool {
	_, err := os.Stat(arg)
	named := arg == "-" || arg == "jobs" || isFile(arg) || strings.ContainsAny(arg, "*") ||
		strings.HasPrefix(arg, "overlays/")
	return named && err != nil
}

// TestPageLanguages: scripts, programs and data of the pages can be read by what they are for, and each block says what
// it is.
func TestPageLanguages(t *testing.T) {
	readers := map[string][]string{
		"sh":     {"bash", "-n"},
		"python": {"python3", "-c", "import sys; compile(sys.stdin.read(), 'page', 'exec')"},
	}
	known := []string{"console", "dockerfile", "json", "lua", "mermaid", "text", "yaml"}
	for _, p := range readPages(t) {
		for _, b := range p.blocks {
			reader := readers[b.lang]
			switch {
			case reader == nil && !slices.Contains(known, b.lang):
				t.Errorf("%s: a block of %q: say sh, console, yaml or text", b.at, b.lang)
			case b.lang == "json" && !json.Valid([]byte(b.text)):
				t.Errorf("%s: no JSON", b.at)
			case reader != nil:
				if _, err := exec.LookPath(reader[0]); err != nil {
					t.Logf("%s is not checked: %v", b.at, err)
					continue
				}
				cmd := exec.Command(reader[0], reader[1:]...)
				cmd.Stdin = strings.NewReader(b.text)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v:\n%s", b.at, err, out)
				}
			}
		}
	}
}
