package main

import (
	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/names"
)

const rootLong = `tegen renders distributed training jobs into Kubernetes manifests.

One short YAML file says what a job is; a schema checks it, and every object
that the job needs comes out, the same bytes each time, for Argo CD, Flux or
kubectl to apply. It never talks to a cluster, and only publish to the network.

Exit codes: 0 success, 1 wrong input, 2 wrong command line.`

func newRootCmd(s cli.Streams) *cobra.Command {
	return cli.Root(s, "tegen", "Render distributed training jobs into Kubernetes manifests", rootLong,
		newRenderCmd(s),
		newVetCmd(s),
		newPlanCmd(s),
		newRunbookCmd(s),
		newCheckCmd(s),
		newImportCmd(s),
		newInstallCmd(s),
		newGitOpsCmd(s),
		newPublishCmd(s),
		newExplainCmd(s),
		newSchemaCmd(s),
		newFnCmd(s),
		cli.Version(s, "tegen", "Print the version, the API it reads, its images, and how it was built",
			append([]string{"api " + names.APIVersion}, releasedImages()...)...),
	)
}

// releasedImages are lines about the images that this build renders where nobody names others.
func releasedImages() (lines []string) {
	for _, image := range []string{names.ReleasedRendezvous, names.ReleasedScheduler} {
		if image != "" {
			lines = append(lines, "image "+image)
		}
	}
	if lines == nil {
		return []string{"image none: this build is not of a release's archive or image"}
	}
	return lines
}

// yamlFiles completes the names of YAML files.
func yamlFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
