package generators_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// files is a web server of a few files that notes what it was asked for.
type files struct {
	*httptest.Server
	resumes bool // serves a part of a file where it is asked for one

	mu      sync.Mutex
	content map[string][]byte
	breaks  http.HandlerFunc // answers what asks for no part
	seen    []string         // "path" or "path bytes=5-"
}

func serve(t *testing.T, resumes bool, content map[string][]byte) *files {
	t.Helper()
	f := &files{content: content, resumes: resumes}
	f.Server = httptest.NewServer(http.HandlerFunc(f.answer))
	t.Cleanup(f.Close)
	return f
}

func (f *files) answer(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Range")))
	data, ok := f.content[r.URL.Path]
	breaks := f.breaks
	f.mu.Unlock()
	if breaks != nil && r.Header.Get("Range") == "" {
		breaks(w, r)
		return
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	if f.resumes {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	_, _ = w.Write(data) // a client that hangs up is the test's matter
}

// put changes what the server has.
func (f *files) put(path string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.content[path] = data
}

func (f *files) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// need skips a test where the machine lacks a program that the image has.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("this machine has no %s, which the script runs", p)
		}
	}
}

// volume is a directory to stand for the volume; a job's mount path may not hold every character of TempDir's.
func volume(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// fetcher is the prefetch container of a job whose volume is a directory of this machine.
func fetcher(t *testing.T, dir, dataset string) corev1.Container {
	t.Helper()
	objs := objects(load(t, jobText("storage: [{mountPath: "+dir+", claim: c, dataset: {"+dataset+"}}]")), "prefetch")
	return all[*batchv1.Job](objs)[0].Spec.Template.Spec.Containers[0]
}

// waiter is the container that holds workers back.
func waiter(t *testing.T, dir, dataset string) corev1.Container {
	t.Helper()
	objs := objects(load(t, jobText("storage: [{mountPath: "+dir+", claim: c, dataset: {"+dataset+"}}]")), "worker")
	return all[*batchv1.Job](objs)[0].Spec.Template.Spec.InitContainers[0]
}

// start runs a container's command here. The scripts wait in steps of 5 seconds; here a step is over at once.
func start(t *testing.T, c corev1.Container, env ...string) (output string, err error) {
	t.Helper()
	out, err := command(t, c, env...).CombinedOutput()
	return string(out), err
}

func command(t *testing.T, c corev1.Container, env ...string) *exec.Cmd {
	t.Helper()
	shims := t.TempDir()
	if err := os.WriteFile(filepath.Join(shims, "sleep"), []byte("#!/bin/sh\necho \"slept $1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), c.Command[0], append(c.Command[1:], c.Args...)...)
	cmd.Env = []string{"PATH=" + shims + ":" + os.Getenv("PATH")}
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Dir = t.TempDir()
	return cmd
}

func fetch(t *testing.T, c corev1.Container) string {
	t.Helper()
	out, err := start(t, c)
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return out
}

func variable(c corev1.Container, name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func zipped(t *testing.T, name, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	f, err := w.Create(name)
	if err == nil {
		_, err = f.Write([]byte(text))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func tarred(t *testing.T, compress bool, name, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	if !compress {
		w = tar.NewWriter(&out)
	}
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil && compress {
		err = gz.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return "sha256: '" + hex.EncodeToString(s[:]) + "'"
}

// TestFetchFormats: each format lands unpacked in its place, and a second run asks for nothing.
func TestFetchFormats(t *testing.T) {
	need(t, "curl", "sha256sum")
	for _, c := range []struct {
		name, dataset string
		data          []byte
		programs      []string
		lands         string
		text          string
	}{
		{"set.zip", "path: sub/dir", zipped(t, "a/b.txt", "hello"), []string{"unzip"}, "sub/dir/a/b.txt", "hello"},
		{"SET.ZIP", "", zipped(t, "a/b.txt", "hello"), []string{"unzip"}, "a/b.txt", "hello"},
		{
			"set.tar.gz", "path: sub", tarred(t, true, "a/b.txt", "hello"),
			[]string{"tar", "gzip"},
			"sub/a/b.txt",
			"hello",
		},
		{"set.tgz", "", tarred(t, true, "a/b.txt", "hello"), []string{"tar", "gzip"}, "a/b.txt", "hello"},
		{"set.tar", "", tarred(t, false, "a/b.txt", "hello"), []string{"tar"}, "a/b.txt", "hello"},
		{"set.parquet", "path: tables", []byte("plain"), nil, "tables/set.parquet", "plain"},
		{
			"kept.zip", "unpack: false", zipped(t, "a/b.txt", "hello"), nil, "kept.zip",
			string(zipped(t, "a/b.txt", "hello")),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			need(t, c.programs...)
			dir := volume(t)
			server := serve(t, true, map[string][]byte{"/" + c.name: c.data})
			dataset := "url: '" + server.URL + "/" + c.name + "?token=a%20b', " + sum(c.data)
			if c.dataset != "" {
				dataset += ", " + c.dataset
			}
			f := fetcher(t, dir, dataset)
			out := fetch(t, f)
			if got := read(t, filepath.Join(dir, c.lands)); got != c.text {
				t.Errorf("%s holds %q, want %q; the script said:\n%s", c.lands, got, c.text, out)
			}
			if exists(variable(f, "DATASET_PART")) || !exists(variable(f, "DATASET_MARKER")) {
				t.Errorf("part left: %t, marker: %t", exists(variable(f, "DATASET_PART")),
					exists(variable(f, "DATASET_MARKER")))
			}
			if got := server.requests(); len(got) != 1 {
				t.Errorf("requests %q, want one", got)
			}
			if out := fetch(t, f); !strings.Contains(out, "present already") {
				t.Errorf("the second run said:\n%s", out)
			}
			if got := server.requests(); len(got) != 1 {
				t.Errorf("the second run made requests: %q", got)
			}
			// What waits for it sees it.
			if out, err := start(t, waiter(t, dir, dataset), "WAIT_SECONDS=0"); err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// TestFetchOtherDataset: a changed URL is fetched though the volume holds the marker of another.
func TestFetchOtherDataset(t *testing.T) {
	need(t, "curl")
	dir := volume(t)
	server := serve(t, true, map[string][]byte{"/a.bin": []byte("a"), "/b.bin": []byte("b")})
	for _, name := range []string{"a.bin", "b.bin"} {
		fetch(t, fetcher(t, dir, "url: '"+server.URL+"/"+name+"'"))
		if got := read(t, filepath.Join(dir, name)); got != name[:1] {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// TestFetchResumes: what an earlier attempt left is kept, and only the rest is asked for.
func TestFetchResumes(t *testing.T) {
	need(t, "curl", "sha256sum")
	data := bytes.Repeat([]byte("0123456789"), 1000)
	dir := volume(t)
	server := serve(t, true, map[string][]byte{"/set.bin": data})
	f := fetcher(t, dir, "url: '"+server.URL+"/set.bin', "+sum(data))
	leave(t, f, "DATASET_PART", data[:4000])
	out := fetch(t, f)
	if got := read(t, filepath.Join(dir, "set.bin")); got != string(data) {
		t.Errorf("%d bytes arrived, want %d:\n%s", len(got), len(data), out)
	}
	if got := server.requests(); !slices.Equal(got, []string{"/set.bin bytes=4000-"}) {
		t.Errorf("requests %q, want the rest alone", got)
	}
}

// TestFetchComplete: a pod that ended right after the last byte, or while it unpacked, left everything.
func TestFetchComplete(t *testing.T) {
	need(t, "curl", "sha256sum", "unzip")
	data := zipped(t, "a/b.txt", "hello")
	for _, c := range []struct {
		left     string
		resumes  bool
		requests int
	}{
		{"DATASET_PART", true, 2},  // the server refuses to resume at the end
		{"DATASET_PART", false, 1}, // curl sees that the file has the length of its part
		{"DATASET_DOWNLOAD", true, 0},
		{"DATASET_DOWNLOAD", false, 0},
	} {
		dir := volume(t)
		server := serve(t, c.resumes, map[string][]byte{"/set.zip": data})
		f := fetcher(t, dir, "url: '"+server.URL+"/set.zip'")
		leave(t, f, c.left, data)
		out := fetch(t, f)
		if got := read(t, filepath.Join(dir, "a/b.txt")); got != "hello" {
			t.Errorf("%+v: %q arrived:\n%s", c, got, out)
		}
		if got := server.requests(); len(got) != c.requests {
			t.Errorf("%+v: requests %q", c, got)
		}
		if left, _ := filepath.Glob(variable(f, "DATASET_STATE") + "/*"); !slices.Equal(left,
			[]string{variable(f, "DATASET_MARKER")}) {
			t.Errorf("%+v: left %q beside the marker", c, left)
		}
	}
}

// TestFetchStartsOver: a server that cannot resume costs the part, not the job.
func TestFetchStartsOver(t *testing.T) {
	need(t, "curl", "sha256sum")
	data := bytes.Repeat([]byte("0123456789"), 1000)
	dir := volume(t)
	server := serve(t, false, map[string][]byte{"/set.bin": data})
	f := fetcher(t, dir, "url: '"+server.URL+"/set.bin', "+sum(data))
	leave(t, f, "DATASET_PART", data[:4000])
	out := fetch(t, f)
	if got := read(t, filepath.Join(dir, "set.bin")); got != string(data) {
		t.Errorf("%d bytes arrived, want %d:\n%s", len(got), len(data), out)
	}
	if got := server.requests(); !slices.Equal(got, []string{"/set.bin bytes=4000-", "/set.bin"}) {
		t.Errorf("requests %q, want one for the rest and one for all", got)
	}
	if !strings.Contains(out, "starting over") || strings.Contains(out, "slept") {
		t.Errorf("the script said:\n%s", out)
	}
}

// TestFetchFails: nothing but the right bytes ever gets a marker.
func TestFetchFails(t *testing.T) {
	need(t, "curl", "sha256sum", "unzip")
	good := zipped(t, "a/b.txt", "hello")
	for _, c := range []struct {
		what, name, sum string
		data            []byte
		says            string
	}{
		{"wrong sum", "set.zip", sum([]byte("other")), good, "checksum mismatch"},
		{"no file", "gone.zip", "", good, "404"},
		{"not an archive", "set.zip", "", []byte("<html>please log in</html>"), ""},
		{"half an archive", "set.zip", "", good[:len(good)/2], ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := volume(t)
			server := serve(t, true, map[string][]byte{"/set.zip": c.data})
			dataset := "url: '" + server.URL + "/" + c.name + "'"
			if c.sum != "" {
				dataset += ", " + c.sum
			}
			f := fetcher(t, dir, dataset)
			out, err := start(t, f)
			if err == nil || !strings.Contains(out, c.says) {
				t.Errorf("%v, want a failure that says %q:\n%s", err, c.says, out)
			}
			if exists(variable(f, "DATASET_MARKER")) {
				t.Error("a marker says that the data is there")
			}
			if exists(variable(f, "DATASET_PART")) || exists(variable(f, "DATASET_DOWNLOAD")) {
				t.Error("the wrong bytes are left, and the next attempt would go on with them")
			}
			if exists(filepath.Join(dir, "a")) {
				t.Error("something was unpacked")
			}
			if out, err := start(t, waiter(t, dir, dataset), "WAIT_SECONDS=0"); err == nil {
				t.Errorf("a worker would start:\n%s", out)
			}
		})
	}
}

// TestFetchRetries: a connection that breaks costs the rest of the file, and a server that stays broken ends the
// attempts.
func TestFetchRetries(t *testing.T) {
	need(t, "curl", "sha256sum")
	data := bytes.Repeat([]byte("0123456789"), 1000)
	dir := volume(t)
	server := serve(t, true, map[string][]byte{"/set.bin": data})
	server.breaks = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:6000]) // and hangs up
	}
	f := fetcher(t, dir, "url: '"+server.URL+"/set.bin', "+sum(data))
	out := fetch(t, f)
	if got := read(t, filepath.Join(dir, "set.bin")); got != string(data) {
		t.Errorf("%d bytes arrived, want %d:\n%s", len(got), len(data), out)
	}
	if got := server.requests(); !slices.Equal(got, []string{"/set.bin", "/set.bin bytes=6000-"}) {
		t.Errorf("requests %q, want one that breaks and one for the rest", got)
	}

	dead := serve(t, true, nil)
	dead.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request,
	) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	broken := fetcher(t, dir, "url: '"+dead.URL+"/other.bin'")
	leave(t, broken, "DATASET_PART", data[:100])
	out, err := start(t, broken)
	if n := strings.Count(out, "slept 5"); err == nil || n != 9 {
		t.Errorf("%v after %d pauses, want a failure after 9:\n%s", err, n, out)
	}
	if got := len(read(t, variable(broken, "DATASET_PART"))); got != 100 {
		t.Errorf("%d of the 100 bytes that were there are left", got)
	}
}

// TestFetchRecovers: the attempt after a failure succeeds once the server has the right bytes.
func TestFetchRecovers(t *testing.T) {
	need(t, "curl", "sha256sum", "unzip")
	good := zipped(t, "a/b.txt", "hello")
	for what, check := range map[string]string{"with a sum": ", " + sum(good), "without": ""} {
		t.Run(what, func(t *testing.T) {
			dir := volume(t)
			server := serve(t, true, map[string][]byte{"/set.zip": bytes.Repeat([]byte("x"), 2*len(good))})
			f := fetcher(t, dir, "url: '"+server.URL+"/set.zip'"+check)
			if out, err := start(t, f); err == nil {
				t.Fatalf("the wrong bytes were taken:\n%s", out)
			}
			server.put("/set.zip", good)
			fetch(t, f)
			if got := read(t, filepath.Join(dir, "a/b.txt")); got != "hello" {
				t.Errorf("the file holds %q", got)
			}
		})
	}
}

func leave(t *testing.T, c corev1.Container, where string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(variable(c, "DATASET_STATE"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(variable(c, where), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFetchQuoting: values are data to the shell, whatever they hold.
func TestFetchQuoting(t *testing.T) {
	need(t, "curl")
	dir := volume(t)
	name := "a`touch${IFS}owned`;b&c*.bin"
	server := serve(t, true, map[string][]byte{"/" + name: []byte("data")})
	f := fetcher(t, dir, "url: '"+server.URL+"/"+name+"', path: '-x'")
	fetch(t, f)
	if got := read(t, filepath.Join(dir, "-x", name)); got != "data" {
		t.Errorf("the file holds %q", got)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*owned*")); len(found) > 0 {
		t.Errorf("the URL was run: %q", found)
	}
}
