package krm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/yamldoc"
)

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
	seen  seenFiles // records the files that are read; may be nil
	from  string    // the directory that their names are relative to
}

func (fs overlaidFS) ReadFile(path string) ([]byte, error) {
	data, ok := fs.files[filepath.Clean(path)]
	if !ok {
		var err error
		if data, err = readRegular(path); err != nil {
			return nil, err
		}
	}
	fs.seen.add(fs.from, path, data)
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
