package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/images/layer"
)

// leftOut are packages that nothing here uses, though others depend on them.
var leftOut = map[string]bool{
	"adduser":             true, // for scripts that run at installation, as are the next four
	"debconf":             true,
	"dpkg":                true,
	"init-system-helpers": true,
	"perl-base":           true,
	"libgl1-mesa-dri":     true, // drivers of a display, and with them 130 MB of LLVM
	"libtorch-test":       true,
	"python3-hypothesis":  true, // for torch's tests
	"python3-sympy":       true, // torch asks for it, and does without
	"fonts-dejavu-core":   true, // what libraries of pictures and videos read; torch only links them
	"fontconfig-config":   true,
	"gdal-data":           true,
	"iso-codes":           true,
	"proj-data":           true,
	"xkb-data":            true,
}

// pruned are folders without which the programs run.
var pruned = []string{
	"/usr/include",
	"/usr/lib/python3/dist-packages/torch/include",
	"/usr/lib/python3/dist-packages/torch/share",
	"/usr/lib/udev",
}

// shared are the parts of /usr/share that programs read. The rest is documentation, translations and pictures.
var shared = []string{"/usr/share/openmpi", "/usr/share/pmix"}

const (
	torchBin     = "/usr/lib/python3/dist-packages/torch/bin"
	alternatives = "/etc/alternatives"
)

// needed says whether the image wants a path of a package.
func needed(name string) bool {
	for _, dir := range pruned {
		if within(name, dir) {
			return false
		}
	}
	if within(name, "/usr/share") {
		for _, dir := range shared {
			if within(name, dir) {
				return true
			}
		}
		return name == "/usr/share"
	}
	if within(name, torchBin) {
		return name == torchBin || name == torchBin+"/torch_shm_manager" // the others are tests
	}
	if within(name, "/usr/lib") && strings.Contains(name, "/python3") {
		if strings.Contains(name, "/test/") || strings.Contains(name, "/tests/") {
			return false
		}
	}
	return path.Ext(name) != ".a"
}

func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// tree collects files of a root folder as entries of a layer, each once and with the folders above it.
type tree struct {
	root    string // "" outside of tests
	entries map[string]layer.Entry
	parents map[string]string // the folders of listed paths without links
}

// debianEntries are the wanted files of the packages.
func debianEntries(ctx context.Context, packages []record) ([]layer.Entry, error) {
	paths, err := listed(ctx, packages)
	if err != nil {
		return nil, err
	}
	return collect("", paths)
}

// collect is what of a root folder the image wants: the listed paths that are needed, and what belongs to them without
// being listed.
func collect(root string, paths []string) ([]layer.Entry, error) {
	t := &tree{root: root, entries: map[string]layer.Entry{}, parents: map[string]string{}}
	for _, name := range paths {
		if needed(name) {
			if err := t.add(name); err != nil {
				return nil, fmt.Errorf("adding %s: %w", name, err)
			}
		}
	}
	if err := t.addCaches(); err != nil {
		return nil, fmt.Errorf("adding what Python has compiled: %w", err)
	}
	if err := t.addAlternatives(); err != nil {
		return nil, fmt.Errorf("adding alternatives: %w", err)
	}
	return slices.Collect(maps.Values(t.entries)), nil
}

// canonical is a path without links in its folders: packages bring /bin/sh, and this machine has it in /usr/bin. It is
// empty where a folder does not exist.
func (t *tree) canonical(name string) (string, error) {
	dir, base := path.Split(path.Clean(name))
	real, ok := t.parents[dir]
	if !ok {
		resolved, err := filepath.EvalSymlinks(t.root + dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err == nil {
			real = path.Clean("/" + strings.TrimPrefix(resolved, t.root))
		}
		t.parents[dir] = real
	}
	if real == "" {
		return "", nil
	}
	return path.Join(real, base), nil
}

// add adds a path with the folders above it. One that is not there is not needed either: an administrator may have said
// that packages leave out their documentation. Nor is one that only root may read, since pods do not run as root.
func (t *tree) add(name string) error {
	name, err := t.canonical(name)
	if err != nil || name == "" || name == "/" {
		return err
	}
	if _, ok := t.entries[name]; ok {
		return nil
	}
	info, err := os.Lstat(t.root + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	e := layer.Entry{Path: name, Mode: info.Mode()}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if e.Link, err = os.Readlink(t.root + name); err != nil {
			return err
		}
	case info.Mode().IsRegular() && info.Mode()&0o004 != 0:
		// A cache of Python's holds for a source of one time.
		e.Source, e.Time = t.root+name, info.ModTime()
	case !info.IsDir():
		return nil
	}
	t.entries[name] = e
	return t.add(path.Dir(name))
}

// addCaches adds what Python has compiled of the sources, without which importing torch takes twice the time. No
// package lists them: they are made at installation.
func (t *tree) addCaches() error {
	caches := map[string][]fs.DirEntry{}
	var names []string
	for name := range t.entries {
		if path.Ext(name) == ".py" {
			names = append(names, name)
		}
	}
	for _, name := range names {
		cache := path.Join(path.Dir(name), "__pycache__")
		files, ok := caches[cache]
		if !ok {
			var err error
			if files, err = os.ReadDir(t.root + cache); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			caches[cache] = files
		}
		module := strings.TrimSuffix(path.Base(name), "py")
		for _, f := range files {
			rest, ours := strings.CutPrefix(f.Name(), module)
			// Such as cpython-311.pyc; other names are of optimised code, which nobody asks for.
			if !ours || path.Ext(rest) != ".pyc" || strings.Count(rest, ".") != 1 {
				continue
			}
			compiled := path.Join(cache, f.Name())
			if err := t.add(compiled); err != nil {
				return err
			}
			if e, ok := t.entries[compiled]; ok {
				e.Time = layer.Entry{}.Time // it says when the package was installed
				t.entries[compiled] = e
			}
		}
	}
	return nil
}

// addAlternatives adds the links that lead through /etc/alternatives to what is in the image, such as libblas.so.3 and
// mpirun. No package lists those either.
func (t *tree) addAlternatives() error {
	admin := "/var/lib/dpkg/alternatives"
	groups, err := os.ReadDir(t.root + admin)
	if err != nil {
		return err
	}
	for _, group := range groups {
		data, err := os.ReadFile(t.root + path.Join(admin, group.Name()))
		if err != nil {
			return err
		}
		for _, pair := range alternativeLinks(group.Name(), string(data)) {
			name, from := path.Join(alternatives, pair[0]), pair[1]
			target, err := os.Readlink(t.root + name)
			if err != nil {
				continue // no package provides this one
			}
			if target, err = t.canonical(target); err != nil {
				return err
			}
			if _, ok := t.entries[target]; !ok || !needed(from) {
				continue
			}
			if err := errors.Join(t.add(name), t.add(from)); err != nil {
				return err
			}
		}
	}
	return nil
}

// alternativeLinks reads a file of update-alternatives: the mode, the link, then two lines for each link that follows
// it, its name and itself, up to an empty line.
func alternativeLinks(group, data string) [][2]string {
	lines := strings.Split(data, "\n")
	if len(lines) < 2 {
		return nil
	}
	links := [][2]string{{group, lines[1]}}
	for rest := lines[2:]; len(rest) > 1 && rest[0] != ""; rest = rest[2:] {
		links = append(links, [2]string{rest[0], rest[1]})
	}
	return links
}
