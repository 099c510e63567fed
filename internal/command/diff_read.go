package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/dochead"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/origin"
	"github.com/tegen-dev/tegen/internal/tree"
	"github.com/tegen-dev/tegen/schema"
)

// readSides reads what two arguments of diff name.
func readSides(ctx context.Context, stdin io.Reader, a, b string) (before, after []map[string]any, err error) {
	if a == "-" && b == "-" {
		return nil, nil, cli.Usagef("standard input cannot be both OLD and NEW")
	}
	if before, err = readSide(ctx, stdin, a, b); err != nil {
		return nil, nil, err
	}
	if after, err = readSide(ctx, stdin, b, a); err == nil && len(before)+len(after) == 0 {
		err = fmt.Errorf("nothing to compare: there is no object in %s and none in %s; a revision is "+
			"REV:PATH", printable(a),
			printable(b))
	}
	return before, after, err
}

// renderedDir is where 'tegen init' has jobs rendered to: what two revisions without a path are compared in.
const renderedDir = "rendered"

// readSide reads a directory, a file, standard input or a revision; the other argument says which path a revision alone
// means.
func readSide(ctx context.Context, stdin io.Reader, name, other string) ([]map[string]any, error) {
	_, err := os.Stat(name)
	var sources []schema.Source
	switch {
	case name == "-" || err == nil:
		sources, err = readFiles(stdin, name)
	case strings.ContainsRune(name, 0):
		return nil, fmt.Errorf("reading %s: no file, directory or revision has such a name", printable(name))
	default:
		sources, err = readRevision(ctx, name, other)
	}
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	var errs []error
	for _, src := range sources {
		found, wrong := manifest.ReadLoosely(src.Name, src.Data)
		errs = append(errs, wrong...)
		for _, o := range found {
			if len(o.Duplicates) > 0 {
				d := o.Duplicates[0]
				errs = append(errs, fmt.Errorf("%s:%d: the key %s is there twice", src.Name, d.Line,
					strings.Join(d.Path, ".")))
			}
			if err := mistaken(o); err != nil {
				errs = append(errs, err)
			}
			all = append(all, o.Object)
		}
	}
	if len(all) > maxObjects {
		errs = append(errs, fmt.Errorf("%s: %d objects, more than the limit of %d: compare them in parts",
			printable(name), len(all), maxObjects))
	}
	return all, errors.Join(errs...)
}

// maxObjects is the most objects of a side of diff: 4,000 jobs have about 30,000.
const maxObjects = 40_000

// mistaken refuses an object whose head is misspelt: as another object it would differ from what it was.
func mistaken(o *manifest.Loose) error {
	var h dochead.Head
	h.APIVersion, _ = o.Object["apiVersion"].(string)
	h.Kind, _ = o.Object["kind"].(string)
	h.Keys = slices.Sorted(maps.Keys(o.Object))
	if key, problem := h.Problem(); problem != "" {
		return fmt.Errorf("%s:%d: %s: %s", o.Stream(), o.Line([]string{key}), key, problem)
	}
	return nil
}

// readFiles reads what is on the disk. A directory may be empty, since its last job may have gone.
func readFiles(stdin io.Reader, name string) ([]schema.Source, error) {
	files, err := filesBelow([]string{name})
	if info, wrong := os.Stat(name); err != nil && wrong == nil && info.IsDir() {
		if entries, wrong := os.ReadDir(name); wrong == nil && !slices.ContainsFunc(entries, visible) {
			return nil, nil
		}
	}
	if err == nil && name != "-" {
		err = tree.Unfinished(name)
	}
	if err != nil {
		return nil, err
	}
	sources, err := read(stdin, files, maxManifests)
	if err != nil {
		return nil, err
	}
	if name == "-" && len(sources) == 1 && len(bytes.TrimSpace(sources[0].Data)) == 0 {
		return nil, errors.New("reading standard input: it is empty; a command that prints no objects prints an " +
			"empty List, so the command before the pipe has failed")
	}
	for _, src := range sources {
		if len(src.Data) > maxManifests {
			return nil, fmt.Errorf("reading %s: it has more than %d MiB", src.Name, maxManifests>>20)
		}
	}
	return sources, nil
}

func visible(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") }

// readRevision reads the manifests of REV or REV:PATH.
func readRevision(ctx context.Context, name, other string) ([]schema.Source, error) {
	revision, place, found := strings.Cut(name, ":")
	if !found {
		if info, err := os.Stat(other); err == nil && info.IsDir() && filepath.IsLocal(other) {
			place = "./" + filepath.ToSlash(filepath.Clean(other))
		} else if _, path, both := strings.Cut(other, ":"); both {
			place = path
		} else if err != nil {
			place = renderedDir
		}
	}
	files, err := origin.Files(ctx, ".", revision, place, isManifestName)
	if errors.Is(err, origin.ErrNoPath) && place != "" {
		if _, wrong := origin.Files(ctx, ".", revision, "./"+place, isManifestName); wrong == nil {
			return nil, fmt.Errorf("reading %s: git takes a path from the top of the repository; from here, write %s",
				printable(name), printable(revision+":./"+place))
		}
		if found && !samePlace(place, other) {
			return nil, fmt.Errorf("reading %s: %s has no such path: correct it; one that is new there, or gone, is "+
				"that of the other side too", printable(name), printable(revision))
		}
		return nil, nil // the first commit of a place, or the last: all comes, or all goes
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: it is no directory, no file and no revision of git that can be read: %w",
			printable(name), err)
	}
	sources := make([]schema.Source, len(files))
	for i, f := range files {
		sources[i] = schema.Source{Name: printable(revision + ":" + f.Path), Data: f.Data}
	}
	return sources, nil
}

// samePlace says whether the other side is of a path too, or of its end.
func samePlace(place, other string) bool {
	if _, path, found := strings.Cut(other, ":"); found {
		other = path
	}
	place, other = "/"+path.Clean(place), "/"+path.Clean(filepath.ToSlash(other))
	return strings.HasSuffix(place, other) || strings.HasSuffix(other, place)
}

// isManifestName is isManifest for a file of a commit.
func isManifestName(name string) bool {
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if strings.HasPrefix(part, ".") && part != "." {
			return false
		}
	}
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) &&
		!slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}
