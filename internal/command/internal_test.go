package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/importer"
)

// fill panics for a nil map.
func fill(m map[string]int) error {
	m["a"] = 1
	return nil
}

// TestInternalError: a fault of tegen ends with exit code 2, beside whatever else was found, and no panic reaches the
// user.
func TestInternalError(t *testing.T) {
	cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true}
	cmd.RunE = func(*cobra.Command, []string) error {
		return fill(nil)
	}
	cmd.SetArgs(nil)
	called, err := execute(cmd)
	var out bytes.Buffer
	code := finish(cli.Streams{Out: &out, Err: &out}, called, nil, err)
	const want = "internal error: assignment to entry in nil map (command/"
	if code != cli.ExitUsage || !strings.HasPrefix(out.String(), want) ||
		!strings.Contains(out.String(), "Report it at https://") || strings.Contains(out.String(), "--help") {
		t.Errorf("exit %d:\n%s", code, out.String())
	}
	others := errors.Join(finding.List{{Rule: "job/type", Level: finding.Error, Message: "one"}}, err)
	out.Reset()
	if code := finish(cli.Streams{Out: &out, Err: &out}, called, nil, others); code != cli.ExitUsage ||
		!strings.HasPrefix(out.String(), "one\ninternal error") {
		t.Errorf("exit %d:\n%s", code, out.String())
	}
}

// TestInternalErrorOfImport: import reports a fault of tegen among its notes, and ends with exit code 2 too.
func TestInternalErrorOfImport(t *testing.T) {
	note := importer.Note{Verdict: importer.Error, Why: `job "a": ` + finding.Internal("x")}
	err := importError(importer.Result{Invalid: true, Notes: []importer.Note{note}}, false)
	if !asFindings(err).HasInternal() {
		t.Errorf("%v", err)
	}
	note.Why = "internal error: of the author's program"
	if err := importError(importer.Result{Invalid: true, Notes: []importer.Note{note}}, false); err == nil ||
		asFindings(err).HasInternal() {
		t.Errorf("%v", err)
	}
}
