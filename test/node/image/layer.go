package image

import (
	"archive/tar"
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// entry is a file, a folder or a link of a layer. All belong to root.
type entry struct {
	path   string // absolute
	mode   fs.FileMode
	link   string    // what a symbolic link names
	mtime  time.Time // the epoch's start where it is zero
	source string    // the file of this machine that holds the content, where data does not
	data   []byte
}

func folder(path string) entry { return entry{path: path, mode: fs.ModeDir | 0o755} }

func file(path string, mode fs.FileMode, data string) entry {
	return entry{path: path, mode: mode, data: []byte(data)}
}

func link(path, target string) entry {
	return entry{path: path, mode: fs.ModeSymlink | 0o777, link: target}
}

// streamLayer is what writeLayer writes, for a reader that may stop early.
func streamLayer(ctx context.Context, entries []entry) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		buffer := bufio.NewWriterSize(w, 1<<20)
		w.CloseWithError(cmp.Or(writeLayer(ctx, buffer, entries), buffer.Flush()))
	}()
	return r
}

// writeLayer writes the entries as a tar file, sorted, so that a folder is before what it holds and equal layers are
// equal bytes.
func writeLayer(ctx context.Context, to io.Writer, entries []entry) error {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	w := tar.NewWriter(to)
	for _, e := range entries {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := e.write(w); err != nil {
			return fmt.Errorf("adding %s: %w", e.path, err)
		}
	}
	return w.Close()
}

func (e entry) write(w *tar.Writer) error {
	// Setuid programs gain nothing in a pod that may not gain privileges, and are refused by scanners.
	header := &tar.Header{
		Name: strings.TrimPrefix(e.path, "/"), Mode: int64(e.mode.Perm()), ModTime: time.Unix(0,
			0), Typeflag: tar.TypeReg,
	}
	if !e.mtime.IsZero() {
		header.ModTime = e.mtime.Truncate(time.Second)
	}
	switch {
	case e.mode.IsDir():
		header.Typeflag = tar.TypeDir
		header.Name += "/"
		if e.mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		return w.WriteHeader(header)
	case e.mode&fs.ModeSymlink != 0:
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
		return w.WriteHeader(header)
	case e.source == "":
		header.Size = int64(len(e.data))
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err := w.Write(e.data)
		return err
	}
	return e.writeSource(w, header)
}

func (e entry) writeSource(w *tar.Writer, header *tar.Header) error {
	source, err := os.Open(e.source)
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
