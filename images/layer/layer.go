// Package layer writes files as a layer of an image: a tar file that depends on the files alone, not on the order in
// which they were found, the clock or the users of the machine.
package layer

import (
	"archive/tar"
	"bufio"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Entry is a file, a folder or a symbolic link, owned by root.
type Entry struct {
	Path   string // absolute
	Mode   fs.FileMode
	Link   string    // target of a symbolic link
	Time   time.Time // default: 1970
	Source string    // file of this machine that holds the content, if Data does not
	Data   []byte
}

// Folder returns a folder that every user may enter.
func Folder(path string) Entry { return Entry{Path: path, Mode: fs.ModeDir | 0o755} }

// File returns a file with content.
func File(path string, mode fs.FileMode, data string) Entry {
	return Entry{Path: path, Mode: mode, Data: []byte(data)}
}

// Link returns a symbolic link.
func Link(path, target string) Entry {
	return Entry{Path: path, Mode: fs.ModeSymlink | 0o777, Link: target}
}

// WithFolders returns the entries and the folders above them.
func WithFolders(entries []Entry) []Entry {
	all := slices.Clone(entries)
	known := map[string]bool{"/": true}
	for _, e := range entries {
		known[e.Path] = true
	}
	for _, e := range entries {
		for dir := path.Dir(e.Path); !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			all = append(all, Folder(dir))
		}
	}
	return all
}

// Stream returns what Write writes, for a reader that may stop early.
func Stream(entries []Entry) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		buffer := bufio.NewWriterSize(w, 1<<20)
		w.CloseWithError(cmp.Or(Write(buffer, entries), buffer.Flush()))
	}()
	return r
}

// Write writes the entries as a tar file, sorted, so that a folder comes before its files and equal entries give equal
// bytes.
func Write(to io.Writer, entries []Entry) error {
	entries = slices.SortedFunc(slices.Values(entries), func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	w := tar.NewWriter(to)
	for _, e := range entries {
		if err := e.write(w); err != nil {
			return fmt.Errorf("adding %s: %w", e.Path, err)
		}
	}
	return w.Close()
}

func (e Entry) write(w *tar.Writer) error {
	data, err := e.Content()
	if err != nil {
		return err
	}
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: strings.TrimPrefix(e.Path, "/"), Linkname: e.Link, Size: int64(len(data)),
		Mode:    int64(e.Mode.Perm()), // without setuid, which is useless in restricted pods and which scanners report
		ModTime: e.Time.Truncate(time.Second),
	}
	switch e.Mode.Type() {
	case fs.ModeDir:
		header.Typeflag = tar.TypeDir
		header.Name += "/"
		if e.Mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
	case fs.ModeSymlink:
		header.Typeflag = tar.TypeSymlink
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// Content returns the bytes of a file.
func (e Entry) Content() ([]byte, error) {
	if e.Source == "" {
		return e.Data, nil
	}
	return os.ReadFile(e.Source)
}
