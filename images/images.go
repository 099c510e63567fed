// Package images makes the container images of this repository's programs without a container engine, a base image or a
// registry, from static programs and a few files. One commit gives the same digests on every machine with the same
// version of Go. Command release writes and pushes them.
package images

import (
	_ "embed"
	"encoding/pem"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/tegen-dev/tegen/images/layer"
)

// Image is the definition of one image.
type Image struct {
	Name        string // of the image, and of its program in ./cmd
	Description string
	Command     []string // default arguments of the program
	MaxSize     int64    // in bytes, compressed, for one platform
}

func (i Image) String() string { return i.Name }

// plugin configures tegen as a plugin of Argo CD, whose plugin server reads it from pluginPath.
//
//go:embed plugin.yaml
var plugin string

const pluginPath = "/home/argocd/cmp-server/config/plugin.yaml"

// All returns the images, with tegen last, since a release of tegen names the others by digest.
func All() []Image {
	return []Image{
		{
			Name:        "tegen-rendezvous",
			Description: "Serves the rendezvous of torchrun's workers, and brings them a proxy",
			MaxSize:     40e6,
		},
		{
			Name:        "tegen-scheduler",
			Description: "kube-scheduler with plugins that place all pods of a gang or none",
			MaxSize:     60e6,
		},
		{
			Name:        "tegen",
			Description: "Renders training jobs into Kubernetes manifests: CLI, KRM function and Argo CD plugin",
			Command:     []string{"fn"}, // kustomize and kpt give a function no arguments
			MaxSize:     40e6,
		},
	}
}

// Choose returns the elements with these names, or all if there are no names. Commas or spaces separate names.
func Choose[T fmt.Stringer](kind, names string, all []T) ([]T, error) {
	wanted := strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(t T) bool { return t.String() == name }) {
			return nil, fmt.Errorf("there is no %s %q: choose from %v", kind, name, all)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(t T) bool {
		return len(wanted) > 0 && !slices.Contains(wanted, t.String())
	}), nil
}

// User runs the programs.
const User = "65534:65534"

// License is that of this repository, by its SPDX identifier.
const License = "Apache-2.0"

// users are user names that other programs expect: kustomize and kpt run functions as nobody, and an Argo CD sidecar
// runs as 999. Their home folders are read-only, so that no file there can pass for credentials.
const users = `root:x:0:0:root:/root:/sbin/nologin
argocd:x:999:999:Argo CD:/home/argocd:/sbin/nologin
nobody:x:65534:65534:nobody:/:/sbin/nologin
`

const groups = `root:x:0:
argocd:x:999:
nobody:x:65534:
`

// The root certificates are Mozilla's, as the Go project publishes them in a module. go.sum pins them, so that they are
// the same on every machine and need no network. A test compares the version with go.mod.
const (
	CertificatesModule  = "golang.org/x/crypto/x509roots/fallback"
	CertificatesVersion = "v0.0.0-20261030153154-30a33513ff6d"

	certificatesPath   = "/etc/ssl/certs/ca-certificates.crt" // where Go and others look for them
	certificatesNotice = "==== " + certificatesPath + "\n\nThe root certificates of Mozilla, as " + CertificatesModule +
		" " + CertificatesVersion + " has them. They are\n" +
		"under the Mozilla Public License 2.0, https://mozilla.org/MPL/2.0/. Their source is certdata.txt of NSS,\n" +
		"https://hg.mozilla.org/projects/nss/file/tip/lib/ckfw/builtins/certdata.txt.\n\n"
)

// certificates leaves out those that Mozilla trusts under conditions, which a file cannot express.
func certificates() (all string) {
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return all
}

// certificatesPackage describes the certificates in an SBOM.
func certificatesPackage() *spdx.Package {
	return &spdx.Package{
		PackageName: "ca-certificates", PackageVersion: CertificatesVersion, PrimaryPackagePurpose: "OTHER",
		PackageDownloadLocation: unknown, PackageLicenseDeclared: "MPL-2.0", PackageSourceInfo: "Mozilla's root " +
			"certificates in " + certificatesPath + ", as the Go module " + CertificatesModule + " has them",
	}
}

// files are those of an image: its program, the licences, and what programs expect of a system.
func (i Image) files(p Program, notice string) []layer.Entry {
	files := []layer.Entry{
		{Path: "/usr/local/bin/" + i.Name, Mode: 0o755, Source: p.File},
		{Path: "/LICENSE", Mode: 0o644, Source: filepath.Join(p.Root, "LICENSE")},
		layer.File("/NOTICE", 0o644, notice+certificatesNotice),
		layer.File("/etc/passwd", 0o644, users),
		layer.File("/etc/group", 0o644, groups),
		layer.File(certificatesPath, 0o644, certificates()),
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
	if i.Name == "tegen" {
		files = append(files, layer.File(pluginPath, 0o644, plugin))
	}
	return layer.WithFolders(files)
}
