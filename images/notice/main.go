// Command notice writes to standard output the licences and notices of every module that is linked into a program of
// this repository, and of Go itself, as those who made them ask of who hands the program on. In go packages, out comes
// the NOTICE of their image. It fails over a module without a licence.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	text, err := notice(os.Args[1:])
	if err == nil {
		_, err = os.Stdout.WriteString(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// own is what the repository's own LICENSE speaks of.
const own = "github.com/tegen-dev/tegen"

// notice is the licences of all that packages link, by module.
func notice(packages []string) (string, error) {
	if len(packages) == 0 {
		return "", errors.New("no package given")
	}
	root, err := run("env", "GOROOT")
	if err != nil {
		return "", err
	}
	listed, err := run(append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}"}, packages...)...)
	if err != nil {
		return "", err
	}
	modules := slices.Sorted(strings.Lines(listed + "\n"))
	modules = slices.Compact(modules)
	var out strings.Builder
	if err := texts(&out, "Go", strings.TrimSpace(root)); err != nil {
		return "", err
	}
	for _, line := range modules {
		part := strings.Split(strings.TrimSpace(line), "\t")
		if len(part) < 3 || part[0] == own {
			continue
		}
		if err := texts(&out, part[0]+" "+part[1], part[2]); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// texts adds what a module's folder says of its licence.
func texts(out *strings.Builder, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licence.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("reading the licence of %s: %w", name, err)
		}
		found = true
		fmt.Fprintf(out, "==== %s, %s\n\n%s\n\n", name, e.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("%s has no licence in %s", name, dir)
	}
	return nil
}

func run(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running go %s: %w", args[0], err)
	}
	return string(out), nil
}
