package command

import (
	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
)

const schemaLong = `schema prints the JSON Schema of a TrainingJob, or of an Environment, for editors
and validators: fields with their meaning, defaults, values, ranges and patterns.
What must hold between two fields it cannot say, so vet refuses some of what it
accepts. An editor with yaml-language-server reads it by a first line in the job:

  # yaml-language-server: $schema=../trainingjob.schema.json`

const schemaExample = `  tegen schema > trainingjob.schema.json
  tegen schema --environment > environment.schema.json`

func newSchemaCmd(s cli.Streams) *cobra.Command {
	kind := names.KindTrainingJob
	var environment bool
	cmd := &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of jobs for editors and validators",
		Long:    schemaLong,
		Example: schemaExample,
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if environment {
				kind = names.KindEnvironment
			}
			text, err := schema.JSONSchema(kind)
			if err != nil {
				return err
			}
			_, err = s.Out.Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&environment, "environment", false, "print that of an Environment instead of a TrainingJob")
	return cmd
}
