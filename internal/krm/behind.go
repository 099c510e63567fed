package krm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

// seenFiles are the digests of files that kustomize read, by name.
type seenFiles map[string][sha256.Size]byte

// watch has the files recorded that kustomize reads from now on.
func (k *kustomization) watch() {
	if k.behind == nil {
		k.behind = seenFiles{}
	}
}

// add records a file. Files of tegen's inputs are left out, because the digest of each job has what they contain, and
// so is what tegen rendered.
func (s seenFiles) add(from, path string, data []byte) {
	base := filepath.Base(path)
	if s == nil || strings.HasPrefix(base, "tegen-rendered") || strings.HasPrefix(base, "tegen-nested-") ||
		bytes.Contains(data, []byte(names.APIVersion)) {
		return
	}
	if name, err := filepath.Rel(from, path); err == nil {
		path = filepath.ToSlash(name)
	}
	s[path] = sha256.Sum256(data)
}

// digest is one of all files, "" where none was watched.
func (s seenFiles) digest() string {
	if s == nil {
		return ""
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		_, _ = fmt.Fprintf(sum, "%s %x\n", name, s[name]) // a hash takes whatever is written
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
