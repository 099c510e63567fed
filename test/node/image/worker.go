package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/images/layer"
)

// packageList holds the packages of the worker's image, one a line. test/node/setup.sh installs them.
//
//go:embed packages.txt
var packageList string

// root holds the files of workers, as they lie below /. A file that begins like a program, with "#!", becomes one.
//
//go:embed all:root
var root embed.FS

// Packages are those of Debian that must be installed to build the worker's image. What they depend on comes with them.
func Packages() []string { return strings.Fields(packageList) }

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func workerRecipe(ctx context.Context) (recipe, error) {
	records, err := installed(ctx)
	if err != nil {
		return recipe{}, err
	}
	packages, err := closure(records, Packages(), leftOut)
	if err != nil {
		return recipe{}, err
	}
	top, err := topEntries(root)
	if err != nil {
		return recipe{}, fmt.Errorf("reading the files of workers: %w", err)
	}
	return recipe{
		image: Worker,
		layers: []part{
			{key: debianKey(packages), entries: func() ([]layer.Entry, error) { return debianEntries(ctx, packages) }},
			{key: keyOfEntries(top), entries: func() ([]layer.Entry, error) { return top, nil }},
		},
		config: v1.Config{
			User: images.User,
			Env: []string{
				searchPath,
				// Without these two, Debian's torch 1.13 starts no worker on its Python 3.11.
				"PET_REDIRECTS=9:1",
				"PET_TEE=9:1",
				// Workers share the cores of one machine.
				"OMP_NUM_THREADS=1",
				"OMPI_MCA_mpi_yield_when_idle=1",
			},
			Entrypoint: []string{"/workspace/entrypoint"},
			WorkingDir: "/workspace",
		},
	}, nil
}

// debianKey changes with the versions of packages and with what is left out of them.
func debianKey(packages []record) string {
	parts := slices.Concat(pruned, shared, slices.Sorted(maps.Keys(leftOut)))
	for _, p := range packages {
		parts = append(parts, p.name+"="+p.version+":"+p.architecture)
	}
	return keyOf(parts...)
}

// keyOfEntries changes with entries that hold their content.
func keyOfEntries(entries []layer.Entry) string {
	var parts []string
	for _, e := range entries {
		sum := sha256.Sum256(e.Data)
		parts = append(parts, fmt.Sprintf("%s %s %s %s", e.Path, e.Mode, e.Link, hex.EncodeToString(sum[:])))
	}
	slices.Sort(parts)
	return keyOf(parts...)
}

// topEntries are the files of workers and those that no package brings.
func topEntries(files fs.FS) ([]layer.Entry, error) {
	byPath := map[string]layer.Entry{}
	for _, e := range []layer.Entry{
		// The home of nobody is where pods mount a writable folder.
		layer.File("/etc/passwd", 0o644,
			"root:x:0:0:root:/root:/bin/bash\nsshd:x:74:74::/run/sshd:/usr/sbin/nologin\n"+
				"nobody:x:65534:65534:nobody:/tmp:/bin/bash\n"),
		layer.File("/etc/group", 0o644, "root:x:0:\nsshd:x:74:\nnogroup:x:65534:\n"),
		layer.File("/etc/nsswitch.conf", 0o644, "passwd: files\ngroup: files\nhosts: files dns\n"),
		layer.Link("/usr/bin/python", "python3"),
		layer.Link("/var/run", "/run"),
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		layer.Folder("/workspace"),
		layer.Folder("/dev"), layer.Folder("/proc"), layer.Folder("/sys"), // where a runtime mounts
	} {
		byPath[e.Path] = e
	}
	err := fs.WalkDir(files, "root", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "__pycache__" { // of somebody who ran a program here
				return fs.SkipDir
			}
			return nil
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		// Neither embed nor every checkout keeps modes.
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o755
		}
		e := layer.Entry{Path: strings.TrimPrefix(name, "root"), Mode: mode, Data: data}
		byPath[e.Path] = e
		return nil
	})
	if err != nil {
		return nil, err
	}
	return layer.WithFolders(slices.Collect(maps.Values(byPath))), nil
}
