package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	server "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/tegen-dev/tegen/images"
)

// sampleLayout is a folder with the layout of an image of two platforms, the first of which has an SBOM.
func sampleLayout(t *testing.T) (dir string, index v1.ImageIndex, referrer v1.Image) {
	t.Helper()
	b := images.Built{
		Image: images.Image{Name: "tegen"}, Index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
	}
	for n, system := range images.Systems()[:2] {
		img, err := random.Image(1024, 2, random.WithSource(rand.NewSource(int64(n))))
		if err != nil {
			t.Fatal(err)
		}
		img = mutate.MediaType(img, types.OCIManifestSchema1)
		about, err := partial.Descriptor(img)
		if err != nil {
			t.Fatal(err)
		}
		b.Platforms = append(b.Platforms, images.Platform{
			System: system, Image: img,
			SBOM: mutate.Subject(mutate.MediaType(empty.Image, types.OCIManifestSchema1), *about).(v1.Image),
		})
		b.Index = mutate.AppendManifests(b.Index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: system.Arch}},
		})
	}
	reference, err := images.Reference("", b.Name, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := b.Write(dir, reference); err != nil {
		t.Fatal(err)
	}
	return dir, b.Index, b.Platforms[0].SBOM
}

// guarded is a registry that asks for a name and a password, and notes what it was asked.
type guarded struct {
	http.Handler
	mu   sync.Mutex
	puts []string // paths of manifests, in order
	seen int
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.seen++
	g.mu.Unlock()
	if user, password, ok := r.BasicAuth(); !ok || user != "ann" || password != "secret" {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if _, what, found := strings.Cut(r.URL.Path, "/manifests/"); found && r.Method == http.MethodPut {
		g.mu.Lock()
		g.puts = append(g.puts, what)
		g.mu.Unlock()
	}
	g.Handler.ServeHTTP(w, r)
}

func newGuarded() *guarded {
	return &guarded{Handler: server.New(server.Logger(log.New(io.Discard, "", 0)), server.WithReferrersSupport(true))}
}

// signedIn makes docker's configuration hold a password for a host.
func signedIn(t *testing.T, host, password string) {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte("ann:"+password)))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
}

func digest(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// trust lets the library trust a server's certificate, until the test ends.
func trust(t *testing.T, s *httptest.Server) {
	t.Helper()
	before := remote.DefaultTransport
	remote.DefaultTransport = s.Client().Transport
	t.Cleanup(func() { remote.DefaultTransport = before })
}

func host(s *httptest.Server) string { return s.Listener.Addr().String() }

// TestPush: with the credentials of docker's configuration and over TLS, all of an image arrives, its referrers before
// its tag; pushed again, it is the same.
func TestPush(t *testing.T) {
	dir, index, referrer := sampleLayout(t)
	g := newGuarded()
	s := httptest.NewTLSServer(g)
	defer s.Close()
	signedIn(t, host(s), "secret")
	trust(t, s)
	want := host(s) + "/acme/tegen:v1.2.3@" + digest(t, index) + "\n"
	for range 2 {
		if got, err := push(t, dir, host(s)+"/acme"); got != want || err != nil {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
	if last := g.puts[len(g.puts)-1]; last != "v1.2.3" {
		t.Errorf("manifests came in the order %q", g.puts)
	}
	if tag, sbom := slices.Index(g.puts, "v1.2.3"), slices.Index(g.puts, digest(t, referrer)); sbom < 0 || tag < sbom {
		t.Errorf("manifests came in the order %q: the tag before the referrer %s", g.puts, digest(t, referrer))
	}

	options := []remote.Option{
		remote.WithTransport(s.Client().Transport), remote.WithAuthFromKeychain(authn.DefaultKeychain),
	}
	repository, err := name.NewRepository(host(s) + "/acme/tegen")
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Index(repository.Tag("v1.2.3"), options...)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := pulled.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	referrers, err := remote.Referrers(repository.Digest(manifest.Manifests[0].Digest.String()), options...)
	if err != nil {
		t.Fatal(err)
	}
	found, err := referrers.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Manifests) != 1 || found.Manifests[0].Digest.String() != digest(t, referrer) {
		t.Errorf("the registry lists the referrers %v", found.Manifests)
	}
}

// push runs the command on the image tegen of a folder.
func push(t *testing.T, dir, registry string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append([]string{"-dir", dir, "-images", "tegen", "-registry", registry},
		append(args, "push")...), &out)
	return out.String(), err
}

// TestPlainHTTP: plain HTTP is used only if the flag is set, also after a redirect; a tag replaces the layout's.
func TestPlainHTTP(t *testing.T) {
	dir, index, _ := sampleLayout(t)
	g := newGuarded()
	s := httptest.NewServer(g)
	defer s.Close()
	signedIn(t, host(s), "secret")
	if got, err := push(t, dir, host(s)); err == nil || !strings.Contains(err.Error(), "--plain-http") {
		t.Errorf("%q, %v", got, err)
	}
	redirecting := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer redirecting.Close()
	trust(t, redirecting)
	if got, err := push(t, dir, host(redirecting)); err == nil || !strings.Contains(err.Error(), "--plain-http") {
		t.Errorf("%q, %v", got, err)
	}
	if g.seen > 0 {
		t.Errorf("the registry has seen %d requests", g.seen)
	}
	want := host(s) + "/tegen:v2@" + digest(t, index) + "\n"
	if got, err := push(t, dir, host(s), "-plain-http", "-tag", "v2"); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}

// TestPushFails: the error names the fault and the fix. Package oci has the tests of what a registry refuses.
func TestPushFails(t *testing.T) {
	dir, _, _ := sampleLayout(t)
	g := newGuarded()
	s := httptest.NewTLSServer(g)
	defer s.Close()
	trust(t, s)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	for what, c := range map[string]struct{ dir, registry, want string }{
		"not signed in":     {dir, host(s), "docker login " + host(s)},
		"no layout":         {filepath.Join(dir, "none"), host(s), "'make images' writes"},
		"an empty layout":   {emptyLayout(t), host(s), "it holds no index of images"},
		"no registry":       {dir, "", "make push REGISTRY="},
		"a scheme":          {dir, "https://ghcr.io/acme", "without a scheme"},
		"a registry's host": {dir, "acme", "must name a registry"},
	} {
		if got, err := push(t, c.dir, c.registry); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %q", what, got, err, c.want)
		}
	}
	if len(g.puts) > 0 {
		t.Errorf("the registry has %q", g.puts)
	}
}

func emptyLayout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := layout.Write(filepath.Join(dir, "tegen"), empty.Index); err != nil {
		t.Fatal(err)
	}
	return dir
}
