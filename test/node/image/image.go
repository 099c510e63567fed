// Package image makes the images of tests on a real node without a registry, Docker or a base image: archives as
// 'docker save' writes them, which 'ctr images import', 'kind load image-archive' and 'docker load' take.
//
// One image, worker, stands for every image of a training: it holds Debian's torch, OpenMPI and ssh as they are
// installed on this machine, and the files of root/. The others hold one program of the cluster's. An archive is a
// function of what goes in, but for Python's caches, which differ between machines; it is written whole or not at all,
// and used again for as long as it would come out the same. The images of this repository are not among them: Shipped
// reads what 'make images' has written.
package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/tegen-dev/tegen/images/layer"
)

// The images.
const (
	Worker     = "worker" // whatever trains, curl's, and all others
	Etcd       = "etcd"
	Etcd35     = "etcd-3.5" // with the v2 API
	Kubectl    = "kubectl"
	Pause      = "pause"
	Tegen      = "tegen" // this and those below are shipped
	Rendezvous = "tegen-rendezvous"
	Scheduler  = "tegen-scheduler"
)

// Names are all images that are made here.
func Names() []string {
	return []string{Worker, Etcd, Etcd35, Kubectl, Pause}
}

// Reference is the name under which an archive brings an image. Its tag is not latest, which a kubelet would pull.
func Reference(image string) string { return "localhost/tegen-test/" + image + ":1" }

// For is the image that stands for the one that a bundle names.
func For(name string) string {
	name, _, _ = strings.Cut(name, "@")
	name = name[strings.LastIndex(name, "/")+1:] // a registry's port is no tag
	name, tag, _ := strings.Cut(name, ":")
	switch name {
	case Etcd:
		if strings.HasPrefix(tag, "v3.5.") {
			return Etcd35
		}
		return Etcd
	case Kubectl, Pause, Tegen, Rendezvous, Scheduler:
		return name
	}
	return Worker
}

// unusedFor is how long an archive stays that is no longer made: another checkout may be about to import it.
const unusedFor = time.Hour

// format is part of every key. It must change with what archives are written by: this package's code.
const format = "3"

// CacheDir is a folder for archives that all checkouts share.
func CacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for a cache folder: %w", err)
	}
	return filepath.Join(cache, "tegen", "images"), nil
}

// Build writes the archives of the named images, without names of all, into a folder, unless they are there, and
// returns their paths. Importing one gives the image its Reference.
func Build(ctx context.Context, progress io.Writer, dir string, names ...string) (archives []string, err error) {
	if len(names) == 0 {
		names = Names()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of images: %w", err)
	}
	for _, name := range names {
		r, err := recipeOf(ctx, progress, name)
		if err != nil {
			return nil, fmt.Errorf("preparing the image %s: %w", name, err)
		}
		path, err := r.build(ctx, progress, dir)
		if err != nil {
			return nil, fmt.Errorf("writing the image %s: %w", name, err)
		}
		archives = append(archives, path)
	}
	return archives, nil
}

// recipe is what an image is made of.
type recipe struct {
	image  string
	layers []part
	config v1.Config
}

// part is a layer of an image, which is kept where another part changes.
type part struct {
	key     string // changes with the entries
	entries func() ([]layer.Entry, error)
}

func recipeOf(ctx context.Context, progress io.Writer, name string) (recipe, error) {
	if name == Worker {
		return workerRecipe(ctx)
	}
	if p, ok := programs[name]; ok {
		return p.recipe(ctx, progress, name)
	}
	return recipe{}, errors.New("there is no such image")
}

// keyOf is short and differs where the parts differ.
func keyOf(parts ...string) string {
	hash := sha256.New()
	for _, part := range append([]string{format}, parts...) {
		// The length first, so that no two different lists read the same.
		hash.Write(fmt.Appendf(nil, "%d %s", len(part), part))
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// file is the archive's name. That of its first layer, by far the largest, is a part of its own.
func (r recipe) file() (string, error) {
	config, err := json.Marshal(r.configFile())
	if err != nil {
		return "", err
	}
	parts := []string{string(config)}
	for _, l := range r.layers[1:] {
		parts = append(parts, l.key)
	}
	return r.prefix() + keyOf(parts...) + ".tar", nil
}

// prefix is what the names of archives with the same first layer begin with. The comma keeps etcd's apart from
// etcd-3.5's.
func (r recipe) prefix() string { return r.image + "," + r.layers[0].key + "," }

// build returns the path of the archive.
func (r recipe) build(ctx context.Context, progress io.Writer, dir string) (string, error) {
	name, err := r.file()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	now := time.Now()
	// Says that it is in use, and whether it is there.
	if err := os.Chtimes(path, now, now); err == nil {
		return path, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	file, err := os.CreateTemp(dir, r.image+",*.partial")
	if err != nil {
		return "", err
	}
	err = errors.Join(r.write(ctx, file, dir), file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	if info, err := os.Stat(path); err == nil {
		// That nobody can read it is no reason to stop.
		_, _ = fmt.Fprintf(progress, "made the image %s, %d MB, in %.1f s\n", r.image, info.Size()/1e6,
			time.Since(now).Seconds())
	}
	prune(dir, r.image, name)
	return path, nil
}

func (r recipe) write(ctx context.Context, file *os.File, dir string) error {
	var layers []v1.Layer
	for i, l := range r.layers {
		var olds []string // the first layer is the same in all of these, so any will do
		if i == 0 {
			olds, _ = filepath.Glob(filepath.Join(dir, r.prefix()+"*.tar"))
		}
		layer, err := l.blob(ctx, olds)
		if err != nil {
			return err
		}
		layers = append(layers, layer)
	}
	img, err := r.assemble(layers)
	if err != nil {
		return err
	}
	return r.archive(file, img)
}

// prune removes archives of an image, whole or partial, that have not been used for some time. What cannot be removed
// stays: it only takes room.
func prune(dir, image, keep string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		ours := strings.HasPrefix(entry.Name(), image+",") &&
			slices.Contains([]string{".tar", ".partial"}, filepath.Ext(entry.Name()))
		if err == nil && ours && entry.Name() != keep && time.Since(info.ModTime()) > unusedFor {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}
