package install

import (
	"bytes"
	"fmt"
	"io/fs"

	"github.com/tegen-dev/tegen/overlays/crds"
)

// CRDs are the definitions of overlays/crds as one stream, in the order of their files' names.
func CRDs() ([]byte, error) {
	names, err := fs.Glob(crds.Files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing definitions: %w", err)
	}
	var docs [][]byte
	for _, name := range names {
		text, err := crds.Files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		docs = append(docs, text)
	}
	return bytes.Join(docs, []byte("---\n")), nil
}
