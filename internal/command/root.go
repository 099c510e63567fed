package command

import (
	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/names"
)

const rootLong = `tegen renders distributed training jobs into Kubernetes manifests.

One short YAML file says what a job is; a schema checks it, and every object
that the job needs comes out, the same bytes each time, for Argo CD, Flux or
kubectl to apply. It never talks to a cluster, and only publish to the network.

Exit codes: 0 success, 1 wrong input, 2 wrong command line,
or an internal error of tegen.`

const rootExample = `  tegen init
  tegen vet jobs --overlay overlays/cluster
  tegen render jobs --overlay overlays/cluster -o rendered/cluster`

func newRootCmd(s cli.Streams, set generators.Set) *cobra.Command {
	return withColor(cli.Root(s, "tegen", "Render distributed training jobs into Kubernetes manifests", rootLong,
		rootExample,
		cli.Group{Title: "Write jobs", Commands: []*cobra.Command{
			newInitCmd(s),
			newExplainCmd(s),
			newVetCmd(s, set),
			newImportCmd(s),
		}},
		cli.Group{Title: "Render jobs, and see what comes of them", Commands: []*cobra.Command{
			newRenderCmd(s, set),
			newCheckCmd(s),
			newPlanCmd(s, set),
			newGraphCmd(s, set),
			newDiffCmd(s),
			newRunbookCmd(s, set),
		}},
		cli.Group{Title: "Bring them to clusters", Commands: []*cobra.Command{
			newInstallCmd(s),
			newPolicyCmd(s),
			newGitOpsCmd(s, set),
			newPublishCmd(s),
			newFnCmd(s, set),
		}},
		cli.Group{Title: "Editors, shells and this program", Commands: []*cobra.Command{
			newSchemaCmd(s),
			cli.Man("tegen"),
			cli.Version(s, "tegen", "Print the version, the API it reads, its images, and how it was built",
				append([]string{"api " + names.APIVersion}, releasedImages()...)...),
		}},
	))
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
