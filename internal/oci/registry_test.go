package oci

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"

	"github.com/tegen-dev/tegen/internal/origin"
	"github.com/tegen-dev/tegen/test/ports"
)

// server is a registry with a record of what it was asked.
type server struct {
	*httptest.Server
	host string

	mu   sync.Mutex
	puts []string
}

// serve starts a registry; wrap, where it is not nil, stands before it.
func serve(t *testing.T, referrers bool, wrap func(http.Handler) http.Handler) *server {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(referrers))
	if wrap != nil {
		inner = wrap(inner)
	}
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			s.mu.Lock()
			s.puts = append(s.puts, filepath.Base(r.URL.Path))
			s.mu.Unlock()
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	s.host = strings.TrimPrefix(s.URL, "http://")
	t.Setenv("HOME", t.TempDir()) // no credentials of whoever runs the tests
	t.Setenv("DOCKER_CONFIG", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("REGISTRY_AUTH_FILE", "")
	return s
}

func (s *server) ref(t *testing.T, rest string) Reference {
	t.Helper()
	ref, err := ParseReference("oci://"+s.host+"/"+rest, true)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// publish pushes files and returns what was pushed.
func (s *server) publish(t *testing.T, ref Reference, files []File, from origin.Origin) (*Artifact, *Provenance) {
	t.Helper()
	a := newArtifact(t, files, from)
	p, err := NewProvenance(a, ref, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if err := NewClient("test", true).Push(t.Context(), ref, a, p); err != nil {
		t.Fatal(err)
	}
	return a, p
}

// TestPush: Flux finds the files in the first layer by the tag, as its source-controller looks for them.
func TestPush(t *testing.T) {
	for _, referrers := range []bool{true, false} {
		s := serve(t, referrers, nil)
		ref := s.ref(t, "team/jobs:eks")
		a, p := s.publish(t, ref, someFiles(), someOrigin())

		at, err := name.ParseReference(s.host+"/team/jobs:eks", name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		img, err := remote.Image(at)
		if err != nil {
			t.Fatal(err)
		}
		if digest, err := img.Digest(); err != nil || digest.String() != a.Digest() {
			t.Errorf("the tag names %s, want %s: %v", digest, a.Digest(), err)
		}
		layers, err := img.Layers()
		if err != nil {
			t.Fatal(err)
		}
		blob, err := layers[0].Compressed()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for _, f := range someFiles() {
			want[f.Path] = string(f.Content)
		}
		if diff := cmp.Diff(want, untar(t, blob)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		if got := s.puts[len(s.puts)-1]; got != "eks" {
			t.Errorf("manifests came in the order %q, want the tag last", s.puts)
		}
		index, err := remote.Referrers(at.Context().Digest(a.Digest()))
		if err != nil {
			t.Fatal(err)
		}
		listed, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if len(listed.Manifests) != 1 || listed.Manifests[0].Digest.String() != p.Digest() {
			t.Errorf("referrers: %+v, want %s", listed.Manifests, p.Digest())
		}
	}
}

// untar is what Flux and Argo CD both do with a layer: directories are made as files need them.
func untar(t *testing.T, blob io.Reader) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(blob)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(plain); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

// TestPushTwice: what is there already is not sent again, and the tag follows what is new.
func TestPushTwice(t *testing.T) {
	s := serve(t, true, nil)
	ref := s.ref(t, "team/jobs:eks")
	s.publish(t, ref, someFiles(), someOrigin())
	first := len(s.puts)
	s.publish(t, ref, someFiles(), someOrigin())
	if again := s.puts[first:]; len(again) > 0 {
		t.Errorf("the second time %q were put", again)
	}
	files := someFiles()
	files[0].Content = []byte("kind: Pod\n")
	a, p := s.publish(t, ref, files, someOrigin())
	if diff, err := NewClient("test", true).Verify(t.Context(), ref, a, p); err != nil || len(diff) > 0 {
		t.Errorf("the tag did not follow: %v %q", err, diff)
	}
}

func TestVerify(t *testing.T) {
	s := serve(t, true, nil)
	client := NewClient("test", true)
	ref := s.ref(t, "team/jobs:eks")
	files := someFiles()
	a, _ := s.publish(t, ref, files, someOrigin())
	verify := func(t *testing.T, at Reference, files []File, from origin.Origin, version string) []string {
		t.Helper()
		b := newArtifact(t, files, from)
		p, err := NewProvenance(b, at, version)
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Verify(t.Context(), at, b, p)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}

	t.Run("same", func(t *testing.T) {
		if got := verify(t, ref, someFiles(), someOrigin(), "v9.9.9"); len(got) > 0 {
			t.Errorf("got %q", got)
		}
		if got := verify(t, s.ref(t, "team/jobs@"+a.Digest()), someFiles(), someOrigin(), "v1.2.3"); len(got) > 0 {
			t.Errorf("by digest: got %q", got)
		}
	})
	t.Run("differs", func(t *testing.T) {
		other := []File{
			{Path: "resnet/worker.yaml", Content: []byte("kind: Job\nmetadata: {name: resnet2}\n")},
			{Path: "resnet/kustomization.yaml", Content: []byte("kind: Kustomization\nresources: []\n")},
			{Path: "gpt/worker.yaml", Content: []byte("kind: Job\n")},
		}
		from := someOrigin()
		from.Revision = "sha1:" + commit
		got := verify(t, ref, other, from, "v1.2.3")
		want := []string{
			"the digest is " + a.Digest() + ", and would be " + newArtifact(t, other, from).Digest(),
			fmt.Sprintf("annotation org.opencontainers.image.revision: is %q, and would be %q", "main@sha1:"+commit,
				"sha1:"+commit),
			files[2].Path + ": is published, and not here",
			"gpt/worker.yaml: is here, and not published",
			`resnet/kustomization.yaml:2: is "", and would be "resources: []"`,
			`resnet/worker.yaml:2: is "metadata: {name: resnet}", and would be "metadata: {name: resnet2}"`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("differences (-want +got):\n%s", diff)
		}
	})
	t.Run("no provenance", func(t *testing.T) {
		copied := s.ref(t, "team/copy:eks")
		put(t, copied, a.image)
		want := []string{"no provenance is attached: publish it again"}
		if diff := cmp.Diff(want, verify(t, copied, someFiles(), someOrigin(), "v1.2.3")); diff != "" {
			t.Errorf("differences (-want +got):\n%s", diff)
		}
	})
	t.Run("another provenance", func(t *testing.T) {
		forged := s.ref(t, "team/forged:eks")
		put(t, forged, a.image)
		b := *a
		b.files = b.files[1:]
		p, err := NewProvenance(&b, forged, "v1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		put(t, s.ref(t, "team/forged@"+p.Digest()), p.image)
		want := []string{"the provenance that is attached names other inputs than the files here: publish it again"}
		if diff := cmp.Diff(want, verify(t, forged, someFiles(), someOrigin(), "v1.2.3")); diff != "" {
			t.Errorf("differences (-want +got):\n%s", diff)
		}
	})
	t.Run("another program", func(t *testing.T) {
		packed := s.ref(t, "team/packed:eks")
		img := *a.image
		img.manifest = append([]byte(" "), img.manifest...)
		put(t, packed, &img)
		got := verify(t, packed, someFiles(), someOrigin(), "v1.2.3")
		if len(got) != 2 || !strings.HasPrefix(got[1], "all files and annotations are the same: it was packed by") {
			t.Errorf("got %q", got)
		}
	})
	t.Run("an index", func(t *testing.T) {
		index := s.ref(t, "team/index:eks")
		if err := remote.WriteIndex(index.ref, empty.Index); err != nil {
			t.Fatal(err)
		}
		got := verify(t, index, someFiles(), someOrigin(), "v1.2.3")
		want := "its type is application/vnd.oci.image.index.v1+json, and would be " +
			"application/vnd.oci.image.manifest.v1+json"
		if len(got) != 2 || got[1] != want {
			t.Errorf("got %q, want %s", got, want)
		}
	})
	t.Run("no artifact of ours", func(t *testing.T) {
		foreign := s.ref(t, "team/foreign:eks")
		img, err := newImage(manifestOf(t, a), static.NewLayer([]byte("x"), "application/x"), nil)
		if err != nil {
			t.Fatal(err)
		}
		put(t, foreign, img)
		got := verify(t, foreign, someFiles(), someOrigin(), "v1.2.3")
		if len(got) != 2 || !strings.HasSuffix(got[1], "it was not published by tegen") {
			t.Errorf("got %q", got)
		}
	})
}

// TestVerifyDripping: a registry that sends a byte now and then is not waited for without end.
func TestVerifyDripping(t *testing.T) {
	s := serve(t, true, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(" ")) // the client goes
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		})
	})
	a := newArtifact(t, someFiles(), someOrigin())
	client := NewClient("test", true)
	client.patience = 300 * time.Millisecond
	start := time.Now()
	_, err := client.Verify(t.Context(), s.ref(t, "team/jobs:eks"), a, newProvenance(t, a))
	if err == nil || !strings.Contains(err.Error(), "did not finish within 300ms: check the registry") {
		t.Errorf("%v", err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
}

// TestVerifyForgery: names that a registry chose stay in their line, so that none is taken for a command.
func TestVerifyForgery(t *testing.T) {
	s := serve(t, true, nil)
	a := newArtifact(t, someFiles(), someOrigin())
	manifest := manifestOf(t, a)
	manifest.Annotations["x\n::error::pwn"] = "y\n::error::pwn"
	img, err := newImage(manifest, static.NewLayer([]byte("x"), LayerType), nil)
	if err != nil {
		t.Fatal(err)
	}
	ref := s.ref(t, "team/forged:eks")
	put(t, ref, img)
	got, err := NewClient("test", true).Verify(t.Context(), ref, a, newProvenance(t, a))
	if text := fmt.Sprint(got, err); strings.Contains(text, "\n") {
		t.Errorf("several lines: %q", text)
	}
}

// TestVerifyHostile: a layer that others could read differently is an error, as is one that is cut off.
func TestVerifyHostile(t *testing.T) {
	s := serve(t, true, nil)
	a := newArtifact(t, someFiles(), someOrigin())
	p := newProvenance(t, a)
	for what, c := range map[string]struct {
		headers []tar.Header
		want    string
	}{
		"twice": {[]tar.Header{{Name: "a"}, {Name: "a"}}, "is there twice"},
		"link":  {[]tar.Header{{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}, "is no file"},
		"cut":   {nil, "unpacking its layer"},
	} {
		var text strings.Builder
		plain := gzip.NewWriter(&text)
		archive := tar.NewWriter(plain)
		for _, h := range c.headers {
			if err := archive.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		if what == "cut" {
			_, _ = plain.Write([]byte("no archive"))
		} else if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		if err := plain.Close(); err != nil {
			t.Fatal(err)
		}
		img, err := newImage(manifestOf(t, a), static.NewLayer([]byte(text.String()), LayerType), nil)
		if err != nil {
			t.Fatal(err)
		}
		ref := s.ref(t, "team/hostile:"+what)
		put(t, ref, img)
		_, err = NewClient("test", true).Verify(t.Context(), ref, a, p)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", what, err, c.want)
		}
	}
}

// TestCredentials: those of the docker configuration are used, and without them the error says how to log in.
func TestCredentials(t *testing.T) {
	s := serve(t, true, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, ok := r.BasicAuth()
			switch {
			case !ok || password != "s3cret":
				w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
				w.WriteHeader(http.StatusUnauthorized)
			case user != "writer" && r.Method != http.MethodGet && r.Method != http.MethodHead:
				w.WriteHeader(http.StatusForbidden)
			default:
				next.ServeHTTP(w, r)
			}
		})
	})
	ref := s.ref(t, "team/jobs:eks")
	a := newArtifact(t, someFiles(), someOrigin())
	p := newProvenance(t, a)
	for _, c := range []struct{ user, password, want string }{
		{"", "", "wants a login, or another one: run 'docker login " + s.host + "'"},
		{"writer", "wr0ng", "wants a login, or another one: run 'docker login " + s.host + "'"},
		{"reader", "s3cret", "this login may not push to " + s.host + "/team/jobs: ask for the right"},
		{"writer", "s3cret", ""},
	} {
		t.Setenv("DOCKER_CONFIG", t.TempDir())
		if c.user != "" {
			text := `{"auths":{"` + s.host + `":{"username":"` + c.user + `","password":"` + c.password + `"}}}`
			file := filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := NewClient("test", true).Push(t.Context(), ref, a, p)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.user, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", c.user, err, c.want)
		case err != nil && c.password != "" && strings.Contains(err.Error(), c.password):
			t.Errorf("%s: the error holds the password: %v", c.user, err)
		}
	}
}

// TestPlainHTTP: no request leaves without TLS that did not ask for it, not even to this machine.
func TestPlainHTTP(t *testing.T) {
	s := serve(t, true, nil)
	ref, err := ParseReference("oci://"+s.host+"/team/jobs:eks", false)
	if err != nil {
		t.Fatal(err)
	}
	a := newArtifact(t, someFiles(), someOrigin())
	err = NewClient("test", false).Push(t.Context(), ref, a, newProvenance(t, a))
	if err == nil || !strings.Contains(err.Error(), "give --plain-http") {
		t.Errorf("got %v", err)
	}
}

// TestAuthority: a certificate that nobody known signed stops everything.
func TestAuthority(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	ref, err := ParseReference("oci://"+strings.TrimPrefix(s.URL, "https://")+"/team/jobs:eks", false)
	if err != nil {
		t.Fatal(err)
	}
	a := newArtifact(t, someFiles(), someOrigin())
	_, err = NewClient("test", false).Verify(t.Context(), ref, a, newProvenance(t, a))
	if err == nil || !strings.Contains(err.Error(), "SSL_CERT_FILE") {
		t.Errorf("got %v", err)
	}
}

// TestNoAnswer: where no registry answers, or one has nothing but its failure to say, the error says what to do.
func TestNoAnswer(t *testing.T) {
	free := ports.Address(t)
	failing := func(code int) string {
		return serve(t, true, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					next.ServeHTTP(w, r)
				} else {
					w.WriteHeader(code)
				}
			})
		}).host
	}
	a := newArtifact(t, someFiles(), someOrigin())
	for host, want := range map[string]string{
		free:                                    "nobody listens at " + free + ": start the registry",
		"registry.invalid":                      "no address of registry.invalid is known here: correct the name",
		failing(http.StatusInsufficientStorage): "itself failed: its log says why",
		failing(http.StatusTooManyRequests):     "has had too many requests: try again later",
	} {
		to, err := ParseReference("oci://"+host+"/team/jobs:eks", true)
		if err != nil {
			t.Fatal(err)
		}
		err = NewClient("test", true).Push(t.Context(), to, a, newProvenance(t, a))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	to, err := ParseReference("oci://"+free+"/team/jobs:eks", false)
	if err != nil {
		t.Fatal(err)
	}
	err = NewClient("test", false).Push(t.Context(), to, a, newProvenance(t, a))
	if err == nil || !strings.Contains(err.Error(), "nobody listens at "+free) {
		t.Errorf("with TLS: got %v", err)
	}
}

func TestNothingThere(t *testing.T) {
	s := serve(t, true, nil)
	a := newArtifact(t, someFiles(), someOrigin())
	_, err := NewClient("test", true).Verify(t.Context(), s.ref(t, "team/jobs:eks"), a, newProvenance(t, a))
	if err == nil || !strings.Contains(err.Error(), "there is no "+s.host+"/team/jobs:eks: correct the name") {
		t.Errorf("got %v", err)
	}
}
