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
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
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

// nobody is the user that images run as, and manifests too.
const nobody = "65534:65534"

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
		layers: []layer{
			{key: debianKey(packages), entries: func() ([]entry, error) { return debianEntries(ctx, packages) }},
			{key: keyOfEntries(top), entries: func() ([]entry, error) { return top, nil }},
		},
		config: v1.Config{
			User: nobody,
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
func keyOfEntries(entries []entry) string {
	var parts []string
	for _, e := range entries {
		sum := sha256.Sum256(e.data)
		parts = append(parts, fmt.Sprintf("%s %s %s %s", e.path, e.mode, e.link, hex.EncodeToString(sum[:])))
	}
	slices.Sort(parts)
	return keyOf(parts...)
}

// topEntries are the files of workers and those that no package brings.
func topEntries(files fs.FS) ([]entry, error) {
	byPath := map[string]entry{}
	for _, e := range []entry{
		// The home of nobody is where pods mount a writable folder.
		file("/etc/passwd", 0o644,
			"root:x:0:0:root:/root:/bin/bash\nsshd:x:74:74::/run/sshd:/usr/sbin/nologin\n"+
				"nobody:x:65534:65534:nobody:/tmp:/bin/bash\n"),
		file("/etc/group", 0o644, "root:x:0:\nsshd:x:74:\nnogroup:x:65534:\n"),
		file("/etc/nsswitch.conf", 0o644, "passwd: files\ngroup: files\nhosts: files dns\n"),
		link("/usr/bin/python", "python3"),
		link("/var/run", "/run"),
		{path: "/tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		folder("/workspace"),
		folder("/dev"), folder("/proc"), folder("/sys"), // where a runtime mounts
	} {
		byPath[e.path] = e
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
		e := entry{path: strings.TrimPrefix(name, "root"), mode: mode, data: data}
		byPath[e.path] = e
		return nil
	})
	if err != nil {
		return nil, err
	}
	addFolders(byPath)
	return slices.Collect(maps.Values(byPath)), nil
}

// addFolders adds the folders above the entries.
func addFolders(byPath map[string]entry) {
	for _, name := range slices.Sorted(maps.Keys(byPath)) {
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if _, ok := byPath[dir]; !ok {
				byPath[dir] = folder(dir)
			}
		}
	}
}
