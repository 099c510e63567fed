package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A folder's kustomization.yaml has a seal, lines of comment that tell whether the folder is as tegen rendered it: a
// digest of all files, and in the folder of an overlay the digest of what changed the objects after tegen. Neither
// covers the records of versions and inputs.
const (
	filesSeal  = "# digest of the files: "
	behindSeal = "# digest of the transformers after tegen: "
)

// seal is the seal of a kustomization with a body, beside files by name.
func (w *writer) seal(folder string, files map[string][]byte, body string) string {
	text := filesSeal + digestOf(files, body) + "\n"
	if folder == RestFolder && w.Behind != "" {
		text += behindSeal + w.Behind + "\n"
	}
	return text
}

func digestOf(files map[string][]byte, body string) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, _, text := recorded(files[name])
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text) // a hash takes whatever is written
	}
	_, _ = sum.Write([]byte(body))
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// unsealed splits a kustomization into what its seal has and its body.
func unsealed(text string) (files, behind, body string) {
	_, body, _ = strings.Cut(text, "\n") // the signature
	for _, s := range []struct {
		prefix string
		value  *string
	}{{filesSeal, &files}, {behindSeal, &behind}} {
		if line, rest, _ := strings.Cut(body, "\n"); strings.HasPrefix(line, s.prefix) {
			*s.value, body = strings.TrimPrefix(line, s.prefix), rest
		}
	}
	return files, behind, body
}

// intact reports whether the files of a folder, by name, are as the seal of its kustomization has them, and returns
// what changed them after tegen.
func intact(files map[string][]byte) (ok bool, behind string) {
	others := maps.Clone(files)
	delete(others, kustomizationFile)
	sealed, behind, body := unsealed(string(files[kustomizationFile]))
	return sealed != "" && sealed == digestOf(others, body), behind
}

// reseal updates the seal in the kustomization among files of which only the records have changed.
func (w *writer) reseal(kept []*file) {
	files := map[string][]byte{}
	var kustomization *file
	for _, f := range kept {
		if filepath.Base(f.path) == kustomizationFile {
			kustomization = f
		} else {
			files[filepath.Base(f.path)] = f.content
		}
	}
	if kustomization == nil {
		return
	}
	signature, _, _ := strings.Cut(string(kustomization.content), "\n")
	_, _, body := unsealed(string(kustomization.content))
	seal := w.seal(filepath.Dir(kustomization.path), files, body)
	kustomization.same = kustomization.same && strings.Contains(string(kustomization.content), seal)
	kustomization.content = []byte(signature + "\n" + seal + body)
}
