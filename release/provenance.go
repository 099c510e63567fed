package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/provenance"
)

// source is the repository, wherever it was cloned from: two clones shall give the same bytes.
const source = "https://github.com/tegen-dev/tegen"

const buildType = source + "/blob/main/docs/release.md#provenance"

// writeProvenance states what every file, and every image by the name that it will have, was made of.
func (r *release) writeProvenance(ctx context.Context) error {
	subjects, err := r.files()
	if err != nil {
		return err
	}
	for _, i := range r.pushed {
		subjects = append(subjects, provenance.Resource{
			Name: i.repository, Digest: map[string]string{"sha256": strings.TrimPrefix(i.digest, "sha256:")},
		})
	}
	var names []string
	for _, i := range r.images {
		names = append(names, i.Name)
	}
	s := provenance.New(buildType, subjects, map[string]string{
		"version": r.version, "registry": r.registry, "platforms": words(r.platforms),
		"images": strings.Join(names, ", "),
	}, map[string]string{"go": r.golang})
	s.DependOn(provenance.Commit(source, r.commit))
	var sums []string // each once, though modules have dependencies in common
	for _, module := range modules() {
		text, err := os.ReadFile(filepath.Join(r.root, module, "go.sum"))
		if err != nil {
			return err
		}
		sums = append(sums, slices.Collect(strings.Lines(string(text)))...)
	}
	slices.Sort(sums)
	dependencies, err := modulesOf(slices.Compact(sums))
	if err != nil {
		return fmt.Errorf("reading go.sum: %w", err)
	}
	s.DependOn(dependencies...)
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("writing provenance: %w", err)
	}
	return r.writeFile("provenance.json", append(text, '\n'))
}

// modulesOf are the modules that go.sum has the content of, the root certificates of the images among them. in-toto
// calls Go's sum of a module dirHash, in hexadecimal digits.
func modulesOf(sums []string) (modules []provenance.Resource, err error) {
	for _, line := range sums {
		words := strings.Fields(line)
		if len(words) != 3 {
			return nil, fmt.Errorf("%q is not a module, a version and a sum", line)
		}
		if strings.HasSuffix(words[1], "/go.mod") {
			continue // of which only the versions that it asks for counted
		}
		encoded, known := strings.CutPrefix(words[2], "h1:")
		sum, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || !known {
			return nil, fmt.Errorf("%q is no sum: want h1: and base64", words[2])
		}
		modules = append(modules, provenance.Resource{
			URI:    "pkg:golang/" + words[0] + "@" + strings.ReplaceAll(words[1], "+", "%2B"),
			Digest: map[string]string{"dirHash": hex.EncodeToString(sum)},
		})
	}
	return modules, nil
}

// files are those of the release so far, by their paths.
func (r *release) files() (files []provenance.Resource, err error) {
	root := os.DirFS(r.dir)
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		files = append(files, provenance.File(name, content))
		return nil
	})
	return files, err
}

// writeChecksums writes what 'sha256sum --check' reads.
func (r *release) writeChecksums(context.Context) error {
	files, err := r.files()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&out, "%s  %s\n", f.Digest["sha256"], f.Name)
	}
	return r.writeFile("SHA256SUMS", out.Bytes())
}
