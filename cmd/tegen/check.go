package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/crds"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

const checkLong = `check reads manifests of any origin and reports every reference that does not
resolve among them: Services and subdomains, endpoints in arguments and
environment variables, claims and volumes, ServiceAccounts, Secrets and
ConfigMaps, selectors and pod templates. Run it over what is applied, after every
overlay and patch: a prefix renames a Service, but not the endpoint in an
environment variable. Such an overlay may also move an installation of
'tegen install' from where it works, or replace the annotations by which Argo CD
and Flux keep claims and volumes: both are reported too. So is an object whose
name has a hash of its content (tegen.dev/content-hash) and that was changed
after tegen rendered it: its next change would be refused.

Objects that exist in the cluster already are listed on the workload that needs
them, in the annotation tegen.dev/expects: "Secret/token, Service/mlflow".

An API server silently drops every field of a custom resource that the kind's
CustomResourceDefinition does not list. With --crds DIR, check
reads the definitions in the YAML files of a directory, v1 or v1beta1, and reports
each field that would be dropped or refused. Where several files define one kind,
all of them are checked. Custom resources without a definition are noted; rules in CEL
(x-kubernetes-validations) are not evaluated.

A directory stands for every .yaml, .yml and .json file in it and below, less the
kustomizations. "-" reads standard input.` + findingsHelp

const checkExample = `  kustomize build overlays/production | tegen check -
  tegen render jobs --overlay overlays/eks | tegen check -
  kubectl get crds -o yaml > crds/cluster.yaml && tegen check --crds crds rendered/eks
  tegen check rendered/eks -o sarif > tegen.sarif`

func newCheckCmd(s cli.Streams) *cobra.Command {
	var definitions, output string
	cmd := &cobra.Command{
		Use:               "check FILE|DIRECTORY...",
		Short:             "Check that every reference among manifests resolves, and what CRDs would drop",
		Long:              checkLong,
		Example:           checkExample,
		Args:              cli.AtLeastOne("file or directory"),
		ValidArgsFunction: manifests,
		RunE: func(_ *cobra.Command, files []string) error {
			notes, err := runCheck(s.In, files, definitions, output != "text")
			return report(s, finding.Report{Command: "check", Findings: notes}, output, err)
		},
	}
	addOptional(cmd, &definitions, "crds", "directory", "directory of CustomResourceDefinitions to hold custom "+
		"resources against")
	completeBy(cmd, "crds", directories)
	addFindings(cmd, &output)
	return cmd
}

// maxManifests is the most bytes of a file: 4,000 jobs of many objects are some 30 MB.
const maxManifests = 256 << 20

// runCheck reads manifests and returns notes, and what is wrong as an error. Findings have places where places is set.
func runCheck(stdin io.Reader, files []string, definitions string, places bool) (finding.List, error) {
	sources, objects, err := readManifests(stdin, files)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 { // an earlier program of the pipe may have failed
		return nil, errors.New("nothing to check: there is no object in the input")
	}
	var notes, wrong finding.List
	for _, b := range refs.Check(objects) {
		wrong = append(wrong, b.Finding())
	}
	wrong = append(wrong, render.Changed(objects)...)
	notes = append(notes, render.Renamed(objects)...)
	if definitions != "" {
		known, err := crds.ReadDir(definitions)
		if err != nil {
			return nil, err
		}
		findings, undefined := crds.Check(known, objects)
		for _, u := range undefined {
			notes = append(notes, finding.Finding{
				Rule: "crd/undefined", Level: finding.Note,
				Message: fmt.Sprintf("%s has no CRD of %s: not held against one: %s", definitions, u.Kind,
					few(u.Objects)),
			})
		}
		for _, f := range findings {
			wrong = append(wrong, f.Finding())
		}
	}
	if places {
		wrong = located(sources, wrong)
	}
	return notes, wrong.Err()
}

// few is a text of the first of many names.
func few(names []string) string {
	const enough = 3
	if len(names) <= enough {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enough], ", "), len(names)-enough)
}

// filesBelow puts in the place of each directory the manifests in it, in the order of their names.
func filesBelow(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		if info, err := os.Stat(name); name == "-" || err != nil || !info.IsDir() {
			out = append(out, name) // reading reports what does not exist
			continue
		}
		before := len(out)
		root := name + string(filepath.Separator) // where the name is a link's, what it leads to
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && path != root && strings.HasPrefix(e.Name(), "."): // .git
				return filepath.SkipDir
			case isManifest(path):
				out = append(out, path)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", printable(name), err)
		}
		if len(out) == before {
			return nil, fmt.Errorf("reading %s: there is no manifest in it", printable(name))
		}
	}
	return out, nil
}

// isManifest says whether a path is a file, or a link to one, that kubectl would read from a directory and that is no
// kustomization.
func isManifest(path string) bool {
	if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) ||
		slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path)) {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func readManifests(stdin io.Reader, names []string) ([]schema.Source, []runtime.Object, error) {
	files, err := filesBelow(names)
	if err != nil {
		return nil, nil, err
	}
	sources, err := read(stdin, files, maxManifests)
	if err != nil {
		return nil, nil, err
	}
	var objects []runtime.Object
	for _, src := range sources {
		if len(src.Data) > maxManifests {
			return nil, nil, fmt.Errorf("reading %s: it has more than %d MiB: check it in parts", src.Name,
				maxManifests>>20)
		}
		read, err := manifest.Read(src.Name, bytes.TrimPrefix(src.Data, []byte("\xef\xbb\xbf")))
		if err != nil {
			return nil, nil, err
		}
		objects = append(objects, read...)
	}
	return sources, objects, nil
}
