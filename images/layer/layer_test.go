package layer

import (
	"archive/tar"
	"bytes"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWrite: the order in which entries were found is not in the layer.
func TestWrite(t *testing.T) {
	old := time.Date(2023, 3, 14, 17, 21, 0, 999, time.UTC)
	entries := []Entry{
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{Path: "/a/b", Mode: fs.ModeSetuid | 0o755, Data: []byte("x"), Time: old},
		Folder("/a"),
		File("/a-b", 0o644, ""),
		Link("/z", "a"),
	}
	write := func() []byte {
		var b bytes.Buffer
		if err := Write(&b, entries); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	first := write()
	slices.Reverse(entries)
	if !bytes.Equal(first, write()) {
		t.Error("the same entries in another order are another layer")
	}
	type line struct {
		Name, Link string
		Mode       int64
		ID         int
		Time       int64
	}
	var got []line
	for r := tar.NewReader(bytes.NewReader(first)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, line{h.Name, h.Linkname, h.Mode, h.Uid + h.Gid, h.ModTime.Unix()})
	}
	want := []line{
		{"a/", "", 0o755, 0, 0},
		{"a-b", "", 0o644, 0, 0},
		{"a/b", "", 0o755, 0, old.Unix()}, // without setuid
		{"tmp/", "", 0o1777, 0, 0},
		{"z", "a", 0o777, 0, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWithFolders: every entry has all folders above it, each once, and one that is there stays as it is.
func TestWithFolders(t *testing.T) {
	var got []string
	for _, e := range WithFolders([]Entry{
		File("/a/b/c", 0o644, ""), File("/a/d", 0o644, ""),
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		File("/tmp/e", 0o644, ""), File("/f", 0o644, ""),
	}) {
		got = append(got, e.Path+" "+e.Mode.String())
	}
	slices.Sort(got)
	want := []string{
		"/a drwxr-xr-x", "/a/b drwxr-xr-x", "/a/b/c -rw-r--r--", "/a/d -rw-r--r--", "/f -rw-r--r--", "/tmp dtrwxrwxrwx",
		"/tmp/e -rw-r--r--",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStream: whoever reads learns of a file that is not there.
func TestStream(t *testing.T) {
	gone := []Entry{{Path: "/x", Mode: 0o644, Source: filepath.Join(t.TempDir(), "none")}}
	if _, err := io.ReadAll(Stream(gone)); err == nil || !strings.Contains(err.Error(), "adding /x") {
		t.Errorf("a file that is not there: %v", err)
	}
	// Closing what was read in part ends the writer.
	r := Stream([]Entry{File("/a", 0o644, strings.Repeat("x", 1<<22))})
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
