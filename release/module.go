package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/tegen-dev/tegen/images/layer"
)

// writeModule writes the schema as a CUE module, in the form in which registries of modules have it: a zip file with
// the module's root at its top.
func (r *release) writeModule(context.Context) error {
	files, err := moduleFiles(r.root, r.time)
	if err != nil {
		return err
	}
	return r.create("tegen-schema-"+r.version+".zip", func(w io.Writer) error { return writeZip(w, files) })
}

// moduleFiles are the files of the module tegen.dev/schema: those that tegen's own definitions are made of.
func moduleFiles(root string, at time.Time) ([]layer.Entry, error) {
	definitions, err := filepath.Glob(filepath.Join(root, "schema", "*.cue"))
	if err != nil || len(definitions) == 0 {
		return nil, fmt.Errorf("the schema has no CUE files: %w", err)
	}
	files := []layer.Entry{
		{Path: "/cue.mod/module.cue", Source: filepath.Join(root, "schema", "cue.mod", "module.cue")},
		{Path: "/LICENSE", Source: filepath.Join(root, "LICENSE")},
	}
	for _, name := range definitions {
		files = append(files, layer.Entry{Path: "/" + filepath.Base(name), Source: name})
	}
	for i := range files {
		files[i].Mode, files[i].Time = 0o644, at
	}
	return files, nil
}
