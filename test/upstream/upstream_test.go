package upstream

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The SHA-256 of "a" and "b", as sha256sum prints them.
const (
	digestA = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
	digestB = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"
)

// stored is a store of its own folders, with one locked file of a source.
func stored(t *testing.T, source, digest string) *store {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s, err := open(filepath.Join(t.TempDir(), "checkout"),
		fmt.Appendf(nil, "- {project: acme, version: v1.2.3, source: %q, files: {a.yaml: %q}}", source, digest))
	if err != nil {
		t.Fatal(err)
	}
	s.cache = t.TempDir() // not every system asks XDG_CACHE_HOME
	return s
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// want asserts on the whole words of an error, of which {beside} and {cache} are the folders.
func want(t *testing.T, s *store, err error, words string) {
	t.Helper()
	words = strings.NewReplacer("{beside}", s.beside, "{cache}", s.cache).Replace(words)
	if err == nil || err.Error() != words {
		t.Errorf("got  %v\nwant %s", err, words)
	}
}

// TestFiles: no file is found but one of the locked digest, beside the checkout or in the cache.
func TestFiles(t *testing.T) {
	s := stored(t, "https://acme.example/{version}", digestA)
	files, err := s.files()
	if !errors.Is(err, ErrAbsent) || files != nil {
		t.Errorf("got %v, %v, want %v", files, err, ErrAbsent)
	}
	want(t, s, err, "CRDs of other projects are not on this machine: run 'make crds' (a.yaml)")

	beside := filepath.Join(s.beside, "a.yaml")
	write(t, beside, "b")
	_, err = s.files()
	want(t, s, err, "reading {beside}/a.yaml: its SHA-256 is "+digestB+", and test/upstream/lock.yaml wants "+digestA+
		" for acme v1.2.3: run 'make crds'")
	if errors.Is(err, ErrAbsent) {
		t.Error("a changed file passes for an absent one, and a test would be skipped")
	}

	cached := s.cached(s.definitions[0])
	write(t, cached, "a")
	if files, err := s.files(); err != nil || len(files) != 1 || files[0] != cached {
		t.Errorf("got %v, %v, want the right file of two, %s", files, err, cached)
	}
	write(t, beside, "a")
	if files, err := s.files(); err != nil || len(files) != 1 || files[0] != beside {
		t.Errorf("got %v, %v, want %s", files, err, beside)
	}
}

func TestFetchFromWeb(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.URL.Path != "/v1.2.3/crds/a.yaml" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "a")
	}))
	defer server.Close()
	s := stored(t, server.URL+"/{version}/crds", digestA)
	for range 2 {
		if err := s.fetch(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	files, err := s.files()
	if err != nil || asked != 1 {
		t.Fatalf("%d requests, %v", asked, err)
	}
	if text, err := os.ReadFile(files[0]); string(text) != "a" || err != nil {
		t.Errorf("%s holds %q, %v", files[0], text, err)
	}

	s = stored(t, server.URL+"/{version}/crds/a.yaml", digestB)
	want(t, s, s.fetch(t.Context(), io.Discard), "fetching "+server.URL+"/v1.2.3/crds/a.yaml: its SHA-256 is "+digestA+
		", and test/upstream/lock.yaml wants "+digestB+" for acme v1.2.3")
	if _, err := s.files(); !errors.Is(err, ErrAbsent) {
		t.Errorf("a file of another digest was kept: %v", err)
	}
	s = stored(t, server.URL+"/none", digestA)
	want(t, s, s.fetch(t.Context(), io.Discard), "fetching "+server.URL+"/none/a.yaml: 404 Not Found")
}

// TestFetchFromModule has a folder for a module proxy.
func TestFetchFromModule(t *testing.T) {
	proxy := t.TempDir()
	versions := filepath.Join(proxy, "acme.example/module/@v")
	write(t, filepath.Join(versions, "v1.2.3.info"), `{"Version": "v1.2.3"}`)
	write(t, filepath.Join(versions, "v1.2.3.mod"), "module acme.example/module\n")
	packed, err := os.Create(filepath.Join(versions, "v1.2.3.zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(packed)
	w, err := z.Create("acme.example/module@v1.2.3/crds/a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "a"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"GOPROXY": "file://" + filepath.ToSlash(proxy), "GONOSUMDB": "*", "GOMODCACHE": t.TempDir(),
		"GOFLAGS": "-modcacherw",
	} {
		t.Setenv(name, value)
	}
	s := stored(t, "acme.example/module@{version}/crds", digestA)
	if err := s.fetch(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
	if files, err := s.files(); err != nil || len(files) != 1 {
		t.Errorf("got %v, %v", files, err)
	}
	s = stored(t, "acme.example/none@{version}/crds", digestA)
	if err := s.fetch(t.Context(), io.Discard); err == nil ||
		!strings.Contains(err.Error(), "acme.example/none@v1.2.3") {
		t.Errorf("a module that is not there: %v", err)
	}
}

// ended notes how a test was ended.
type ended struct {
	testing.TB
	how string
}

func (e *ended) Helper()      {}
func (e *ended) Skip(...any)  { e.how += "skipped" }
func (e *ended) Fatal(...any) { e.how += "failed" }

func TestAbsent(t *testing.T) {
	for ci, want := range map[string]string{"": "skipped", "true": "failed"} {
		t.Setenv("CI", ci)
		e := &ended{}
		if Absent(e, ErrAbsent); !strings.HasPrefix(e.how, want) {
			t.Errorf("CI=%s: %s, want %s", ci, e.how, want)
		}
	}
}

// TestLock: each file of the lock has a whole digest, and a source of one version, and what is set aside is locked.
func TestLock(t *testing.T) {
	s, err := open("", locked)
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]string{}
	for name, reason := range SetAside {
		missing[name] = reason
	}
	for i, d := range s.definitions {
		version := d.release[strings.Index(d.release, " ")+1:]
		if len(d.sha256) != len(digestA) || len(version) < 2 || !strings.Contains(d.source, version) {
			t.Errorf("not pinned: %+v", d)
		}
		if i > 0 && d.name == s.definitions[i-1].name {
			t.Errorf("locked twice: %s", d.name)
		}
		delete(missing, d.name)
	}
	if diff := cmp.Diff(map[string]string{}, missing); diff != "" {
		t.Errorf("set aside, and not locked (-want +got):\n%s", diff)
	}
}

// TestSetAside keeps the reasons from becoming empty words.
func TestSetAside(t *testing.T) {
	for file, reason := range SetAside {
		if !strings.HasSuffix(reason, ".") || strings.Count(reason, " ") < 4 {
			t.Errorf("%s needs a sentence for a reason, has %q", file, reason)
		}
	}
}

// TestNoDigest: a definition that nobody has locked yet fails the tests, and fetching it tells the digest to lock.
func TestNoDigest(t *testing.T) {
	beside, cache := t.TempDir(), t.TempDir()
	unlocked := definition{name: "a.yaml", source: "x", release: "acme v1"}
	s := &store{beside: beside, cache: cache, definitions: []definition{unlocked}}
	if err := os.WriteFile(filepath.Join(beside, "a.yaml"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.files(); err == nil || errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), "make crds") {
		t.Errorf("not locked: %v", err)
	}
	sum := "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // of "a"
	if err := s.definitions[0].check([]byte("a")); err == nil || !strings.Contains(err.Error(), sum) {
		t.Errorf("fetched: %v", err)
	}
}
