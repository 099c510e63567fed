package command

import (
	"fmt"
	"io"
	"slices"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/internal/manifest"
)

// noteSecrets names the Secrets of overlays whose values a tree, which is for git, would hold.
func noteSecrets(s cli.Streams, outs []*krm.Output) error {
	var said []string
	for _, out := range outs {
		objects, err := manifest.ReadPrinted("overlay", out.Rest)
		if err != nil {
			continue // a note is no reason to fail, and the error could hold a value
		}
		for _, o := range objects {
			id, filled := manifest.FilledSecret(o)
			if !filled || slices.Contains(said, id) {
				continue
			}
			said = append(said, id)
			line := fmt.Sprintf("tegen: note: the Secret %s has values, which everybody who reads the tree will know: "+
				"make it in the cluster, or have an operator fetch it\n", id)
			if _, err := io.WriteString(s.Err, line); err != nil {
				return fmt.Errorf("writing a note: %w", err)
			}
		}
	}
	return nil
}
