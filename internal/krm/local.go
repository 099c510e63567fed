package krm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

// localOnly refuses a kustomization that names what is not on this disk: kustomize would fetch it with git or over
// HTTP, and what is rendered must not depend on what a server says today. above are the directories on the way here.
func localOnly(dir string, above []string) error {
	if i := slices.Index(above, dir); i >= 0 {
		return fmt.Errorf("reading %s: it contains itself: %s", dir, strings.Join(append(above[i:], dir), " → "))
	}
	file, k, err := readFile(dir)
	if err != nil || file == "" {
		return err // without a file kustomize has words of its own
	}
	refuse := func(what, remedy string) error {
		return fmt.Errorf("reading %s: %s: %s", filepath.Join(dir, file), what, remedy)
	}
	if len(k.HelmCharts) > 0 || k.HelmGlobals != nil {
		return refuse("helm charts", "a program of its own fetches them: render them before")
	}
	for _, entry := range named(&k) {
		if entry == "" || strings.Contains(entry, "\n") { // nothing, or the content itself
			continue
		}
		path := filepath.Join(dir, entry)
		info, err := os.Stat(path)
		if err != nil {
			return refuse(entry, "it is not a file or directory here, and nothing is fetched")
		}
		if info.IsDir() {
			if err := localOnly(path, append(above, dir)); err != nil {
				return err
			}
		} else if !info.Mode().IsRegular() {
			return refuse(entry, notRegular)
		}
	}
	for _, entry := range slices.Concat(k.Generators, k.Transformers, k.Validators) {
		text := []byte(entry)
		if !strings.Contains(entry, "\n") {
			text, _ = readRegular(filepath.Join(dir, entry)) // a directory was looked at above
		}
		if remote := remoteIn(text); remote != "" {
			return refuse(remote, "it is not a file here, and nothing is fetched")
		}
	}
	return nil
}

// named are all the files and directories that a kustomization names.
func named(k *types.Kustomization) []string {
	out := slices.Concat(k.Resources, k.Components, k.Generators, k.Transformers, k.Validators, k.Configurations, k.Crds)
	for _, p := range k.PatchesStrategicMerge { //nolint:staticcheck // deprecated, and read all the same
		out = append(out, string(p))
	}
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) { //nolint:staticcheck // deprecated, and read all the same
		out = append(out, p.Path)
	}
	for _, r := range k.Replacements {
		out = append(out, r.Path)
	}
	for _, p := range k.OpenAPI {
		out = append(out, p)
	}
	for _, g := range k.ConfigMapGenerator {
		out = append(out, sources(g.KvPairSources)...)
	}
	for _, g := range k.SecretGenerator {
		out = append(out, sources(g.KvPairSources)...)
	}
	return out
}

// sources are the files of a generated ConfigMap or Secret, without the keys that they are given.
func sources(s types.KvPairSources) []string {
	out := slices.Clone(s.EnvSources)
	for _, f := range s.FileSources {
		if _, path, ok := strings.Cut(f, "="); ok {
			f = path
		}
		out = append(out, f)
	}
	return out
}

// remote is what kustomize would fetch, as the value of a field of a plugin's configuration.
var remote = regexp.MustCompile(`(?m)^\s*(?:-|[a-zA-Z]+:|- [a-zA-Z]+:)\s*["']?(?:[-._a-zA-Z0-9]+=)?((?:[a-z][a-z0-9+.-]*://|git@|git::|github\.com/)\S+)`)

// remoteIn returns the first address in the configuration of a built-in plugin, "" where it has none. Other
// configurations are read by nobody here.
func remoteIn(text []byte) string {
	if !bytes.Contains(text, []byte("apiVersion: builtin")) {
		return ""
	}
	if m := remote.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}

const notRegular = "it is neither a file nor a directory: a pipe or a device may never end"

// readRegular is os.ReadFile for what is a file, since reading a pipe waits for whoever writes into it.
func readRegular(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: errors.New(notRegular)}
	}
	return os.ReadFile(path)
}

// within says whether a path leads into a directory or below it, whatever links are on the way.
func within(dir, path string) bool {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return false
	}
	below, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(below)
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
		if data, err = readRegular(path); err != nil {
			return nil, err
		}
	}
	// Only in a file of inputs: any other may be what a ConfigMap is generated of, byte for byte.
	if bytes.Contains(data, []byte(names.APIVersion)) {
		data = yamldoc.JoinSurrogates(data)
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
