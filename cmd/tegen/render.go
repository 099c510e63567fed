package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/schema"
)

func newRenderCmd(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "render FILE...",
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
			bundles, err := render.Jobs(jobs, nil)
			if err != nil {
				return err
			}
			var out bytes.Buffer
			if err := render.Write(&out, bundles); err != nil {
				return err
			}
			_, err = s.out.Write(out.Bytes())
			return err
		},
	}
	return cmd
}

// read loads the named files, "-" being standard input.
func read(stdin io.Reader, files []string) ([]schema.Source, error) {
	var out []schema.Source
	for _, name := range files {
		var data []byte
		var err error
		if name == "-" {
			name = "<stdin>"
			data, err = io.ReadAll(stdin)
		} else {
			data, err = os.ReadFile(name)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		out = append(out, schema.Source{Name: name, Data: data})
	}
	return out, nil
}
