// Package images makes the container images of this repository's programs: without a container engine, a base image or
// a registry, from static programs and a few files. One commit gives the same digests on every machine, for one version
// of Go. Package push takes them to a registry.
package images

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/tegen-dev/tegen/images/certificates"
	"github.com/tegen-dev/tegen/images/layer"
	"github.com/tegen-dev/tegen/images/program"
)

// Image is what sets one of the images apart.
type Image struct {
	Name        string // of the image, and of its program in ./cmd
	Module      string // folder of its module, empty for the repository itself
	Description string
	Command     []string // arguments of the program where whoever starts it gives none
	MaxSize     int64    // in bytes, compressed, for one platform
	plugin      bool     // it is a plugin of Argo CD too
}

// plugin is the configuration of the plugin, and pluginPath where Argo CD's server of plugins looks for it.
//
//go:embed plugin.yaml
var plugin string

const pluginPath = "/home/argocd/cmp-server/config/plugin.yaml"

// All returns the images.
func All() []Image {
	return []Image{
		{
			Name:        "tegen",
			Description: "Renders training jobs into Kubernetes manifests: CLI, KRM function and Argo CD plugin",
			Command:     []string{"fn"}, // kustomize and kpt give a function no arguments
			MaxSize:     40e6,
			plugin:      true,
		},
		{
			Name:        "tegen-rendezvous",
			Module:      "rendezvous",
			Description: "Serves the rendezvous of torchrun's workers, and brings them a proxy",
			MaxSize:     40e6,
		},
		{
			Name:        "tegen-scheduler",
			Module:      "scheduler",
			Description: "kube-scheduler with plugins that place all pods of a gang or none",
			MaxSize:     60e6,
		},
	}
}

// Named returns the images of these names, with commas between them; all without names.
func Named(names string) ([]Image, error) {
	all := All()
	if names == "" {
		return all, nil
	}
	var chosen []Image
	for name := range strings.SplitSeq(names, ",") {
		n := slices.IndexFunc(all, func(i Image) bool { return i.Name == name })
		if n < 0 {
			return nil, fmt.Errorf("there is no image %q: there are tegen, tegen-rendezvous and tegen-scheduler", name)
		}
		chosen = append(chosen, all[n])
	}
	return chosen, nil
}

// Architectures are those of Linux that images are made for.
func Architectures() []string { return []string{"amd64", "arm64"} }

// User is who the programs run as.
const User = "65534:65534"

// License is that of this repository, as SPDX calls it.
const License = "Apache-2.0"

// Program is where an image has its program.
func (i Image) Program() string { return "/usr/local/bin/" + i.Name }

// users are those that something asks for by name: kustomize and kpt run functions as nobody, and an Argo CD sidecar
// runs as 999. Neither home can be written to, so that nothing put there is taken for somebody's credentials.
const users = `root:x:0:0:root:/root:/sbin/nologin
argocd:x:999:999:Argo CD:/home/argocd:/sbin/nologin
nobody:x:65534:65534:nobody:/:/sbin/nologin
`

const groups = `root:x:0:
argocd:x:999:
nobody:x:65534:
`

// files are those of an image: its program, in a file of this machine, and the licences of all that is in it.
func (i Image) files(root, file, notice string) ([]layer.Entry, error) {
	license, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	files := []layer.Entry{
		{Path: i.Program(), Mode: 0o755, Source: file},
		layer.File("/LICENSE", 0o644, string(license)),
		layer.File("/NOTICE", 0o644, notice),
		layer.File("/etc/passwd", 0o644, users),
		layer.File("/etc/group", 0o644, groups),
		layer.File(certificates.Path, 0o644, string(certificates.PEM())),
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
	if i.plugin {
		files = append(files, layer.File(pluginPath, 0o644, plugin))
	}
	return layer.WithFolders(files), nil
}

// config says how a container starts.
func (i Image) config(labels map[string]string) v1.Config {
	return v1.Config{
		User:       User,
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Entrypoint: []string{i.Program()},
		Cmd:        i.Command,
		Labels:     labels,
	}
}

// labels say where an image is from. What nobody knows is left out.
func (i Image) labels(info program.Info, created time.Time) map[string]string {
	source := "https://" + info.Main.Path
	const prefix = "org.opencontainers.image."
	labels := map[string]string{
		prefix + "title":         i.Name,
		prefix + "description":   i.Description,
		prefix + "source":        source,
		prefix + "documentation": source + "/blob/main/docs/images.md",
		prefix + "licenses":      License,
		prefix + "created":       created.UTC().Format(time.RFC3339),
	}
	if info.Version != "" {
		labels[prefix+"version"] = info.Version
	}
	if info.Revision != "" {
		labels[prefix+"revision"] = info.Revision
	}
	return labels
}
