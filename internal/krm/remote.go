package krm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// refuseRemote refuses a kustomization that names what is not on this disk: kustomize would fetch it with git or over
// HTTP, and what is rendered must not depend on what a server says today. above are the directories on the way here.
func refuseRemote(dir string, above []string) error {
	if i := slices.Index(above, dir); i >= 0 {
		return fmt.Errorf("reading %s: it contains itself: %s", dir, strings.Join(append(above[i:], dir), " → "))
	}
	file, k, err := readFile(dir)
	if err != nil || file == "" {
		return err // without a file kustomize's own error is enough
	}
	refuse := func(what, remedy string) error {
		return fmt.Errorf("reading %s: %s: %s", filepath.Join(dir, file), what, remedy)
	}
	if len(k.HelmCharts) > 0 || k.HelmGlobals != nil {
		return refuse("helm charts", "a program of its own fetches them: render them before")
	}
	for _, entry := range referencedPaths(&k) {
		if entry == "" || strings.Contains(entry, "\n") { // nothing, or the content itself
			continue
		}
		path := filepath.Join(dir, entry)
		info, err := os.Stat(path)
		if err != nil {
			return refuse(entry, "it is not a file or directory here, and nothing is fetched")
		}
		if info.IsDir() {
			if err := refuseRemote(path, append(above, dir)); err != nil {
				return err
			}
		} else if !info.Mode().IsRegular() {
			return refuse(entry, notRegular)
		}
	}
	for _, entry := range slices.Concat(k.Generators, k.Transformers, k.Validators) {
		text := []byte(entry)
		if !strings.Contains(entry, "\n") {
			text, _ = readRegular(filepath.Join(dir, entry)) // a directory was looked at above
		}
		if remote := remoteAddress(text); remote != "" {
			return refuse(remote, "it is not a file here, and nothing is fetched")
		}
	}
	return nil
}

// referencedPaths are all the files and directories that a kustomization names.
func referencedPaths(k *types.Kustomization) []string {
	out := slices.Concat(k.Resources, k.Components, k.Generators, k.Transformers, k.Validators, k.Configurations,
		k.Crds)
	for _, p := range k.PatchesStrategicMerge { //nolint:staticcheck // deprecated, and read all the same
		out = append(out, string(p))
	}
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) { //nolint:staticcheck // deprecated, and still read
		out = append(out, p.Path)
	}
	for _, r := range k.Replacements {
		out = append(out, r.Path)
	}
	for _, p := range k.OpenAPI {
		out = append(out, p)
	}
	for _, g := range k.ConfigMapGenerator {
		out = append(out, sources(g.KvPairSources)...)
	}
	for _, g := range k.SecretGenerator {
		out = append(out, sources(g.KvPairSources)...)
	}
	return out
}

// sources are the files of a generated ConfigMap or Secret, without the keys that they are given.
func sources(s types.KvPairSources) []string {
	out := slices.Clone(s.EnvSources)
	for _, f := range s.FileSources {
		if _, path, ok := strings.Cut(f, "="); ok {
			f = path
		}
		out = append(out, f)
	}
	return out
}

// remotePattern is what kustomize would fetch, as the value of a field of a plugin's configuration.
var remotePattern = lazy.Regexp(`(?m)^\s*(?:-|[a-zA-Z]+:|- ` +
	`[a-zA-Z]+:)\s*["']?(?:[-._a-zA-Z0-9]+=)?((?:[a-z][a-z0-9+.-]*://|git@|git::|github\.com/)\S+)`)

// remoteAddress returns the first address in the configuration of a built-in plugin, "" where it has none. Other
// configurations are read by nobody here.
func remoteAddress(text []byte) string {
	if !bytes.Contains(text, []byte("apiVersion: builtin")) {
		return ""
	}
	if m := remotePattern().FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}
