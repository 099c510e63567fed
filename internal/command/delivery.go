package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/krm"
	"github.com/tegen-dev/tegen/internal/render"
)

// noteDelivery says, once a run, for whom jobs were rendered that leave that open, where it makes a difference. In a
// tree, which is for git, it names each job that asks for what a reconciler runs again.
func noteDelivery(s cli.Streams, outs []*krm.Output, tree bool) error {
	var bundles []render.Bundle
	for _, out := range outs {
		bundles = append(bundles, out.Bundles...)
	}
	note := assumption(bundles)
	if tree {
		note = selfDeleting(bundles)
	}
	_, err := fmt.Fprint(s.Err, note)
	return err
}

// assumption is the note about what is printed, "" where every job says whom it is for.
func assumption(bundles []render.Bundle) string {
	var after []string
	hashed := false
	for _, b := range bundles {
		if b.Summary.SaysGitOps {
			continue
		}
		hashed = hashed || b.Summary.Hashed
		if life := b.Summary.Expires; life != "" && !slices.Contains(after, life) {
			after = append(after, life)
		}
	}
	switch {
	case len(after) > 0:
		return "tegen: note: rendered for kubectl apply: what has finished deletes itself after " + few(after) +
			"; for git, use -o DIR, --overlay or gitops: true\n"
	case hashed:
		return "tegen: note: rendered for git, as with every overlay: a changed job is a new object, beside the old " +
			"one until a reconciler prunes that; for kubectl apply, set gitops: false\n"
	}
	return ""
}

// selfDeleting names the jobs of trees that delete something of themselves, since they say so, each once.
func selfDeleting(bundles []render.Bundle) string {
	var lines []string
	for _, b := range bundles {
		life := b.Summary.Expires
		line := fmt.Sprintf("%s: note: spec.gitops: false, so that what has finished deletes itself after %s, and a "+
			"reconciler runs it again\n", b.Summary.Position(), life)
		if life != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
