package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

const vetLong = `vet reports every mistake in the given files, one line each, sorted:

  file:line:col: path: message

It prints nothing when there is none. "-" reads standard input. An Environment
in one of the files is merged into every job first.`

const vetExample = `  tegen vet jobs/*.yaml
  tegen vet overlays/eks/environment.yaml jobs/resnet.yaml`

func newVetCmd(s streams) *cobra.Command {
	return &cobra.Command{
		Use:               "vet FILE...",
		Short:             "Report every mistake in job files",
		Long:              vetLong,
		Example:           vetExample,
		Args:              atLeastOne("file"),
		ValidArgsFunction: yamlFiles,
		RunE: func(_ *cobra.Command, files []string) error {
			sources, err := read(s.in, files)
			if err != nil {
				return err
			}
			jobs, err := schema.Load(sources)
			if err != nil {
				return err
			}
			if _, err = render.Jobs(jobs, nil); err != nil {
				return fmt.Errorf("checking references: %w", err)
			}
			return nil
		},
	}
}
