// Package notice collects the licences and notices of every module that is linked into a program of this repository, of
// what these took from others, and of Go itself, as those who made them ask of who hands the program on.
package notice

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/images/program"
)

// module is what is linked of a module: its name and version, its root and the folders of the packages.
type module struct {
	name, root string
	folders    []string
}

// Of returns the licences of all that a program links, by module. A module without a licence is an error.
func Of(ctx context.Context, t program.Target) (string, error) {
	goroot, err := run(ctx, t, "env", "GOROOT")
	if err != nil {
		return "", err
	}
	listed, err := run(ctx, t, "list", "-deps", "-f",
		"{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{.Main}}{{end}}\t{{.Dir}}", t.Package)
	if err != nil {
		return "", err
	}
	golang := &module{name: "Go", root: strings.TrimSpace(goroot)}
	var modules []*module
	byName := map[string]*module{}
	for _, line := range slices.Sorted(strings.Lines(listed)) {
		part := strings.Split(strings.TrimSpace(line), "\t")
		if len(part) < 5 { // of no module: Go's own packages, and what it took from others
			golang.folders = append(golang.folders, part...)
			continue
		}
		if part[3] == "true" { // what the repository's own LICENSE speaks of
			continue
		}
		name := part[0] + " " + part[1]
		if byName[name] == nil {
			byName[name] = &module{name: name, root: part[2]}
			modules = append(modules, byName[name])
		}
		byName[name].folders = append(byName[name].folders, part[4])
	}
	var out strings.Builder
	if err := golang.goTexts(&out); err != nil {
		return "", err
	}
	for _, m := range modules {
		if err := m.texts(&out); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// goTexts adds Go's licence. Distributions put the files of a package for people elsewhere than what is compiled, which
// is then a folder or a link below them.
func (m *module) goTexts(out *strings.Builder) error {
	err := m.texts(out)
	if err == nil {
		return nil
	}
	if resolved, linked := filepath.EvalSymlinks(m.root); linked == nil {
		m.root = resolved
	}
	m.root = filepath.Dir(m.root)
	if m.texts(out) == nil {
		return nil
	}
	return fmt.Errorf("%w nor above: this Go comes without its licence, use one of go.dev/dl", err)
}

var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// texts adds what a module says of its licence, in its root and in the folders from there to each package that is
// linked: what was taken from others has a licence of its own.
func (m *module) texts(out *strings.Builder) error {
	folders := map[string]bool{m.root: true}
	for _, folder := range m.folders {
		for ; !folders[folder] && strings.HasPrefix(folder, m.root); folder = filepath.Dir(folder) {
			folders[folder] = true
		}
	}
	found := false
	var all strings.Builder
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		names, err := licencesIn(folder)
		if err != nil {
			return fmt.Errorf("reading %s: %w", m.name, err)
		}
		for _, name := range names {
			path := filepath.Join(folder, name)
			text, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("reading the licence of %s: %w", m.name, err)
			}
			if short, err := filepath.Rel(m.root, path); err == nil {
				path = filepath.ToSlash(short)
			}
			fmt.Fprintf(&all, "==== %s, %s\n\n%s\n\n", m.name, path, bytes.TrimSpace(text))
			found = found || folder == m.root
		}
	}
	if !found {
		return fmt.Errorf("%s has no licence in %s", m.name, m.root)
	}
	out.WriteString(all.String())
	return nil
}

// licencesIn are the names of the files of a folder that speak of a licence.
func licencesIn(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if !e.IsDir() && licence.MatchString(e.Name()) && filepath.Ext(e.Name()) != ".go" {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func run(ctx context.Context, t program.Target, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = t.Root, t.Env()
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running go %s: %w\n%s", args[0], err, bytes.TrimSpace(words.Bytes()))
	}
	return string(out), nil
}
