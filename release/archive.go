package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/images/layer"
)

// writeArchives writes an archive of each program for each platform with an SBOM beside it, and the schema's.
// tegen-scheduler runs in a cluster, from its image.
func (r *release) writeArchives(ctx context.Context) error {
	for _, name := range []string{"tegen", "tegen-rendezvous"} {
		generated, err := r.generated(ctx, name)
		if err != nil {
			return err
		}
		for _, s := range r.systems {
			if err := r.writeArchive(ctx, name, s, generated); err != nil {
				return fmt.Errorf("archiving %s for %s: %w", name, s, err)
			}
		}
	}
	p, err := r.build(ctx, "tegen", r.systems[0])
	if err != nil {
		return err
	}
	files, err := moduleFiles(r.root)
	if err != nil {
		return err
	}
	module, err := zipped(files, p.Time)
	return cmp.Or(err, r.writeFile("tegen-schema-"+r.version+".zip", module))
}

// generated are the shell completions of a program, and the manual pages of tegen. They are the same on every platform.
func (r *release) generated(ctx context.Context, name string) (files []layer.Entry, err error) {
	for _, c := range []struct{ shell, file string }{
		{"bash", name + ".bash"}, {"zsh", "_" + name}, {"fish", name + ".fish"}, {"powershell", name + ".ps1"},
	} {
		script, err := r.call(ctx, name, "completion", c.shell)
		if err != nil {
			return nil, err
		}
		files = append(files, layer.File("/completions/"+c.file, 0o644, script))
	}
	if name != "tegen" {
		return files, nil
	}
	dir := filepath.Join(r.work, name+"-man1")
	if _, err := r.call(ctx, name, "man", dir); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(dir)
	for _, page := range pages {
		files = append(files, layer.Entry{
			Path: "/man/man1/" + page.Name(), Mode: 0o644, Source: filepath.Join(dir, page.Name()),
		})
	}
	return files, err
}

func (r *release) writeArchive(ctx context.Context, name string, s images.System, generated []layer.Entry) error {
	p, err := r.build(ctx, name, s)
	if err != nil {
		return err
	}
	notice, err := p.Notice(ctx)
	if err != nil {
		return err
	}
	base := fmt.Sprintf("%s-%s-%s-%s", name, r.version, s.OS, s.Arch)
	file, suffix, pack := "/"+name, ".tar.gz", zippedTar
	if s.OS == "windows" {
		file, suffix, pack = file+".exe", ".zip", zipped
	}
	files := append([]layer.Entry{
		{Path: file, Mode: 0o755, Source: p.File},
		{Path: "/LICENSE", Mode: 0o644, Source: filepath.Join(r.root, "LICENSE")},
		layer.File("/NOTICE", 0o644, notice),
		{Path: "/README.md", Mode: 0o644, Source: filepath.Join(r.root, "README.md")},
	}, generated...)
	for n := range files {
		files[n].Path = "/" + base + files[n].Path
	}
	archive, err := pack(files, p.Time)
	if err != nil {
		return err
	}
	document, err := p.SBOM(p.Time)
	if err != nil {
		return err
	}
	r.progress.Print("archive ", base)
	return cmp.Or(r.writeFile(base+suffix, archive), r.writeFile(base+".spdx.json", string(document)))
}

func zippedTar(files []layer.Entry, at time.Time) (string, error) {
	files = layer.WithFolders(files)
	for n := range files {
		files[n].Time = at
	}
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out) // its header has neither name nor time
	err := cmp.Or(layer.Write(compressed, files), compressed.Close())
	return out.String(), err
}

// zipped returns an archive that Windows unpacks without other programs. It needs no folders of its own.
func zipped(files []layer.Entry, at time.Time) (string, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: strings.TrimPrefix(f.Path, "/"), Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(f.Mode)
		to, err := archive.CreateHeader(header)
		if err != nil {
			return "", err
		}
		data, err := f.Content()
		if err != nil {
			return "", err
		}
		if _, err := to.Write(data); err != nil {
			return "", err
		}
	}
	err := archive.Close()
	return out.String(), err
}

// moduleFiles are the files of the CUE module tegen.dev/schema, in the form in which registries of modules have it.
func moduleFiles(root string) ([]layer.Entry, error) {
	schema := filepath.Join(root, "schema")
	definitions, err := filepath.Glob(filepath.Join(schema, "*.cue"))
	if err != nil || len(definitions) == 0 {
		return nil, fmt.Errorf("the schema has no CUE files: %w", err)
	}
	files := []layer.Entry{
		{Path: "/cue.mod/module.cue", Mode: 0o644, Source: filepath.Join(schema, "cue.mod", "module.cue")},
		{Path: "/LICENSE", Mode: 0o644, Source: filepath.Join(root, "LICENSE")},
	}
	for _, name := range definitions {
		files = append(files, layer.Entry{Path: "/" + filepath.Base(name), Mode: 0o644, Source: name})
	}
	return files, nil
}
