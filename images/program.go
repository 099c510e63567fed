package images

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// System is what a program is compiled for.
type System struct{ OS, Arch string }

func (s System) String() string { return s.OS + "/" + s.Arch }

// Systems are those that archives are made for, and images if they are Linux.
func Systems() (all []System) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		all = append(all, System{system, "amd64"}, System{system, "arm64"})
	}
	return all
}

// Target is a command of this repository and the system that it is compiled for.
type Target struct {
	Root string // of the repository
	Name string // of the program
	System
	Link map[string]string // values of variables, by package and name; the program does not list them
}

// module is the folder of the program's module: that of tegen-scheduler is scheduler, tegen's is the repository.
func (t Target) module() string {
	return filepath.Join(t.Root, strings.TrimPrefix(strings.TrimPrefix(t.Name, "tegen"), "-"))
}

// Program is a compiled command and what its file records of its origin.
type Program struct {
	Target
	*debug.BuildInfo
	File, SHA256 string
	// Version is the tag, or a version made of the commit's time and digest, with +dirty if files differ from the
	// commit. It is empty if the go command found no commit, and so is Revision.
	Version, Revision string
	Time              time.Time // of the commit, or 1970
}

// Build compiles the target into a file: static, without C, and without paths or settings of the machine, so that one
// commit gives the same bytes everywhere with the same version of Go.
func (t Target) Build(ctx context.Context, file string) (Program, error) {
	flags, err := t.ldflags()
	if err != nil {
		return Program{}, err
	}
	if _, err := t.goCommand(ctx, "build", "-trimpath", "-buildvcs=auto", "-ldflags", flags, "-o", file,
		"./cmd/"+t.Name); err != nil {
		return Program{}, fmt.Errorf("compiling %s for %s: %w", t.Name, t.System, err)
	}
	p := Program{Target: t, File: file, Time: time.Unix(0, 0)}
	content, err := os.ReadFile(file)
	if err != nil {
		return p, err
	}
	if p.BuildInfo, err = buildinfo.Read(bytes.NewReader(content)); err != nil {
		return p, err
	}
	sum := sha256.Sum256(content)
	p.SHA256 = hex.EncodeToString(sum[:])
	if p.Main.Version != "(devel)" {
		p.Version = p.Main.Version
	}
	for _, s := range p.Settings {
		switch s.Key {
		case "vcs.revision":
			p.Revision = s.Value
		case "vcs.time":
			p.Time, err = time.Parse(time.RFC3339, s.Value)
		}
	}
	return p, err
}

var kubernetes = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes (v\S+)`)

// ldflags leave out debug information. They link the release of Kubernetes into programs made of its modules, which
// would otherwise report v0.0.0-master, to the API server too.
func (t Target) ldflags() (string, error) {
	mod, err := os.ReadFile(filepath.Join(t.module(), "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading the module's versions: %w", err)
	}
	flags := "-s -w"
	if version := kubernetes.FindSubmatch(mod); version != nil {
		flags += " -X k8s.io/component-base/version.gitVersion=" + string(version[1])
	}
	for _, variable := range slices.Sorted(maps.Keys(t.Link)) {
		flags += " -X " + variable + "=" + t.Link[variable]
	}
	return flags, nil
}

// goCommand runs the go command without the caller's settings that would change the program. An empty variable falls
// back to the value that "go env -w" wrote, so only those are empty whose default cannot be written out.
func (t Target) goCommand(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.module()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Arch, "GOFLAGS=-mod=readonly",
		"GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GOEXPERIMENT=")
	return Output(cmd)
}

// Output returns what a command prints. Its error has what the command printed on standard error.
func Output(cmd *exec.Cmd) (string, error) {
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w", filepath.Base(cmd.Path), cmp.Or(cmd.Args[1:]...), err)
	}
	return string(out), nil
}

var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// Notice returns the licences and notices of Go and of each module that the target links, as their authors require of
// redistribution. They are in the module's root and in the folders from there to each linked package: code that the
// module copied from others has its own licence. A module without a licence is an error.
func (t Target) Notice(ctx context.Context) (string, error) {
	goroot, err := t.goCommand(ctx, "env", "GOROOT") // Root of a package that Go has copied may be a module's
	if err != nil {
		return "", err
	}
	listed, err := t.goCommand(ctx, "list", "-deps", "-f", "{{if .Standard}}Go\t"+strings.TrimSpace(goroot)+
		"\t{{.Dir}}{{else if not .Module.Main}}{{.Module.Path}} {{.Module.Version}}\t{{.Module.Dir}}\t{{.Dir}}{{end}}",
		"./cmd/"+t.Name)
	if err != nil {
		return "", fmt.Errorf("listing what %s links: %w", t.Name, err)
	}
	folders := map[string]map[string]bool{} // by the name and root of modules
	for line := range strings.Lines(listed) {
		part := strings.Split(strings.TrimSpace(line), "\t")
		if len(part) < 3 { // the repository's own, which LICENSE covers
			continue
		}
		name, root, folder := part[0], part[1], part[2]
		if folders[name+"\t"+root] == nil {
			folders[name+"\t"+root] = map[string]bool{}
		}
		for ; strings.HasPrefix(folder, root); folder = filepath.Dir(folder) {
			folders[name+"\t"+root][folder] = true
		}
	}
	var all strings.Builder
	for _, module := range slices.Sorted(maps.Keys(folders)) {
		name, root, _ := strings.Cut(module, "\t")
		text, err := licences(name, root, slices.Sorted(maps.Keys(folders[module])))
		if err != nil {
			return "", fmt.Errorf("collecting licences: %w", err)
		}
		all.WriteString(text)
	}
	return all.String(), nil
}

// licences returns the licences in folders of a module, the first of which is its root.
func licences(name, root string, folders []string) (string, error) {
	if _, err := os.Stat(filepath.Join(root, "LICENSE")); name == "Go" && err != nil {
		root = filepath.Dir(root) // Homebrew installs Go in a folder below its licence
		folders = append([]string{root}, folders...)
	}
	var all strings.Builder
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			if e.IsDir() || !licence.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, e.Name()))
			if err != nil {
				return "", err
			}
			below := strings.TrimPrefix(filepath.ToSlash(folder), filepath.ToSlash(root))
			fmt.Fprintf(&all, "==== %s, %s\n\n%s\n\n", name, strings.TrimPrefix(below+"/"+e.Name(), "/"),
				bytes.TrimSpace(text))
		}
		if all.Len() == 0 {
			return "", fmt.Errorf("%s has no licence in %s; for Go, use a distribution of go.dev/dl", name, root)
		}
	}
	return all.String(), nil
}
