package krm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/tegen-dev/tegen/internal/contract"
)

// localOnly refuses a kustomization that names what is not on this disk: kustomize would fetch it with git or over
// HTTP, and what is rendered must not depend on what a server says today.
func localOnly(dir string, seen map[string]bool) error {
	if seen[dir] {
		return nil
	}
	seen[dir] = true
	file, k, err := readFile(dir)
	if err != nil || file == "" {
		return err // without a file kustomize has words of its own
	}
	if len(k.HelmCharts) > 0 || k.HelmGlobals != nil {
		return fmt.Errorf("reading %s: helm charts are fetched by a program of their own: render them before", filepath.Join(dir, file))
	}
	entries := append(append([]string{}, k.Resources...), k.Components...)
	entries = append(entries, k.Generators...)
	entries = append(entries, k.Transformers...)
	entries = append(entries, k.Validators...)
	entries = append(entries, k.Configurations...)
	entries = append(entries, k.Crds...)
	for _, p := range k.Patches {
		entries = append(entries, p.Path)
	}
	for _, r := range k.Replacements {
		entries = append(entries, r.Path)
	}
	for _, p := range k.OpenAPI {
		entries = append(entries, p)
	}
	for _, e := range entries {
		if e == "" || strings.Contains(e, "\n") { // nothing, or the content itself
			continue
		}
		path := filepath.Join(dir, e)
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("reading %s: %s is not a file or directory here, and nothing is fetched", filepath.Join(dir, file), e)
		}
		if info.IsDir() {
			if err := localOnly(path, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// overlaidFS is the disk with a few files put over it. It hides the mark that keeps tegen's inputs out of a build,
// since here the build is only half done when they are needed.
type overlaidFS struct {
	filesys.FileSystem
	files map[string][]byte
}

func (fs overlaidFS) ReadFile(path string) ([]byte, error) {
	data, ok := fs.files[filepath.Clean(path)]
	if !ok {
		var err error
		if data, err = fs.FileSystem.ReadFile(path); err != nil {
			return nil, err
		}
	}
	if bytes.Contains(data, []byte(contract.APIVersion)) {
		data = bytes.ReplaceAll(data, []byte(localConfig), []byte("internal."+localConfig))
	}
	return data, nil
}

func (fs overlaidFS) Exists(path string) bool {
	_, ok := fs.files[filepath.Clean(path)]
	return ok || fs.holds(path) || fs.FileSystem.Exists(path)
}

func (fs overlaidFS) IsDir(path string) bool {
	_, ok := fs.files[filepath.Clean(path)]
	return !ok && (fs.holds(path) || fs.FileSystem.IsDir(path))
}

func (fs overlaidFS) CleanedAbs(path string) (filesys.ConfirmedDir, string, error) {
	if _, ok := fs.files[filepath.Clean(path)]; ok {
		return filesys.ConfirmedDir(filepath.Dir(path)), filepath.Base(path), nil
	}
	if fs.holds(path) && !fs.FileSystem.Exists(path) {
		return filesys.ConfirmedDir(filepath.Clean(path)), "", nil
	}
	return fs.FileSystem.CleanedAbs(path)
}

// holds says whether a path is the directory of a file that is in memory.
func (fs overlaidFS) holds(dir string) bool {
	for name := range fs.files {
		if filepath.Dir(name) == filepath.Clean(dir) {
			return true
		}
	}
	return false
}
