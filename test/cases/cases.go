// Package cases lists what the golden files hold: each valid fixture as it is rendered alone and with the overlays of
// the repository. Tests that check rendered objects render the cases with it, since most have no golden file.
package cases

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

// Base is the name of a rendering without an overlay.
const Base = "base"

// Overlays are those that every fixture must be valid with, and Base.
var Overlays = []string{Base, "kind", "eks"}

// overlaid are the fixtures that show what an overlay changes: resources, placement, storage, identity, images, gangs.
// The other fixtures have no digests of their renderings with overlays.
var overlaid = []string{
	"checkpoint-etcd", "gang-kueue", "gang-volcano", "horovod-job-minimal", "identity-irsa", "imagenet", "minimal",
	"mxnet-job-servers", "network", "placement", "storage-efs", "storage-two-volumes", "suspend-checkpoint",
}

// Case is a fixture and an overlay that it is rendered with.
type Case struct{ Fixture, Overlay string }

func (c Case) String() string { return c.Fixture + "/" + c.Overlay }

// Golden reports whether the case is part of the golden files.
func (c Case) Golden() bool { return c.Overlay == Base || slices.Contains(overlaid, c.Fixture) }

// InFull reports whether golden/ has a file with all objects of the case. Those of other cases have digests.
func (c Case) InFull() bool {
	return slices.ContainsFunc(inFull, func(g group) bool {
		return slices.Contains(strings.Fields(g.cases), c.String())
	})
}

// All returns the cases of the golden files, in the order of their names. root is the root of the repository.
func All(root string) (all []Case, err error) {
	files, err := filepath.Glob(filepath.Join(root, "fixtures/valid/*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no fixtures below %s: %w", root, err)
	}
	for _, file := range files {
		for _, overlay := range Overlays {
			if c := (Case{strings.TrimSuffix(filepath.Base(file), ".yaml"), overlay}); c.Golden() {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// Render returns what 'tegen render' prints for the case; TestGolden of internal/command compares the two.
func (c Case) Render(root string) ([]byte, error) {
	name := filepath.Join("fixtures/valid", c.Fixture+".yaml")
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	out, err := c.output(root, []schema.Source{{Name: name, Data: text}})
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", c, err)
	}
	var objects bytes.Buffer
	if err := out.Write(&objects); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", c, err)
	}
	return objects.Bytes(), nil
}

func (c Case) output(root string, sources []schema.Source) (*krm.Output, error) {
	if c.Overlay == Base {
		jobs, err := schema.Load(sources)
		if err != nil {
			return nil, err
		}
		bundles, err := render.Jobs(jobs, render.Options{Printed: true})
		return &krm.Output{Bundles: bundles}, err
	}
	dir, err := os.MkdirTemp("", "overlay")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a copy that stays in the temporary directory does no harm
	dir = filepath.Join(dir, c.Overlay)
	if err := golden.CopyOverlay(dir, root, c.Overlay); err != nil {
		return nil, err
	}
	return krm.Overlay(dir, sources)
}

// Write renders all cases to files dir/<fixture>/<overlay>.yaml, copies those of 'tegen install' from golden/, and
// returns the files in the order of their names.
func Write(root, dir string) ([]string, error) {
	all, err := All(root)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		objects, err := c.Render(root)
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Join(dir, c.Fixture), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, c.String()+".yaml"), objects, 0o600); err != nil {
			return nil, err
		}
	}
	for _, program := range []string{"install-rendezvous", "install-scheduler"} {
		if err := os.CopyFS(filepath.Join(dir, program), os.DirFS(filepath.Join(root, "golden", program))); err != nil {
			return nil, err
		}
	}
	return golden.Rendered(dir)
}
