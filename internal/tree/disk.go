package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// maxOpen is how many files are synced at a time: a file system makes one write of many.
const maxOpen = 64

// changing is called before each change of the file system, which is not made if it returns an error. Tests end the
// process in it, let the disk fail, or record the changes.
var changing = func(_, _ string) error { return nil }

// flush is syncFile, but in tests.
var flush = syncFile

// disk is a directory whose changes are all made by its methods, and by mkdir and syncAll.
type disk struct{ *os.Root }

func (d *disk) Mkdir(name string, mode os.FileMode) error {
	if err := changing("mkdir", name); err != nil {
		return err
	}
	return d.Root.Mkdir(name, mode)
}

func (d *disk) Rename(from, to string) error {
	if err := changing("rename", to); err != nil {
		return err
	}
	return d.Root.Rename(from, to)
}

func (d *disk) Remove(name string) error {
	if err := changing("remove", name); err != nil {
		return err
	}
	return d.Root.Remove(name)
}

// create makes a file that must not exist yet.
func (d *disk) create(name string) (*os.File, error) {
	if err := changing("create", name); err != nil {
		return nil, err
	}
	return d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

func (d *disk) write(f *os.File, content []byte) error {
	if err := changing("write", f.Name()); err != nil {
		return err
	}
	_, err := f.Write(content)
	return err
}

// syncFolders makes the names in folders outlast a loss of power. One that is gone needs none.
func (d *disk) syncFolders(folders map[string]bool) error {
	var all []*os.File
	for folder := range folders {
		f, err := d.Open(folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			all = append(all, f)
		}
		if err == nil && len(all) == maxOpen {
			err, all = syncAll(all), nil
		}
		if err != nil {
			return errors.Join(fmt.Errorf("syncing a directory: %w", err), closeAll(all))
		}
	}
	return syncAll(all)
}

// syncAll syncs and closes files and directories, all at a time.
func syncAll(files []*os.File) error {
	errs := make([]error, len(files))
	var wg sync.WaitGroup
	for i, f := range files {
		errs[i] = changing("sync", f.Name())
		wg.Go(func() { errs[i] = errors.Join(errs[i], flush(f), f.Close()) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func closeAll(files []*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// mkdir is os.MkdirAll that says which directories are new, the deepest first, and makes their names outlast a loss of
// power.
func mkdir(dir string) ([]string, error) {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		missing = append(missing, d)
	}
	if len(missing) == 0 {
		return nil, os.MkdirAll(dir, 0o777) // says what is there in the place of a directory
	}
	if err := errors.Join(changing("mkdir", dir), os.MkdirAll(dir, 0o777)); err != nil {
		return missing, err
	}
	var above []*os.File
	for _, d := range missing {
		f, err := os.Open(filepath.Dir(d))
		if err != nil {
			return missing, errors.Join(err, closeAll(above))
		}
		above = append(above, f)
	}
	return missing, syncAll(above)
}
