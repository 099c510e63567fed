package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/generators"
)

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// TestPaint: the parts that people look for are colored, and without the colors each line is what it was.
func TestPaint(t *testing.T) {
	for line, want := range map[string]string{
		"a/b.yaml:3:7: spec.workers.min: 2 is above\n": "{1}a/b.yaml:3:7:{0}{1;31} spec.workers.min:{0} 2 is above\n",
		"a b.yaml:3:7: not YAML: x\n":                  "{1}a b.yaml:3:7:{0} not YAML: x\n",
		"a.yaml:1:1: note: spec.gang: so\n":            "{1}a.yaml:1:1:{0}{36} note:{0} spec.gang: so\n",
		"note: crds has no CRD of X\n":                 "{36}note:{0} crds has no CRD of X\n",
		"tegen: unknown flag: --x\n":                   "{1}tegen:{0} unknown flag: --x\n",
		"tegen: note: rendered for git\n":              "{1}tegen:{0}{36} note:{0} rendered for git\n",
		"j.yaml:4: Job a: spec.x: 1: dropped: why\n":   "{1}j.yaml:4:{0} Job a: spec.x: 1: {1;33}dropped:{0} why\n",
		"j.yaml:4: Job a: refused: dropped: why\n":     "{1}j.yaml:4:{0} Job a: {1;31}refused:{0} dropped: why\n",
		"j.yaml:4: Job a: added: why\n":                "{1}j.yaml:4:{0} Job a: {36}added:{0} why\n",
		"See 'tegen --help'.\n":                        "See 'tegen --help'.\n",
		"MUST EXIST\n":                                 "{1}MUST EXIST{0}\n",
		"FIT  yes: a place for all 3 pods\n":           "{1;32}FIT  yes{0}: a place for all 3 pods\n",
		"FIT  no: not all of 3 pods\n":                 "{1;31}FIT  no{0}: not all of 3 pods\n",
		"  PODS\n":                                     "  PODS\n",
		"no line end":                                  "no line end",
		"\n":                                           "\n",
	} {
		got := string(paint([]byte(line)))
		if shown := regexp.MustCompile("\x1b\\[([0-9;]*)m").ReplaceAllString(got, "{$1}"); shown != want {
			t.Errorf("%q: %s, want %s", line, shown, want)
		}
		if bare := escapes.ReplaceAllString(got, ""); bare != line {
			t.Errorf("without colors %q is %q", line, bare)
		}
	}
}

// TestColor: --color decides, and auto colors nothing that is no terminal. What is for programs never is.
func TestColor(t *testing.T) {
	atRoot(t)
	const wrong, good = "fixtures/invalid/access-mode-enum.yaml", "fixtures/valid/minimal.yaml"
	for _, c := range []struct {
		args    string
		colored bool
	}{
		{"vet " + wrong, false},
		{"vet --color=auto " + wrong, false},
		{"vet --color=never " + wrong, false},
		{"vet --color=always " + wrong, true},
		{"--color vet " + wrong, true},
		{"vet --color=always " + wrong + " -o json", false},
		{"vet --color=always " + wrong + " -o sarif", false},
		{"vet --color=always " + wrong + " -o github", false},
		{"vet --color=always --nosuch", true},
		{"plan --color=always " + good, true},
		{"plan " + good, false},
		{"plan --color=always -o json " + good, false},
		{"render --color=always fixtures/valid/network.yaml", false},
	} {
		out, msg, _ := tegen("", strings.Fields(c.args)...)
		if out+msg == "" || strings.HasPrefix(c.args, "render") && out == "" {
			t.Errorf("%s prints nothing", c.args)
		}
		if !strings.Contains(c.args, "render") {
			out += msg
		}
		if escapes.MatchString(out) != c.colored {
			t.Errorf("%s: %q", c.args, out)
		}
		plain, text, _ := tegen("", strings.Fields(strings.ReplaceAll(c.args, "--color=always", ""))...)
		if bare := escapes.ReplaceAllString(out, ""); c.colored && !strings.HasPrefix(c.args, "--color") &&
			bare != plain+text {
			t.Errorf("%s without colors is %q, want %q", c.args, bare, plain+text)
		}
	}
	if _, msg, code := tegen("", "vet", "--color=sometimes", wrong); code != 2 ||
		!strings.Contains(msg, "must be auto, always or never") {
		t.Errorf("exit %d: %s", code, msg)
	}
}

// TestHostileColors: colors are tegen's own; those in a file are spelled out.
func TestHostileColors(t *testing.T) {
	var out, msg bytes.Buffer
	stdin := strings.NewReader("a: !\x1b[31m b\nspec: \"\\e[31m\"\n")
	run(generators.Set{}, []string{"tegen", "vet", "-", "--color=always"}, stdin, &out, &msg)
	if strings.Contains(msg.String(), "\x1b[31m") || !escapes.MatchString(msg.String()) {
		t.Errorf("%q", msg.String())
	}
}

// TestWantsColor: what the environment says of colors.
func TestWantsColor(t *testing.T) {
	for _, c := range []struct {
		env, system string
		want        bool
	}{
		{"TERM=xterm", "linux", true},
		{"TERM=xterm NO_COLOR=1", "linux", false},
		{"TERM=xterm NO_COLOR=", "linux", true},
		{"TERM=dumb", "linux", false},
		{"", "linux", false},
		{"", "windows", false},
		{"WT_SESSION=1", "windows", true},
		{"WT_SESSION=1 NO_COLOR=1", "windows", false},
	} {
		env := map[string]string{}
		for entry := range strings.FieldsSeq(c.env) {
			name, value, _ := strings.Cut(entry, "=")
			env[name] = value
		}
		if got := wantsColor(func(name string) string { return env[name] }, c.system); got != c.want {
			t.Errorf("%s on %s: %t", c.env, c.system, got)
		}
	}
}

// TestColorOfTerminal runs the program on a real terminal, which script of util-linux makes.
func TestColorOfTerminal(t *testing.T) {
	script, err := exec.LookPath("script")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("no script of util-linux, which makes a terminal")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "tegen")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("a: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		env     []string
		colored bool
	}{
		{"./tegen vet a.yaml", []string{"TERM=xterm"}, true},
		{"./tegen vet a.yaml", []string{"TERM=xterm", "NO_COLOR=1"}, false},
		{"./tegen vet a.yaml", []string{"TERM=dumb"}, false},
		{"./tegen vet a.yaml --color=never", []string{"TERM=xterm"}, false},
		{"./tegen vet a.yaml 2>&1 | cat", []string{"TERM=xterm"}, false},
		{"./tegen vet a.yaml -o json", []string{"TERM=xterm"}, false},
	} {
		run := exec.CommandContext(t.Context(), script, "-qec", c.command, "/dev/null")
		run.Dir, run.Env = dir, append([]string{"PATH=" + os.Getenv("PATH"), "SHELL=/bin/sh"}, c.env...)
		out, err := run.Output()
		if len(out) == 0 || !strings.Contains(string(out), "required field is missing") {
			t.Fatalf("%s: %v: %q", c.command, err, out)
		}
		if escapes.Match(out) != c.colored {
			t.Errorf("%s with %v: %q", c.command, c.env, out)
		}
	}
}
