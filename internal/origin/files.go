package origin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// File is one that a commit has.
type File struct {
	Path string // from the top of the repository, with slashes
	Data []byte
}

// ErrNoPath says that a commit does not have a directory or file.
var ErrNoPath = errors.New("the commit does not have it")

// Files are the files of a commit below a path, or the one at it, whose names are wanted, in the order of their names.
// The path is from the top of the repository that dir is in, or from dir where it begins with "./", as git has it.
func Files(ctx context.Context, dir, revision, path string, wanted func(path string) bool) ([]File, error) {
	if strings.HasPrefix(revision, "-") {
		return nil, fmt.Errorf("%q is no revision", revision)
	}
	commit, err := git(ctx, dir, "rev-parse", "--verify", "--end-of-options", revision+"^{commit}")
	if err != nil {
		if first, wrong := git(ctx, dir, "rev-list", "--all", "--max-count=1"); revision == "HEAD" && wrong == nil &&
			first == "" {
			return nil, ErrNoPath // the first commit is yet to come
		}
		return nil, err
	}
	if relative, ok := strings.CutPrefix(path, "./"); ok {
		prefix, err := git(ctx, dir, "rev-parse", "--show-prefix")
		if err != nil {
			return nil, err
		}
		path = prefix + relative
	}
	args := []string{"ls-tree", "-r", "-z", "--full-tree", commit}
	if path = strings.TrimSuffix(path, "/"); path != "" && path != "." {
		args = append(args, "--", path)
	}
	list, err := gitBytes(ctx, dir, nil, args...)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, ErrNoPath
	}
	var files []File
	var hashes strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		about, name, _ := strings.Cut(line, "\t")
		words := strings.Fields(about) // mode, type, hash; a link is a blob too
		if len(words) == 3 && words[1] == "blob" && strings.HasPrefix(words[0], "100") && wanted(name) {
			files = append(files, File{Path: name})
			hashes.WriteString(words[2] + "\n")
		}
	}
	batch, err := gitBytes(ctx, dir, []byte(hashes.String()), "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	return files, readBatch(files, batch)
}

// readBatch fills files with what 'git cat-file --batch' printed of them, in their order.
func readBatch(files []File, batch []byte) error {
	for i := range files {
		head, rest, found := bytes.Cut(batch, []byte("\n"))
		words := strings.Fields(string(head)) // hash, type, size
		if !found || len(words) != 3 {
			return fmt.Errorf("reading %s: git cat-file says %q", files[i].Path, head)
		}
		size, err := strconv.Atoi(words[2])
		if err != nil || size < 0 || size >= len(rest) {
			return fmt.Errorf("reading %s: git cat-file says %q", files[i].Path, head)
		}
		files[i].Data, batch = rest[:size], rest[size+1:]
	}
	return nil
}
