package images

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// refName is the annotation by which a layout names what is in it.
const refName = "org.opencontainers.image.ref.name"

// Write writes the image into a folder: an OCI layout, in a folder of the image's name, with all platforms and their
// SBOMs; and for each platform an archive as 'docker save' writes it, which container engines load under the reference.
// Each is written whole or not at all.
func (b *Built) Write(dir string, reference name.Tag) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the image %s: %w", b.Name, err)
	}
	if err := Replace(filepath.Join(dir, b.Name), func(to string) error {
		return b.layout(to, reference.TagStr())
	}); err != nil {
		return fmt.Errorf("writing the layout of the image %s: %w", b.Name, err)
	}
	if err := Replace(filepath.Join(dir, b.Name+".tar"), func(to string) error {
		return b.archive(to, reference)
	}); err != nil {
		return fmt.Errorf("writing the archive of the image %s: %w", b.Name, err)
	}
	for _, p := range b.Platforms {
		if err := Replace(filepath.Join(dir, b.Name+"-"+p.Architecture+".tar"), func(to string) error {
			return tarball.WriteToFile(to, reference, p.Image)
		}); err != nil {
			return fmt.Errorf("writing the archive of the image %s: %w", b.Name, err)
		}
	}
	return nil
}

// Replace writes a file or a folder beside a path, and renames it there.
func Replace(path string, write func(to string) error) error {
	partial := path + ".partial"
	err := os.RemoveAll(partial)
	if err == nil {
		err = write(partial)
	}
	if err == nil {
		err = os.RemoveAll(path)
	}
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return nil
}

func (b *Built) layout(dir, tag string) error {
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := to.AppendIndex(b.Index, layout.WithAnnotations(map[string]string{refName: tag})); err != nil {
		return err
	}
	for _, p := range b.Platforms {
		if err := to.AppendImage(p.SBOM); err != nil {
			return err
		}
	}
	return readable(dir)
}

// readable lets everybody read the files of a layout, as an image is nobody's secret: the library writes layers for
// their owner alone, and lists as programs.
func readable(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(name, 0o644)
	})
}

// Reference is the name of an image: below a registry's path where there is one, with a tag.
func Reference(registry, image, tag string) (name.Tag, error) {
	ref, err := name.NewTag(path.Join(registry, image) + ":" + tag)
	if err != nil {
		return ref, fmt.Errorf("naming the image %s: %w", image, err)
	}
	return ref, nil
}
