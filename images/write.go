package images

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/tegen-dev/tegen/images/layer"
)

// RefName is the annotation that names an image in a layout.
const RefName = "org.opencontainers.image.ref.name"

// imageName is the annotation that names an image for containerd.
const imageName = "io.containerd.image.name"

// Reference is the name of an image, below a registry's path if there is one.
func Reference(registry, image, tag string) (name.Tag, error) {
	ref, err := name.NewTag(path.Join(registry, image) + ":" + tag)
	if strings.Contains(registry, "://") {
		err = errors.New("write the registry without a scheme, such as ghcr.io/acme")
	}
	if err != nil {
		return ref, fmt.Errorf("naming the image %s in %q: %w", image, registry, err)
	}
	return ref, nil
}

// Write writes into a folder an OCI layout with all platforms and their SBOMs, an archive of all platforms for
// containerd, and an archive of each platform for container engines. Each is written whole or not at all.
func (b *Built) Write(dir string, ref name.Tag) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the image %s: %w", b.Name, err)
	}
	type part struct {
		suffix string
		write  func(to string) error
	}
	parts := []part{
		{"", func(to string) error {
			top, err := b.layout(to, map[string]string{RefName: ref.TagStr()})
			for _, p := range b.Platforms {
				if err == nil {
					err = top.AppendImage(p.SBOM)
				}
			}
			return errors.Join(err, readable(to))
		}},
		{".tar", func(to string) error { return b.archive(to, ref) }},
	}
	for _, p := range b.Platforms {
		parts = append(parts, part{"-" + p.Arch + ".tar", func(to string) error {
			return tarball.WriteToFile(to, ref, p.Image)
		}})
	}
	for _, p := range parts {
		if err := Replace(filepath.Join(dir, b.Name+p.suffix), p.write); err != nil {
			return fmt.Errorf("writing the image %s: %w", b.Name, err)
		}
	}
	return nil
}

// Replace writes a file or a folder beside a path, and renames it.
func Replace(path string, write func(to string) error) error {
	partial := path + ".partial"
	defer os.RemoveAll(partial) //nolint:errcheck // the error before counts
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
	return err
}

// layout writes an OCI layout that names the image once for each set of annotations.
func (b *Built) layout(dir string, names ...map[string]string) (layout.Path, error) {
	to, err := layout.Write(dir, empty.Index)
	for _, annotations := range names {
		if err == nil {
			err = to.AppendIndex(b.Index, layout.WithAnnotations(annotations))
		}
	}
	return to, err
}

// readable lets all users read the files of a layout. The library makes some readable by their owner alone.
func readable(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(name, 0o644)
	})
}

// archive writes all platforms as a file for containerd, and so for kind, with the digest that a registry has. It names
// the image by tag and by digest: pods may use either, and containerd finds an image by its names alone. SBOMs stay
// out, since containerd would unpack them.
func (b *Built) archive(to string, ref name.Tag) error {
	digest, err := b.Index.Digest()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tegen-images-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // temporary files
	// The kubelet uses the short name of Docker's registry.
	repository := strings.Replace(ref.Context().Name(), name.DefaultRegistry, "docker.io", 1)
	if _, err := b.layout(dir,
		map[string]string{imageName: repository + ":" + ref.TagStr(), RefName: ref.TagStr()},
		map[string]string{imageName: repository + "@" + digest.String()},
	); err != nil {
		return err
	}
	var entries []layer.Entry
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			entries = append(entries, layer.Entry{Path: "/" + name, Mode: 0o644, Source: filepath.Join(dir, name)})
		}
		return err
	})
	if err != nil {
		return err
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(layer.Write(file, layer.WithFolders(entries)), file.Close())
}
