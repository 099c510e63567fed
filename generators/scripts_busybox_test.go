package generators_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// busybox is a search path with what curl's image has beside curl: busybox's programs, and none of GNU's or Info-ZIP's,
// which the other tests of these scripts run (FROM alpine in curl/curl-container).
func busybox(t *testing.T) (path string) {
	t.Helper()
	need(t, "busybox", "curl")
	dir := t.TempDir()
	if out, err := exec.Command("busybox", "--install", "-s", dir).CombinedOutput(); err != nil {
		t.Skipf("busybox installs nothing here: %v: %s", err, out)
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"curl", "sleep"} { // a step of the scripts is over at once
		_ = os.Remove(filepath.Join(dir, name))
	}
	if err := os.Symlink(curl, filepath.Join(dir, "curl")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sleep"), []byte("#!"+dir+"/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFetchOnBusybox: the datasets' scripts do on busybox what they do on Debian.
func TestFetchOnBusybox(t *testing.T) {
	path := busybox(t)
	good := zipped(t, "a/b.txt", "hello")
	for _, c := range []struct {
		name, sum string
		data      []byte
		lands     string // nothing, where the data is wrong
		says      string
	}{
		{"set.zip", sum(good), good, "a/b.txt", "done: "},
		{"set.tar", "", tarred(t, false, "a/b.txt", "hello"), "a/b.txt", "done: "},
		{"set.tar.gz", "", tarred(t, true, "a/b.txt", "hello"), "a/b.txt", "done: "},
		{"set.bin", "", []byte("hello"), "set.bin", "done: "},
		{"wrong.zip", sum([]byte("other")), good, "", "checksum mismatch"},
		{"half.zip", "", good[:len(good)/2], "", "cannot be unpacked as zip"},
		{"page.zip", "", []byte("<html>please log in</html>"), "", "cannot be unpacked as zip"},
		{"half.tar.gz", "", tarred(t, true, "a/b.txt", "hello")[:40], "", "cannot be unpacked as tar.gz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := volume(t)
			server := serve(t, true, map[string][]byte{"/" + c.name: c.data})
			dataset := "url: '" + server.URL + "/" + c.name + "'"
			if c.sum != "" {
				dataset += ", " + c.sum
			}
			f, w := fetcher(t, dir, dataset), waiter(t, dir, dataset)
			f.Command[0], w.Command[0] = filepath.Join(path, "sh"), filepath.Join(path, "sh")
			out, err := start(t, f, "PATH="+path)
			if !strings.Contains(out, c.says) || (err == nil) != (c.lands != "") {
				t.Errorf("%v:\n%s", err, out)
			}
			if waited, err := start(t, w, "PATH="+path, "WAIT_SECONDS=5"); (err == nil) != (c.lands != "") {
				t.Errorf("what waits for it: %v:\n%s", err, waited)
			}
			if c.lands == "" {
				if exists(variable(f, "DATASET_PART")) || exists(variable(f, "DATASET_DOWNLOAD")) {
					t.Error("the wrong bytes are left, and the next attempt would go on with them")
				}
				return
			}
			if got := read(t, filepath.Join(dir, c.lands)); got != "hello" {
				t.Errorf("%s holds %q:\n%s", c.lands, got, out)
			}
			if out, err := start(t, f, "PATH="+path); err != nil || !strings.Contains(out, "present already") {
				t.Errorf("the second run: %v:\n%s", err, out)
			}
		})
	}
}

// TestFetchResumesOnBusybox: what was left is gone on with, and a server that cannot resume costs only that.
func TestFetchResumesOnBusybox(t *testing.T) {
	path := busybox(t)
	data := []byte(strings.Repeat("0123456789", 1000))
	for _, resumes := range []bool{true, false} {
		dir := volume(t)
		server := serve(t, resumes, map[string][]byte{"/set.bin": data})
		f := fetcher(t, dir, "url: '"+server.URL+"/set.bin', "+sum(data))
		f.Command[0] = filepath.Join(path, "sh")
		leave(t, f, "DATASET_PART", data[:4000])
		out, err := start(t, f, "PATH="+path)
		if got := read(t, filepath.Join(dir, "set.bin")); err != nil || got != string(data) {
			t.Errorf("resumes %t: %v, %d bytes of %d:\n%s", resumes, err, len(got), len(data), out)
		}
	}
}
