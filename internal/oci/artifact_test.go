package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/tegen-dev/tegen/internal/origin"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

func someOrigin() origin.Origin {
	return origin.Origin{Source: "https://git.example/team/jobs", Revision: "main@sha1:" + commit}
}

func someFiles() []File {
	return []File{
		{Path: "resnet/worker.yaml", Content: []byte("kind: Job\nmetadata: {name: resnet}\n")},
		{Path: "resnet/kustomization.yaml", Content: []byte("kind: Kustomization\n")},
		{Path: "bert/" + strings.Repeat("long/", 40) + "worker.yaml", Content: bytes.Repeat([]byte("x"), 1<<20)},
	}
}

func newArtifact(t *testing.T, files []File, from origin.Origin) *Artifact {
	t.Helper()
	a, err := New(files, from)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestDigest: it follows from files and origin, in whatever order the files come, and from nothing else.
func TestDigest(t *testing.T) {
	want := newArtifact(t, someFiles(), someOrigin()).Digest()
	files := someFiles()
	slices.Reverse(files)
	if got := newArtifact(t, files, someOrigin()).Digest(); got != want {
		t.Errorf("in another order: %s, want %s", got, want)
	}
	for what, change := range map[string]func(files []File, from *origin.Origin){
		"a byte":     func(files []File, _ *origin.Origin) { files[0].Content = []byte("kind: Pod\n") },
		"a name":     func(files []File, _ *origin.Origin) { files[0].Path = "resnet/other.yaml" },
		"a source":   func(_ []File, from *origin.Origin) { from.Source += "2" },
		"a revision": func(_ []File, from *origin.Origin) { from.Revision = "sha1:" + commit },
	} {
		files, from := someFiles(), someOrigin()
		change(files, &from)
		if got := newArtifact(t, files, from).Digest(); got == want {
			t.Errorf("%s does not change the digest", what)
		}
	}
}

// TestArchive: what is packed holds nothing of who packed it.
func TestArchive(t *testing.T) {
	packed, err := newArtifact(t, someFiles(), someOrigin()).image.layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(gzip.Header{OS: 255}, plain.Header); diff != "" {
		t.Errorf("the header of gzip (-want +got):\n%s", diff)
	}
	var names []string
	archive := tar.NewReader(plain)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.Mode != 0o644 ||
			!h.ModTime.Equal(time.Unix(0, 0)) || h.Typeflag != tar.TypeReg {
			t.Errorf("%s: %+v", h.Name, h)
		}
	}
	if !slices.IsSorted(names) || len(names) != len(someFiles()) {
		t.Errorf("names: %q", names)
	}
}

// argoCDTypes are the layers that Argo CD v3.2.11 takes as it is installed: the default of --oci-layer-media-types in
// cmd/argocd-repo-server/commands/argocd_repo_server.go.
var argoCDTypes = []string{
	"application/vnd.oci.image.layer.v1.tar",
	"application/vnd.oci.image.layer.v1.tar+gzip",
	"application/vnd.cncf.helm.chart.content.v1.tar+gzip",
}

// TestManifest: Argo CD (Extract in util/oci/client.go) wants one layer whose type ends in tar or tar+gzip, of a type
// from its list, and takes every other blob of such a type for content as well.
func TestManifest(t *testing.T) {
	a := newArtifact(t, someFiles(), someOrigin())
	p := newProvenance(t, a)
	content := func(mediaType string) bool {
		return strings.HasSuffix(mediaType, "tar+gzip") || strings.HasSuffix(mediaType, "tar")
	}
	var m v1.Manifest
	if err := json.Unmarshal(a.image.manifest, &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Layers) != 1 || !content(string(m.Layers[0].MediaType)) ||
		!slices.Contains(argoCDTypes, string(m.Layers[0].MediaType)) {
		t.Errorf("layers: %+v", m.Layers)
	}
	if content(string(m.Config.MediaType)) {
		t.Errorf("the configuration, a %s, passes for content", m.Config.MediaType)
	}
	if m.Subject != nil {
		t.Errorf("the artifact has a subject: %+v", m.Subject)
	}
	if diff := cmp.Diff(map[string]string{
		"org.opencontainers.image.source":   "https://git.example/team/jobs",
		"org.opencontainers.image.revision": "main@sha1:" + commit,
		"org.opencontainers.image.created":  "1970-01-01T00:00:00Z",
	}, m.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}

	var referrer v1.Manifest
	if err := json.Unmarshal(p.image.manifest, &referrer); err != nil {
		t.Fatal(err)
	}
	if referrer.Subject == nil || referrer.Subject.Digest.String() != a.Digest() ||
		referrer.Subject.Size != int64(len(a.image.manifest)) || referrer.Subject.MediaType != m.MediaType {
		t.Errorf("the subject of the provenance: %+v", referrer.Subject)
	}
}

// TestProvenance is what in-toto's Statement v1 and SLSA's provenance v1 ask for.
func TestProvenance(t *testing.T) {
	files := []File{{Path: "resnet/worker.yaml", Content: []byte("kind: Job\n")}}
	a := newArtifact(t, files, someOrigin())
	p := newProvenance(t, a)
	blob, err := p.image.layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(blob)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"_type":         "https://in-toto.io/Statement/v1",
		"predicateType": "https://slsa.dev/provenance/v1",
		"subject": []any{map[string]any{
			"name":   "registry.example/team/jobs",
			"digest": map[string]any{"sha256": strings.TrimPrefix(a.Digest(), "sha256:")},
		}},
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType": buildType,
				"externalParameters": map[string]any{
					"source": "https://git.example/team/jobs", "revision": "main@sha1:" + commit,
				},
				"resolvedDependencies": []any{
					map[string]any{
						"uri":    "git+https://git.example/team/jobs",
						"digest": map[string]any{"gitCommit": commit},
					},
					map[string]any{
						"name": "resnet/worker.yaml",
						"digest": map[string]any{ // printf 'kind: Job\n' | sha256sum
							"sha256": "4f5aad7f53a825a8c0268a0e0fb2ff1af1c6e8f29973cc129ec688d602eef932",
						},
					},
				},
			},
			"runDetails": map[string]any{"builder": map[string]any{
				"id": "https://github.com/tegen-dev/tegen", "version": map[string]any{"tegen": "v1.2.3"},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the statement (-want +got):\n%s", diff)
	}
}

func newProvenance(t *testing.T, a *Artifact) *Provenance {
	t.Helper()
	ref, err := ParseReference("oci://registry.example/team/jobs:eks", false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProvenance(a, ref, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return p
}
