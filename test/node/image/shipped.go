package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Archive is an image of this repository, as 'make images' writes it for containerd.
type Archive struct {
	Image string   `json:"image"`
	File  string   `json:"file"`
	Names []string `json:"names"` // that importing it gives the image, by tag and by digest
}

// Shipped reads the archives in a folder that 'make images' has written to.
func Shipped(dir string) (all []Archive, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	for _, name := range []string{Tegen, Rendezvous, Scheduler} {
		a := Archive{Image: name, File: filepath.Join(dir, name+".tar")}
		index, err := readIndex(a.File)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking for the image %s, which 'make images' writes: %w", name, err)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", a.File, err)
		}
		for _, d := range index.Manifests {
			if named := d.Annotations["io.containerd.image.name"]; named != "" {
				a.Names = append(a.Names, named)
			}
		}
		if len(a.Names) == 0 {
			return nil, fmt.Errorf("reading %s: it names no image", a.File)
		}
		all = append(all, a)
	}
	return all, nil
}

func readIndex(file string) (index v1.IndexManifest, err error) {
	f, err := os.Open(file)
	if err != nil {
		return index, err
	}
	defer f.Close() //nolint:errcheck // it is read only
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err != nil {
			return index, err
		}
		if h.Name == "index.json" {
			return index, json.NewDecoder(r).Decode(&index)
		}
	}
}
