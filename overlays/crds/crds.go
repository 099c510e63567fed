// Package crds is the definitions in this directory, for 'tegen install crds'.
package crds

import "embed"

// Files are the definitions, without the kustomization.
//
//go:embed *_*.yaml
var Files embed.FS
