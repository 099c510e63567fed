package command

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writeNew makes the files below a directory, which it makes too. It writes all of them or none, and none in the place
// of one that is there.
func writeNew(dir string, all map[string][]byte) (err error) {
	names := slices.Sorted(maps.Keys(all))
	var there []string
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
			there = append(there, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("looking for %s: %w", name, err)
		}
	}
	if len(there) > 0 {
		return fmt.Errorf("%s has %s already: name another directory, or move them away", dir,
			strings.Join(there, ", "))
	}
	var made []string // in the order in which they were made
	defer func() {
		for _, name := range slices.Backward(made) {
			if err != nil {
				err = errors.Join(err, os.Remove(name))
			}
		}
	}()
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		directories, err := missingAbove(filepath.Dir(file))
		for _, d := range directories {
			if err == nil {
				err = os.Mkdir(d, 0o755) //nolint:gosec // people and git read it
			}
			if err == nil {
				made = append(made, d)
			}
		}
		if err == nil {
			err = createNew(file, all[name])
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		made = append(made, file)
	}
	return nil
}

// missingAbove are the directories that a directory needs and that are not there, from the outermost.
func missingAbove(dir string) (all []string, err error) {
	for {
		_, err := os.Stat(dir)
		if err == nil {
			slices.Reverse(all)
			return all, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, dir)
		dir = filepath.Dir(dir)
	}
}

// createNew writes a file that is not there, whole or not at all.
func createNew(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // people and git read it
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
