package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/crds"
	"github.com/tegen-dev/tegen/internal/dochead"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/policy"
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
	var policies []string
	cmd := &cobra.Command{
		Use:               "check FILE|DIRECTORY...",
		Short:             "Check that every reference among manifests resolves, and what CRDs would drop",
		Long:              checkLong,
		Example:           checkExample,
		Args:              cli.AtLeastOne("file or directory"),
		ValidArgsFunction: manifests,
		RunE: func(_ *cobra.Command, files []string) error {
			rules, err := objectPolicy(policies, "check")
			if err != nil {
				return report(s, finding.Report{Command: "check"}, output, err)
			}
			notes, err := runCheck(s.In, files, definitions, rules, output != "text")
			return report(s, finding.Report{Command: "check", Findings: notes}, output, err)
		},
	}
	addOptional(cmd, &definitions, "crds", "directory", "directory of CustomResourceDefinitions to hold custom "+
		"resources against")
	completeBy(cmd, "crds", directories)
	addPolicyFlag(cmd, &policies)
	addFindings(cmd, &output)
	return cmd
}

// maxManifests is the most bytes of a file: 4,000 jobs of many objects are some 30 MB.
const maxManifests = 256 << 20

// runCheck reads manifests and returns notes, and what is wrong as an error. Findings have places where places is set.
func runCheck(stdin io.Reader, files []string, definitions string, rules *policy.Policy, places bool,
) (finding.List, error) {
	sources, objects, err := readManifests(stdin, files)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 { // an earlier program of the pipe may have failed
		return nil, errors.New("nothing to check: there is no object in the input")
	}
	var notes finding.List
	wrong := append(render.Findings(objects, rules), render.Changed(objects)...)
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
			case e.IsDir():
			case isManifestName(strings.ToLower(e.Name())) && !isManifestName(e.Name()):
				return fmt.Errorf("%s: files of a directory are read if their names end in .yaml, .yml or .json, in "+
					"small letters: rename it", printable(path))
			case e.Type()&fs.ModeSymlink != 0:
				is, err := isLinkedManifest(root, path)
				if is {
					out = append(out, path)
				}
				return err
			case isManifestName(filepath.Base(path)) && !e.Type().IsRegular():
				return fmt.Errorf("%s is neither a file nor a directory: remove it, or give it another name",
					printable(path))
			case isManifestName(filepath.Base(path)):
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

// isLinkedManifest reports whether a link in a directory is read as the file that it leads to. One that leads out of
// the directory is refused: whoever writes to the directory may not be who may write there, or who may read it. So is
// one whose files would be left out without a word. Hidden links, such as the locks of editors, are not read.
func isLinkedManifest(root, path string) (bool, error) {
	manifest := isManifestName(filepath.Base(path))
	hidden := strings.HasPrefix(filepath.Base(path), ".")
	info, err := os.Stat(path)
	switch {
	case err != nil && manifest && !hidden:
		return false, fmt.Errorf("%s is a link to a file that cannot be read: correct it, or remove it",
			printable(path))
	case err != nil, !info.IsDir() && !manifest, info.IsDir() && hidden:
		return false, nil
	case !below(root, path):
		return false, fmt.Errorf("%s is a link out of %s, which tegen does not follow: put the file there, or remove "+
			"the link and name what it leads to on the command line", printable(path), printable(filepath.Clean(root)))
	case info.IsDir(): // its files are read where they are
		return false, nil
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is a link to neither a file nor a directory: remove it", printable(path))
	}
	return true, nil
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
	return sources, objects, unrendered(objects)
}

// unrendered reports jobs among objects that are to be applied: no cluster has their kind. 'kustomize build' prints
// them where it runs no functions.
func unrendered(objects []runtime.Object) error {
	var list finding.List
	for _, o := range objects {
		u, ok := o.(*unstructured.Unstructured)
		if !ok || u.GetAnnotations()[localConfig] == "true" {
			continue
		}
		h := dochead.Head{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()}
		if class := h.Class(); class == dochead.Input || class == dochead.Config {
			id := u.GetName()
			if u.GetNamespace() != "" {
				id = u.GetNamespace() + "/" + id
			}
			list = append(list, finding.Finding{
				Rule: "reference/unrendered", Level: finding.Error, Object: h.Kind + " " + id,
				Message: "it is an input of tegen, which no cluster has: render it first; kustomize build renders it " +
					"with --enable-alpha-plugins and --enable-exec alone",
			})
		}
	}
	return list.Err()
}

// localConfig is the annotation of what is not applied.
const localConfig = "config.kubernetes.io/local-config"
