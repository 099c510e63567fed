package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// bashCompletion is where systems keep what tegen's script for bash needs, as every such script does.
var bashCompletion = []string{
	"/usr/share/bash-completion/bash_completion", "/opt/homebrew/etc/profile.d/bash_completion.sh",
	"/usr/local/etc/profile.d/bash_completion.sh",
}

// shells are those that complete here. PowerShell is not among them: only its script is looked at.
var shells = []struct {
	name string
	args []string
	load string // loads completion
}{
	{"bash", []string{"--noprofile", "--norc", "-i"}, "source %s; source <(tegen completion bash)"},
	{"zsh", []string{"-f", "-i"}, "autoload -U compinit; compinit -u -D; source <(tegen completion zsh)"},
	{"fish", []string{"--no-config", "-i"}, "tegen completion fish | source"},
}

// TestShells types into real shells, on a terminal, and looks at the command that they make of it.
func TestShells(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell.name, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(shell.name)
			if err != nil {
				t.Skipf("there is no %s here: install it to have its completion tried", shell.name)
			}
			load := shell.load
			if shell.name == "bash" {
				load = fmt.Sprintf(load, findBashCompletion(t))
			}
			s := startShell(t, program, shell.args...)
			s.run(load)
			for typed, want := range map[string]string{
				"tegen expl\t":                                 "tegen explain",
				"tegen explain spec.gang.topo\t":               "tegen explain spec.gang.topology.",
				"tegen explain spec.gang.topology.lev\t":       "tegen explain spec.gang.topology.level",
				"tegen explain --environment spec.topol\t":     "tegen explain --environment spec.topology.",
				"tegen init --framework horo\t --target mpi\t": "tegen init --framework horovod --target mpijob",
				"tegen graph jobs/res\t -o mer\t":              "tegen graph jobs/resnet.yaml -o mermaid",
				"tegen render jobs/r\t --overl\tov\tki\t":      "tegen render jobs/resnet.yaml --overlay overlays/kind",
				"tegen vet bro\t --overl\tnosuch/\t":           "tegen vet broken.yaml --overlay nosuch",
				"tegen runbook --with arg\t":                   "tegen runbook --with argocd",
				"tegen gitops flux ren\t --on-rem\tdel\t":      "tegen gitops flux rendered --on-removal delete",
				"tegen gitops arg\tconf\t --susp\tHea\t":       "tegen gitops argocd config --suspended Healthy",
				"tegen completion pow\t":                       "tegen completion powershell",
				"tegen publish oci://r.example/jobs:x ren\t":   "tegen publish oci://r.example/jobs:x rendered",
				"tegen help inst\tsch\t":                       "tegen help install scheduler",
			} {
				// zsh takes the slash of a directory back where no name follows.
				if got := strings.TrimSuffix(strings.ReplaceAll(s.complete(typed), "/ ", " "), "/"); got != want {
					t.Errorf("%q becomes %q, want %q", typed, got, want)
				}
			}
			if text := s.text(); strings.Contains(text, "Completion ended") || strings.Contains(text, "no such") {
				t.Errorf("the terminal shows what is not for people:\n%q", text)
			}
		})
	}
}

// findBashCompletion is the file of the package bash-completion.
func findBashCompletion(t *testing.T) string {
	t.Helper()
	for _, name := range bashCompletion {
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	t.Skip("there is no bash-completion here, without which bash completes no command of this kind: install it")
	return ""
}

// session is a shell that runs on a terminal.
type session struct {
	t       *testing.T
	tty     *os.File
	mu      sync.Mutex
	printed bytes.Buffer
	marks   int
}

// startShell starts a shell without settings of this machine, in a folder of jobs.
func startShell(t *testing.T, program string, args ...string) *session {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{
		"jobs/resnet.yaml", "broken.yaml", "overlays/kind/kustomization.yaml", "rendered/resnet/job.yaml",
	} {
		write(t, filepath.Join(dir, name), "{{ {")
	}
	if filepath.Base(program) != "fish" { // cobra's script for fish offers files whatever they are
		for _, name := range []string{"jobs/resnet.txt", "jobs/resnet.yaml.bak", "overlays/kite.yaml", "rendered.txt"} {
			write(t, filepath.Join(dir, name), "")
		}
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm", "LC_ALL=C", "INPUTRC=/dev/null",
		"ZDOTDIR=" + dir, "HISTFILE=", "PS1=$ ",
	}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 300})
	if errors.Is(err, pty.ErrUnsupported) {
		t.Skipf("there are no terminals of this kind on %s", runtime.GOOS)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, tty: tty}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s, tty) // it ends with the shell, as an error
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = tty.Close()
		<-read
	})
	return s
}

// Write keeps what the shell printed.
func (s *session) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.printed.Write(text)
}

func (s *session) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.printed.String()
}

// run has the shell run a line, and returns what it printed meanwhile.
func (s *session) run(line string) string {
	s.t.Helper()
	s.marks++
	before := len(s.text())
	// Quotes keep the line, which a terminal shows as it is typed, apart from what it prints.
	if _, err := fmt.Fprintf(s.tty, "%s\recho \"done-\"%d-\r", line, s.marks); err != nil {
		s.t.Fatal(err)
	}
	done := fmt.Sprintf("done-%d-", s.marks)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if text := s.text()[before:]; strings.Contains(text, done) {
			return text
		}
	}
	s.t.Fatalf("%q: the shell hangs:\n%q", line, s.text()[before:])
	return ""
}

// words are what printf makes of a command: each of its words in brackets.
var words = regexp.MustCompile(`<tegen>(<[^<>]*>)+`)

// complete types the beginning of a command, with tabs, and returns the command that the shell makes of it.
func (s *session) complete(typed string) string {
	s.t.Helper()
	text := s.run(typed + "\x01printf '<%s>' ")
	found := words.FindAllString(text, -1)
	if found == nil {
		s.t.Errorf("%q: the shell printed %q", typed, text)
		return ""
	}
	return strings.ReplaceAll(strings.Trim(found[len(found)-1], "<>"), "><", " ")
}
