package main

import (
	"archive/zip"
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/images/layer"
	"github.com/tegen-dev/tegen/images/notice"
	"github.com/tegen-dev/tegen/images/program"
	"github.com/tegen-dev/tegen/images/sbom"
)

// writeArchives writes an archive of each program for each platform, and an SBOM beside it.
func (r *release) writeArchives(ctx context.Context) error {
	for _, name := range programs() {
		completions, err := r.completions(ctx, name)
		if err != nil {
			return err
		}
		pages, err := r.manual(ctx, name)
		if err != nil {
			return err
		}
		for _, p := range r.platforms {
			if err := r.writeArchive(ctx, name, p, slices.Concat(completions, pages)); err != nil {
				return fmt.Errorf("archiving %s for %s: %w", name, p, err)
			}
		}
	}
	return nil
}

// completions are the files by which shells complete a program's arguments, which are the same on every platform.
func (r *release) completions(ctx context.Context, name string) (files []layer.Entry, err error) {
	for _, c := range []struct{ shell, file string }{
		{"bash", name + ".bash"},
		{"zsh", "_" + name},
		{"fish", name + ".fish"},
		{"powershell", name + ".ps1"},
	} {
		script, err := r.call(ctx, name, "completion", c.shell)
		if err != nil {
			return nil, err
		}
		files = append(files, layer.File("/completions/"+c.file, 0o644, string(script)))
	}
	return files, nil
}

// manual are the manual pages of a program and its commands.
func (r *release) manual(ctx context.Context, name string) (files []layer.Entry, err error) {
	dir := filepath.Join(r.work, name+"-man1")
	if _, err := r.call(ctx, name, "man", dir); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the manual pages of %s: %w", name, err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(dir, page.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, layer.File("/man/man1/"+page.Name(), 0o644, string(text)))
	}
	return files, nil
}

func (r *release) writeArchive(ctx context.Context, name string, p platform, made []layer.Entry) error {
	file, err := r.build(ctx, name, p)
	if err != nil {
		return err
	}
	info, err := program.Read(file)
	if err != nil {
		return err
	}
	if info.Revision != r.commit || info.Version != r.version {
		return fmt.Errorf("the program calls itself %q of the commit %q, not %s of %s", info.Version, info.Revision,
			r.version, r.commit)
	}
	r.golang, r.time = info.GoVersion, info.Time
	files, err := r.archived(ctx, name, p, file)
	if err != nil {
		return err
	}
	base := fmt.Sprintf("%s-%s-%s-%s", name, r.version, p.system, p.arch)
	files = layer.WithFolders(append(files, made...))
	for n := range files {
		files[n].Path, files[n].Time = "/"+base+files[n].Path, info.Time
	}
	files = append(files, layer.Entry{Path: "/" + base, Mode: os.ModeDir | 0o755, Time: info.Time})
	if p.system == "windows" {
		err = r.create(base+".zip", func(w io.Writer) error { return writeZip(w, files) })
	} else {
		err = r.create(base+".tar.gz", func(w io.Writer) error { return writeTar(ctx, w, files) })
	}
	if err != nil {
		return err
	}
	document, err := sbom.Of(info, images.License, p.String(), info.Time)
	if err != nil {
		return err
	}
	if err := r.writeFile(base+".spdx.json", document); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.stdout, "archive %s\n", base)
	return err
}

// archived are the files of an archive: the program, what must come with it, and what is good to have.
func (r *release) archived(ctx context.Context, name string, p platform, file string) ([]layer.Entry, error) {
	licenses, err := notice.Of(ctx, r.target(name, p))
	if err != nil {
		return nil, fmt.Errorf("collecting licences: %w", err)
	}
	executable := "/" + name
	if p.system == "windows" {
		executable += ".exe"
	}
	return []layer.Entry{
		{Path: executable, Mode: 0o755, Source: file},
		{Path: "/LICENSE", Mode: 0o644, Source: filepath.Join(r.root, "LICENSE")},
		layer.File("/NOTICE", 0o644, licenses),
		{Path: "/README.md", Mode: 0o644, Source: filepath.Join(r.root, "README.md")},
	}, nil
}

// create writes a file of the release piece by piece.
func (r *release) create(name string, write func(io.Writer) error) error {
	file, err := os.Create(filepath.Join(r.dir, name))
	if err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(file, 1<<20)
	return cmp.Or(write(buffer), buffer.Flush(), file.Close())
}

func writeTar(ctx context.Context, w io.Writer, files []layer.Entry) error {
	compressed := gzip.NewWriter(w) // whose header has neither name nor time
	return cmp.Or(layer.Write(ctx, compressed, files), compressed.Close())
}

// writeZip writes what Windows unpacks by itself. A zip file needs no folders of their own.
func writeZip(w io.Writer, files []layer.Entry) error {
	archive := zip.NewWriter(w)
	for _, f := range files {
		if f.Mode.IsDir() {
			continue
		}
		header := &zip.FileHeader{Name: strings.TrimPrefix(f.Path, "/"), Method: zip.Deflate, Modified: f.Time.UTC()}
		header.SetMode(f.Mode)
		to, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		data := f.Data
		if f.Source != "" {
			if data, err = os.ReadFile(f.Source); err != nil {
				return err
			}
		}
		if _, err := to.Write(data); err != nil {
			return err
		}
	}
	return archive.Close()
}
