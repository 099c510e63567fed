package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/load"
	cueyaml "cuelang.org/go/encoding/yaml"
	"cuelang.org/go/mod/modconfig"
	"cuelang.org/go/mod/modregistrytest"
	"cuelang.org/go/mod/module"
	"cuelang.org/go/mod/modzip"
)

// usersJobs is the file of docs/cue.md that imports the module.
func usersJobs(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/cue.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- jobs.cue -->\n```text\n")
	file, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("docs/cue.md has no jobs.cue")
	}
	return file
}

// unpackedModule writes the release's archive of the schema, checks it as a registry does, and unpacks it.
func unpackedModule(t *testing.T) string {
	t.Helper()
	files, err := moduleFiles("..")
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zipped(files, time.Unix(1767323045, 0))
	if err != nil {
		t.Fatal(err)
	}
	version := module.MustNewVersion("tegen.dev/schema@v1", "v1.2.3")
	file := filepath.Join(t.TempDir(), "schema.zip")
	write(t, file, archive)
	dir := filepath.Join(t.TempDir(), "schema")
	if err := modzip.Unzip(dir, version, file); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestModule uses the archive as its users do: from a folder, from cue.mod/pkg of a module, and from a registry.
func TestModule(t *testing.T) {
	unpacked := unpackedModule(t)
	t.Run("folder", func(t *testing.T) {
		requireVerdicts(t, &load.Config{Dir: unpacked}, "#TrainingJob")
	})
	t.Run("cue.mod/pkg", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "cue.mod", "module.cue"),
			"module: \"example.com/jobs@v0\"\nlanguage: version: \"v0.17.0\"\n")
		write(t, filepath.Join(dir, "jobs.cue"), usersJobs(t))
		vendored := filepath.Join(dir, "cue.mod", "pkg", "tegen.dev", "schema")
		if err := os.CopyFS(vendored, os.DirFS(unpacked)); err != nil {
			t.Fatal(err)
		}
		requireVerdicts(t, &load.Config{Dir: dir}, "#Job")
	})
	t.Run("registry", func(t *testing.T) {
		published := t.TempDir()
		if err := os.CopyFS(filepath.Join(published, "tegen.dev_schema_v1.2.3"), os.DirFS(unpacked)); err != nil {
			t.Fatal(err)
		}
		registry, err := modregistrytest.New(os.DirFS(published), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(registry.Close)
		modules, err := modconfig.NewRegistry(&modconfig.Config{Env: []string{
			"CUE_REGISTRY=" + registry.Host() + "+insecure", "CUE_CACHE_DIR=" + t.TempDir(),
		}})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, "cue.mod", "module.cue"), "module: \"example.com/jobs@v0\"\n"+
			"language: version: \"v0.17.0\"\ndeps: \"tegen.dev/schema@v1\": {v: \"v1.2.3\", default: true}\n")
		write(t, filepath.Join(dir, "jobs.cue"), usersJobs(t))
		requireVerdicts(t, &load.Config{Dir: dir, Registry: modules}, "#Job")
	})
}

// requireVerdicts asserts that a definition of a package accepts a valid job and refuses invalid ones.
func requireVerdicts(t *testing.T, config *load.Config, definition string) {
	t.Helper()
	ctx := cuecontext.New()
	v := ctx.BuildInstance(load.Instances([]string{"."}, config)[0])
	if v.Err() != nil {
		t.Fatal(errors.Details(v.Err(), nil))
	}
	v = v.LookupPath(cue.ParsePath(definition))
	for file, want := range map[string]string{
		"valid/minimal.yaml":                 "",
		"invalid/storage-two-sources.yaml":   "does not satisfy matchN",
		"invalid/unknown-field.yaml":         "field not allowed",
		"invalid/mount-reserved.yaml":        "out of bound",
		"invalid/exit-code-twice.yaml":       "does not satisfy list.UniqueItems",
		"invalid/env-no-source.yaml":         "does not satisfy matchN",
		"invalid/workers-max-below-min.yaml": "", // a rule between two fields
	} {
		text, err := os.ReadFile(filepath.Join("..", "fixtures", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := cueyaml.Extract(file, text)
		if err != nil {
			t.Fatal(err)
		}
		err = ctx.BuildFile(parsed).Unify(v).Validate(cue.Concrete(true))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(errors.Details(err, nil), want)) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
	job := ctx.CompileString(`{apiVersion: "tegen.dev/v1alpha1", kind: "TrainingJob", metadata: name: "a",
		spec: {image: "docker.io/other/a:1", workers: replicas: 1}}`)
	if err := job.Unify(v).Validate(cue.Concrete(true)); (err == nil) != (definition == "#TrainingJob") {
		t.Errorf("an image of another registry under %s: %v", definition, err)
	}
}
