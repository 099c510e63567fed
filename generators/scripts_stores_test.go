package generators_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeAWS does with a directory what the AWS CLI 1.45 was seen to do with a bucket behind a server of S3's API: sync
// makes the directory whatever is below the prefix, takes files away that the bucket has not, and does not fail where
// there is nothing; cp fails where there is no object.
const fakeAWS = `#!/bin/sh
set -eu
case "$1 $2 $3" in
  "s3 sync --delete")
    url=$5 to=$6
    mkdir -p "$to"
    rm -rf "$to"/*
    from=$BUCKET/${url#s3://bucket/}
    [ ! -d "$from" ] || cp -R "$from/." "$to/"
    [ -z "${CUT-}" ] || { echo half >"$to/x.txt.1a2B3c4d"; exit 1; }
    ;;
  "s3 cp --only-show-errors") cp "$BUCKET/${4#s3://bucket/}" "$5" ;;
  *) exit 252 ;;
esac
`

// lay writes files into a directory, which may be there.
func lay(t *testing.T, dir string, files map[string]string, mode os.FileMode) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// bucket is a directory with what is in a bucket, and a search path with the fake.
func bucket(t *testing.T) []string {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	lay(t, dir, map[string]string{"sets/x.txt": "one", "sets/a/y.txt": "two"}, 0o644)
	lay(t, bin, map[string]string{"aws": fakeAWS}, 0o755)
	return []string{"BUCKET=" + dir, "PATH=" + bin + ":" + os.Getenv("PATH")}
}

// TestFetchFromBucket: what is below a prefix, or one object, is there before the marker is, and nothing else.
func TestFetchFromBucket(t *testing.T) {
	env := bucket(t)
	for _, c := range []struct{ url, more, file, has, says string }{
		{"s3://bucket/sets/", "", "a/y.txt", "two", "done: "},
		{"s3://bucket/sats/", "", "", "", "nothing is below s3://bucket/sats/"},
		{"s3://bucket/sets/x.txt", "", "x.txt", "one", "done: "},
		{"s3://bucket/sets/z.txt", "", "", "", "No such file"},
		{"s3://bucket/sets/x.txt", ", " + sum([]byte("one")), "x.txt", "one", "done: "},
		{"s3://bucket/sets/x.txt", ", " + sum([]byte("other")), "", "", "checksum mismatch"},
	} {
		dir := volume(t)
		f := fetcher(t, dir, "url: '"+c.url+"', secret: s"+c.more)
		out, err := start(t, f, env...)
		if !strings.Contains(out, c.says) || (err == nil) != (c.file != "") {
			t.Errorf("%s%s: %v:\n%s", c.url, c.more, err, out)
		}
		if done := exists(variable(f, "DATASET_MARKER")); done != (c.file != "") {
			t.Errorf("%s%s: marked %t:\n%s", c.url, c.more, done, out)
		}
		if c.file != "" {
			if got := read(t, filepath.Join(dir, c.file)); got != c.has {
				t.Errorf("%s holds %q", c.file, got)
			}
			if out, err := start(t, f, env...); err != nil || !strings.Contains(out, "present already") {
				t.Errorf("the second run: %v:\n%s", err, out)
			}
		}
	}
}

// TestFetchFromBucketCut: the halves that a killed fetch left are not among the data, and files beside it stay.
func TestFetchFromBucketCut(t *testing.T) {
	env, dir := bucket(t), volume(t)
	lay(t, dir, map[string]string{"others.txt": "kept"}, 0o644)
	f := fetcher(t, dir, "url: 's3://bucket/sets/', secret: s")
	if out, err := start(t, f, append(env, "CUT=1")...); err == nil || exists(variable(f, "DATASET_MARKER")) {
		t.Errorf("a fetch that was cut: %v:\n%s", err, out)
	}
	if out, err := start(t, f, env...); err != nil {
		t.Errorf("the next: %v:\n%s", err, out)
	}
	if exists(filepath.Join(dir, "x.txt.1a2B3c4d")) || read(t, filepath.Join(dir, "x.txt")) != "one" ||
		read(t, filepath.Join(dir, "others.txt")) != "kept" {
		t.Error("the volume holds something else than the bucket and what was there")
	}
}

// fakeHub has the two calls of huggingface_hub that are made, by their signatures (src/huggingface_hub/hf_api.py and
// _snapshot_download.py): a directory that is there is returned as it is where the Hub is out of reach.
const fakeHub = `import os, pathlib
class File:
    def __init__(self, name): self.rfilename = name
class Info:
    sha = "7fd1"
    siblings = [File("config.json"), File("data/part.bin")]
class HfApi:
    def repo_info(self, repo_id, *, revision=None, repo_type=None):
        assert (repo_id, revision, repo_type) == ("acme/chat", "main", "dataset"), (repo_id, revision, repo_type)
        return Info
def snapshot_download(repo_id, *, repo_type=None, revision=None, local_dir=None):
    assert revision == "7fd1", revision
    root = pathlib.Path(local_dir)
    (root / "data").mkdir(parents=True, exist_ok=True)
    (root / "config.json").write_text("{}")
    if not os.environ.get("CUT"):
        (root / "data" / "part.bin").write_text("x")
    return local_dir
`

// TestFetchFromHub: all files of one commit are there before the marker is.
func TestFetchFromHub(t *testing.T) {
	need(t, "python3")
	lib, dir := t.TempDir(), volume(t)
	lay(t, lib, map[string]string{"huggingface_hub.py": fakeHub}, 0o644)
	f := fetcher(t, dir, "url: 'hf://datasets/acme/chat@main', path: chat")
	env := []string{"PYTHONPATH=" + lib}
	out, err := start(t, f, append(env, "CUT=1")...)
	if err == nil || !strings.Contains(out, "1 files were not fetched, the first is data/part.bin") ||
		exists(variable(f, "DATASET_MARKER")) {
		t.Errorf("a part of it: %v:\n%s", err, out)
	}
	for _, says := range []string{"done: ", "present already"} {
		if out, err := start(t, f, env...); err != nil || !strings.Contains(out, says) {
			t.Errorf("%v, and it does not say %q:\n%s", err, says, out)
		}
	}
	if got := read(t, filepath.Join(dir, "chat", "data", "part.bin")); got != "x" {
		t.Errorf("the file holds %q", got)
	}
}
