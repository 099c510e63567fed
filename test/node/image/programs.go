package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/tegen-dev/tegen/images"
	"github.com/tegen-dev/tegen/images/layer"
	"github.com/tegen-dev/tegen/test/cluster"
)

// single is what an image of one program holds besides nothing.
type single struct {
	name    string // its file in /usr/local/bin
	build   func(ctx context.Context, progress io.Writer, name string) (string, error)
	source  string // what build is asked for
	command bool   // the image starts it; a bundle that names another one's image says what to start
}

var programs = map[string]single{
	Etcd:    {name: "etcd", build: cluster.Program, source: cluster.Etcd},
	Etcd35:  {name: "etcd", build: cluster.Program, source: cluster.Etcd35},
	Kubectl: {name: "kubectl", build: cluster.Program, source: cluster.Kubectl, command: true},
	Pause:   {name: "pause", build: cluster.BuildCommand, source: "./test/node/image/pause", command: true},
}

func (p single) recipe(ctx context.Context, progress io.Writer, image string) (recipe, error) {
	source, err := p.build(ctx, progress, p.source)
	if err != nil {
		return recipe{}, err
	}
	digest, err := digestOf(source)
	if err != nil {
		return recipe{}, fmt.Errorf("reading %s: %w", source, err)
	}
	target := path.Join("/usr/local/bin", p.name)
	entries := layer.WithFolders([]layer.Entry{{Path: target, Mode: 0o755, Source: source}})
	c := v1.Config{User: images.User, Env: []string{searchPath}}
	if p.command {
		c.Entrypoint = []string{target}
	}
	return recipe{
		image:  image,
		layers: []part{{key: keyOf(target, digest), entries: func() ([]layer.Entry, error) { return entries, nil }}},
		config: c,
	}, nil
}

// digestOf reads all of a program: a build may make the same one again.
func digestOf(name string) (_ string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
