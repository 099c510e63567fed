// Package upstream finds the CustomResourceDefinitions of other projects for the tests that hold rendered manifests
// against them. In goes the repository's root; out comes a folder of YAML files. The repository holds no copy of them, so
// that a test must be ready for ErrAbsent, and then say how much nobody has judged.
package upstream

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrAbsent says that this machine has no such definitions.
var ErrAbsent = errors.New("no CRDs of other projects beside the checkout; name their directory in TEGEN_CRDS")

// Dir is the folder of the definitions: TEGEN_CRDS, which then must be there, or one beside the checkout, or ErrAbsent.
func Dir(root string) (string, error) {
	if dir := os.Getenv("TEGEN_CRDS"); dir != "" {
		return dir, nil
	}
	dir := filepath.Join(root, "..", "shared", "crds")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", ErrAbsent
	}
	return dir, nil
}

// OlderDLRover is the file of the definition that DLRover's documents install.
const OlderDLRover = "dlrover_manifests-bundle_elastic.iml.github.io_elasticjobs.yaml"

// SetAside are definitions, by the names of their files, that judge no manifest, each with its reason.
var SetAside = map[string]string{
	OlderDLRover: "An older one of the same version, which loses suspension and the annotations of pods: docs/targets.md says which to install, and TestOlderDLRover what this one does.",
}
