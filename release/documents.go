package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/provenance"
)

// writeManifests writes what installs the companions and what editors read, as the release's own tegen prints it.
func (r *release) writeManifests(ctx context.Context) error {
	for _, m := range []struct{ file, image, command string }{
		{"install-crds.yaml", "", "install crds"},
		{"trainingjob.schema.json", "", "schema"},
		{"environment.schema.json", "", "schema --environment"},
		{"install-scheduler.yaml", "tegen-scheduler", "install scheduler"},
		// The namespace of the README's jobs. The owner of a cluster decides which others may use the rendezvous.
		{"install-rendezvous.yaml", "tegen-rendezvous", "install rendezvous --clients training"},
	} {
		if m.image != "" && r.link[linked[m.image]] == "" {
			continue // a snapshot has only some
		}
		text, err := r.call(ctx, "tegen", strings.Fields(m.command)...)
		if err != nil {
			return err
		}
		if err := r.writeFile(m.file, text); err != nil {
			return err
		}
	}
	return nil
}

// writeNotes writes the changes since the tag before, and how to check a download.
func (r *release) writeNotes(ctx context.Context) error {
	tags, err := r.git(ctx, "tag", "--list", "--merged=HEAD", "--no-contains=HEAD", "--sort=-v:refname",
		"--sort=-creatordate", "v[0-9]*")
	if err != nil {
		return err
	}
	changes := "The first release.\n"
	if before, _, found := strings.Cut(tags, "\n"); found {
		// A fixed number of digits, whatever git is configured to use.
		log, err := r.git(ctx, "log", "--no-merges", "--abbrev=12", "--format=- %s (%h)", before+"..HEAD")
		if err != nil {
			return err
		}
		changes = "## Changes since " + before + "\n\n" + log
	}
	names := ""
	for _, i := range r.pushed {
		names += "- `" + i.String() + "`\n"
	}
	return r.writeFile("NOTES.md", fmt.Sprintf("# tegen %s\n\n%s\n## Images\n\n%s\n## Checking\n\n"+
		"What was downloaded is whole where this says OK of each file:\n\n"+
		"```sh\nsha256sum --check --ignore-missing SHA256SUMS\n```\n\n"+
		"`provenance.json` names what every file was made of. Neither is signed.\n", r.version, changes, names))
}

// source is the repository, wherever it was cloned from: two clones shall give the same bytes.
const source = "https://github.com/tegen-dev/tegen"

// writeProvenance writes the inputs of every file, and of every image by the name that it will have.
func (r *release) writeProvenance(context.Context) error {
	subjects, err := r.files()
	if err != nil {
		return err
	}
	for _, i := range r.pushed {
		subjects = append(subjects, provenance.Resource{
			Name: i.repository, Digest: map[string]string{"sha256": strings.TrimPrefix(i.digest, "sha256:")},
		})
	}
	list := func(all any) string { return strings.ReplaceAll(strings.Trim(fmt.Sprint(all), "[]"), " ", ", ") }
	s := provenance.New(source+"/blob/main/docs/release.md#provenance", subjects, map[string]string{
		"version": r.version, "registry": r.registry, "platforms": list(r.systems), "images": list(r.images),
	}, map[string]string{"go": runtime.Version()})
	s.DependOn(provenance.Commit(source, r.commit))
	var sums []string
	for _, module := range []string{"", "rendezvous", "scheduler"} {
		text, err := os.ReadFile(filepath.Join(r.root, module, "go.sum"))
		if err != nil {
			return err
		}
		sums = append(sums, slices.Collect(strings.Lines(string(text)))...)
	}
	slices.Sort(sums)
	for _, line := range slices.Compact(sums) { // modules have dependencies in common
		if err := dependOn(&s, line); err != nil {
			return fmt.Errorf("reading go.sum: %w", err)
		}
	}
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return r.writeFile("provenance.json", string(text)+"\n")
}

// dependOn adds a module whose content go.sum has, such as the root certificates of the images. in-toto calls Go's sum
// of a module dirHash, in hexadecimal digits.
func dependOn(s *provenance.Statement, line string) error {
	words := strings.Fields(line)
	if len(words) != 3 {
		return fmt.Errorf("%q is not a module, a version and a sum", line)
	}
	if strings.HasSuffix(words[1], "/go.mod") {
		return nil
	}
	encoded, known := strings.CutPrefix(words[2], "h1:")
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !known {
		return fmt.Errorf("%q is no sum: want h1: and base64", words[2])
	}
	s.DependOn(provenance.Resource{
		URI:    "pkg:golang/" + words[0] + "@" + strings.ReplaceAll(words[1], "+", "%2B"),
		Digest: map[string]string{"dirHash": hex.EncodeToString(sum)},
	})
	return nil
}

// files are those of the release so far, by their paths.
func (r *release) files() (files []provenance.Resource, err error) {
	root := os.DirFS(r.dir)
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, name)
		files = append(files, provenance.File(name, content))
		return err
	})
	return files, err
}

// writeChecksums writes what 'sha256sum --check' reads.
func (r *release) writeChecksums(context.Context) error {
	files, err := r.files()
	if err != nil {
		return err
	}
	sums := ""
	for _, f := range files {
		sums += f.Digest["sha256"] + "  " + f.Name + "\n"
	}
	return r.writeFile("SHA256SUMS", sums)
}
