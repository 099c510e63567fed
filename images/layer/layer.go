// Package layer writes files as a layer of an image: a tar file that depends on what the files are, and neither on the
// order in which they were found nor on the clock or the users of the machine.
package layer

import (
	"archive/tar"
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Entry is a file, a folder or a symbolic link. All belong to root.
type Entry struct {
	Path   string // absolute
	Mode   fs.FileMode
	Link   string    // what a symbolic link names
	Time   time.Time // the epoch's start where it is zero
	Source string    // the file of this machine that holds the content, where Data does not
	Data   []byte
}

// Folder returns a folder that everybody may enter.
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
func Stream(ctx context.Context, entries []Entry) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		buffer := bufio.NewWriterSize(w, 1<<20)
		w.CloseWithError(cmp.Or(Write(ctx, buffer, entries), buffer.Flush()))
	}()
	return r
}

// Write writes the entries as a tar file, sorted, so that a folder is before what it holds and equal layers are equal
// bytes.
func Write(ctx context.Context, to io.Writer, entries []Entry) error {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	w := tar.NewWriter(to)
	for _, e := range entries {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := e.write(w); err != nil {
			return fmt.Errorf("adding %s: %w", e.Path, err)
		}
	}
	return w.Close()
}

func (e Entry) write(w *tar.Writer) error {
	// Setuid programs gain nothing in a pod that may not gain privileges, and are refused by scanners.
	header := &tar.Header{
		Name: strings.TrimPrefix(e.Path, "/"), Mode: int64(e.Mode.Perm()), ModTime: time.Unix(0, 0),
		Typeflag: tar.TypeReg,
	}
	if !e.Time.IsZero() {
		header.ModTime = e.Time.Truncate(time.Second)
	}
	switch {
	case e.Mode.IsDir():
		header.Typeflag = tar.TypeDir
		header.Name += "/"
		if e.Mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		return w.WriteHeader(header)
	case e.Mode&fs.ModeSymlink != 0:
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.Link
		return w.WriteHeader(header)
	case e.Source == "":
		header.Size = int64(len(e.Data))
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err := w.Write(e.Data)
		return err
	}
	return e.writeSource(w, header)
}

func (e Entry) writeSource(w *tar.Writer, header *tar.Header) error {
	source, err := os.Open(e.Source)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // it is read only
	info, err := source.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, source)
	return err
}
