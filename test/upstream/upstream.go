// Package upstream finds the CustomResourceDefinitions of other projects for the tests that hold rendered manifests
// against them, and fetches them. The repository holds no copy of them: lock.yaml says of each where it comes from and
// its digest. In goes the repository's root; out come files of exactly those digests, or, where some are not on this
// machine, ErrAbsent beside the others. A test must be ready for that, and then say how much nobody has evaluated.
package upstream

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// ErrAbsent says that this machine lacks definitions.
var ErrAbsent = errors.New("CRDs of other projects are not on this machine: run 'make crds'")

//go:embed lock.yaml
var locked []byte

// definition is a file of the lock.
type definition struct {
	name, sha256, source string
	release              string // of what, for people
	reconciler           bool   // of Argo CD or Flux
}

// store is a lock and the folders that may hold its files.
type store struct {
	definitions []definition
	beside      string // the folder beside the checkout, which is read first
	cache       string // what make crds fills
}

func open(root string, lock []byte) (*store, error) {
	var projects []struct {
		Project, Version, Source string
		Reconciler               bool
		Files                    map[string]string
	}
	if err := yaml.UnmarshalStrict(lock, &projects); err != nil {
		return nil, fmt.Errorf("reading the lock of CRDs: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("looking for a cache folder: %w", err)
	}
	s := &store{beside: filepath.Join(root, "..", "shared", "crds"), cache: filepath.Join(cache, "tegen", "crds")}
	for _, p := range projects {
		source := strings.ReplaceAll(p.Source, "{version}", p.Version)
		for name, digest := range p.Files {
			from := source
			if path.Ext(source) != ".yaml" {
				from += "/" + name
			}
			release := p.Project + " " + p.Version
			s.definitions = append(s.definitions, definition{name, digest, from, release, p.Reconciler})
		}
	}
	slices.SortFunc(s.definitions, func(a, b definition) int { return strings.Compare(a.name, b.name) })
	return s, nil
}

// Files are the paths of the definitions that are on this machine, sorted by name, less those of Reconcilers.
func Files(root string) ([]string, error) { return files(root, false) }

// Reconcilers are the paths of the definitions of Argo CD and Flux, which no job is rendered into.
func Reconcilers(root string) ([]string, error) { return files(root, true) }

func files(root string, reconcilers bool) ([]string, error) {
	s, err := open(root, locked)
	if err != nil {
		return nil, err
	}
	s.definitions = slices.DeleteFunc(s.definitions, func(d definition) bool { return d.reconciler != reconcilers })
	return s.files()
}

func (s *store) files() (found []string, err error) {
	var missing []string
	for _, d := range s.definitions {
		file, err := s.find(d)
		switch {
		case errors.Is(err, ErrAbsent):
			missing = append(missing, d.name)
		case err != nil:
			return nil, err
		default:
			found = append(found, file)
		}
	}
	if missing != nil {
		return found, fmt.Errorf("%w (%s)", ErrAbsent, strings.Join(missing, ", "))
	}
	return found, nil
}

// find takes no file but one of the locked digest, and tells the others only where there is no such file.
func (s *store) find(d definition) (string, error) {
	if d.sha256 == "" {
		return "", fmt.Errorf("test/upstream/lock.yaml has no digest of %s: 'make crds' tells it", d.name)
	}
	var wrong error
	for _, file := range []string{filepath.Join(s.beside, d.name), s.cached(d)} {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = d.check(text)
		}
		if err == nil {
			return file, nil
		}
		wrong = errors.Join(wrong, fmt.Errorf("reading %s: %w", file, err))
	}
	if wrong != nil {
		return "", fmt.Errorf("%w: run 'make crds'", wrong)
	}
	return "", ErrAbsent
}

// cached is a path of its own for each digest: checkouts of different locks share the folder.
func (s *store) cached(d definition) string {
	return filepath.Join(s.cache, d.sha256[:min(16, len(d.sha256))], d.name)
}

// check refuses any text but the locked one.
func (d definition) check(text []byte) error {
	sum := sha256.Sum256(text)
	got := hex.EncodeToString(sum[:])
	if d.sha256 == "" {
		return fmt.Errorf("its SHA-256 is %s, and test/upstream/lock.yaml has none for it: put it there", got)
	}
	if got != d.sha256 {
		return fmt.Errorf("its SHA-256 is %s, and test/upstream/lock.yaml wants %s for %s", got, d.sha256, d.release)
	}
	return nil
}

// Absent ends a test that lacks definitions. Where CI=true, something must have fetched them before.
func Absent(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// OlderDLRover is the file of the definition that DLRover's documents install.
const OlderDLRover = "dlrover_manifests-bundle_elastic.iml.github.io_elasticjobs.yaml"

// SetAside are definitions, by the names of their files, that evaluate no manifest, each with its reason.
var SetAside = map[string]string{
	OlderDLRover: "An older one of the same version, which loses suspension and the annotations of pods: " +
		"docs/targets.md says which to install, and TestOlderDLRover what this one does.",
}
