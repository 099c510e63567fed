package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/provenance"
)

// maxReferrers bounds how many of what a registry lists for an artifact are read.
const maxReferrers = 100

// Verify compares what a registry has with what would be pushed, and returns a line for each difference, none where
// both are the same. An artifact of another digest is pulled to say in what it differs.
func (c *Client) Verify(ctx context.Context, at Reference, a *Artifact, p *Provenance) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	options := append(c.options, remote.WithContext(ctx))
	failed := func(err error) error {
		return fmt.Errorf("reading %s: %w", at.ref.Name(), c.explain(err, at, "read"))
	}
	there, err := remote.Get(at.ref, options...)
	if err != nil {
		return nil, failed(err)
	}
	if there.Digest != a.image.descriptor.Digest {
		differences, err := a.compare(there)
		if err != nil {
			return nil, failed(err)
		}
		return append([]string{fmt.Sprintf("the digest is %s, and would be %s", there.Digest, a.Digest())},
			differences...), nil
	}
	differences, err := p.attached(at, options)
	if err != nil {
		return nil, failed(err)
	}
	return differences, nil
}

// compare says in what an artifact of a registry differs.
func (a *Artifact) compare(there *remote.Descriptor) ([]string, error) {
	if there.MediaType != types.OCIManifestSchema1 {
		return []string{fmt.Sprintf("its type is %s, and would be %s", printable(string(there.MediaType)),
			types.OCIManifestSchema1)}, nil
	}
	img, err := there.Image()
	if err != nil {
		return nil, err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	if len(layers) != 1 || manifest.Layers[0].MediaType != LayerType {
		return []string{fmt.Sprintf("it has %d layers, and would have one of type %s: it was not published by tegen",
			len(layers), LayerType)}, nil
	}
	var want v1.Manifest
	if err := json.Unmarshal(a.image.manifest, &want); err != nil {
		return nil, err
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(union(want.Annotations, manifest.Annotations))) {
		if is, would := manifest.Annotations[key], want.Annotations[key]; is != would {
			out = append(out, fmt.Sprintf("annotation %s: is %q, and would be %q", printable(key), is, would))
		}
	}
	if size := manifest.Layers[0].Size; size > MaxBytes {
		return append(out, fmt.Sprintf("its layer has %d MiB, more than tegen publishes", size>>20)), nil
	}
	packed, err := layers[0].Compressed()
	if err != nil {
		return nil, err
	}
	files, err := unpack(packed)
	if err := errors.Join(err, packed.Close()); err != nil {
		return nil, fmt.Errorf("unpacking its layer: %w", err)
	}
	out = append(out, compareFiles(files, a.files)...)
	if len(out) == 0 {
		out = []string{"all files and annotations are the same: it was packed by another release of tegen, or by " +
			"another program"}
	}
	return out, nil
}

func union[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return all
}

// printable is a registry's name of something, in quotes if it holds what does not print.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// unpack reads an archive as strictly as it was written: whatever else another program would make of it is an error.
func unpack(packed io.Reader) (map[string][]byte, error) {
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	archive := tar.NewReader(io.LimitReader(plain, 2*MaxBytes)) // what is longer ends in the middle of a file
	files := map[string][]byte{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("%q is no file", header.Name)
		}
		if _, ok := files[header.Name]; ok {
			return nil, fmt.Errorf("%q is there twice", header.Name)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			return nil, err
		}
	}
}

func compareFiles(there map[string][]byte, would []File) []string {
	var out []string
	all := map[string][]byte{}
	for _, f := range would {
		all[f.Path] = f.Content
	}
	for _, path := range slices.Sorted(maps.Keys(union(there, all))) {
		is, published := there[path]
		want, rendered := all[path]
		switch {
		case !rendered:
			out = append(out, fmt.Sprintf("%s: is published, and not here", printable(path)))
		case !published:
			out = append(out, fmt.Sprintf("%s: is here, and not published", printable(path)))
		case !bytes.Equal(is, want):
			out = append(out, fmt.Sprintf("%s%s", printable(path), firstDifference(string(is), string(want))))
		}
	}
	return out
}

// firstDifference names the first line that two texts do not share. The digest of an input, which differs wherever
// anything does, is named where nothing else differs.
func firstDifference(is, would string) string {
	a, b := strings.Split(is, "\n"), strings.Split(would, "\n")
	differing := func(besides string) (n int) {
		for n < len(a) && n < len(b) &&
			(a[n] == b[n] || besides != "" && strings.HasPrefix(a[n], besides) && strings.HasPrefix(b[n], besides)) {
			n++
		}
		return n
	}
	n := differing("    " + names.Input + ": ")
	if n >= len(a) && n >= len(b) {
		n = differing("")
	}
	line := func(lines []string) string {
		if n >= len(lines) {
			return "nothing"
		}
		return fmt.Sprintf("%.100q", lines[n])
	}
	return fmt.Sprintf(":%d: is %s, and would be %s", n+1, line(a), line(b))
}

// attached says what is wrong with the provenance that a registry lists for the artifact.
func (p *Provenance) attached(at Reference, options []remote.Option) ([]string, error) {
	repository := at.ref.Context()
	listed, err := remote.Referrers(repository.Digest(p.subject()), options...)
	if err != nil {
		return nil, err
	}
	index, err := listed.IndexManifest()
	if err != nil {
		return nil, err
	}
	found := 0
	for _, d := range index.Manifests {
		// A registry may list the configuration's type in place of the artifact's.
		if d.ArtifactType != string(provenanceType) && d.ArtifactType != string(configType) {
			continue
		}
		if found++; found > maxReferrers {
			break
		}
		other, err := fetchStatement(repository.Digest(d.Digest.String()), options)
		if err != nil {
			return nil, err
		}
		if other != nil && sameMaking(&p.statement, other) {
			return nil, nil
		}
	}
	if found == 0 {
		return []string{"no provenance is attached: publish it again"}, nil
	}
	return []string{"the provenance that is attached names other inputs than the files here: publish it again"}, nil
}

// subject is the digest of what the provenance is of.
func (p *Provenance) subject() string { return "sha256:" + p.statement.Subject[0].Digest["sha256"] }

// fetchStatement returns an in-toto statement, nil for what holds none.
func fetchStatement(at name.Digest, options []remote.Option) (*provenance.Statement, error) {
	img, err := remote.Image(at, options...)
	if err != nil {
		return nil, err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != provenanceType ||
		manifest.Layers[0].Size > MaxBytes {
		return nil, nil
	}
	layers, err := img.Layers()
	if err != nil {
		return nil, err
	}
	blob, err := layers[0].Compressed()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(blob)
	if err := errors.Join(err, blob.Close()); err != nil {
		return nil, err
	}
	var s provenance.Statement
	if json.Unmarshal(text, &s) != nil {
		return nil, nil
	}
	return &s, nil
}
