package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/refs"
	"github.com/tegen-dev/tegen/internal/render"
)

const checkLong = `check reads manifests of any origin and reports every reference that does not
resolve among them: Services and subdomains, endpoints in arguments and
environment variables, claims and volumes, ServiceAccounts, Secrets and
ConfigMaps, selectors and pod templates. Run it over what is applied, after every
overlay and patch: a prefix renames a Service, but not the endpoint in an
environment variable.

Objects that exist in the cluster already are listed on the workload that needs
them, in the annotation tegen.dev/expects: "Secret/token, Service/mlflow".

"-" reads standard input.`

const checkExample = `  kustomize build overlays/production | tegen check -
  tegen check rendered/*.yaml`

func newCheckCmd(s streams) *cobra.Command {
	return &cobra.Command{
		Use:               "check FILE...",
		Short:             "Check that every reference among manifests resolves",
		Long:              checkLong,
		Example:           checkExample,
		Args:              atLeastOne("file"),
		ValidArgsFunction: yamlFiles,
		RunE:              func(_ *cobra.Command, files []string) error { return runCheck(s, files) },
	}
}

// maxManifests is the most bytes of a file: 4,000 jobs of many objects are some 30 MB.
const maxManifests = 256 << 20

func runCheck(s streams, files []string) error {
	sources, err := read(s.in, files, maxManifests)
	if err != nil {
		return err
	}
	var objects []runtime.Object
	for _, src := range sources {
		if len(src.Data) > maxManifests {
			return fmt.Errorf("reading %s: it has more than %d MiB: check it in parts", src.Name, maxManifests>>20)
		}
		read, err := manifest.Read(src.Name, bytes.TrimPrefix(src.Data, []byte("\xef\xbb\xbf")))
		if err != nil {
			return err
		}
		objects = append(objects, read...)
	}
	if len(objects) == 0 { // what an earlier program of a pipe failed to print must not pass
		return errors.New("nothing to check: there is no object in the input")
	}
	return render.Broken("", refs.Check(objects))
}
