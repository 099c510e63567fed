package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/spelling"
)

// findingsHelp ends the help of each command that has addFindings.
const findingsHelp = `

-o json, sarif or github prints the findings to standard output, each with rule,
level, place, field, message and remedy, and nothing to standard error; the exit
code is the same. sarif is for code scanning; github is annotations of a workflow.
docs/findings.md describes them and lists the rules.`

// addFindings adds the flag that names how findings are printed: as text for people, or for machines.
func addFindings(cmd *cobra.Command, output *string) {
	formats := append([]string{"text"}, finding.Formats...)
	cmd.Flags().StringVarP(output, "output", "o", formats[0], "format of findings: "+strings.Join(formats, ", "))
	complete(cmd, "output", formats...)
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(formats, *output) {
			return cli.Usagef("unknown output %q: -o of %s is a format, one of %s%s", *output, cmd.Name(),
				strings.Join(formats, ", "), spelling.Suggest(*output, formats))
		}
		if before != nil {
			return before(cmd, args)
		}
		return nil
	}
	cmd.Annotations = map[string]string{machines: strings.Join(finding.Formats, " ")}
}

// machines is the annotation of commands whose findings can be printed for machines, with the formats.
const machines = "findings"

// reported is an error that was printed, as a finding, to standard output.
type reported struct{ error }

func (r reported) Unwrap() error { return r.error }

// report prints what a command found: as text the notes, since main prints the error, or all of it for a machine. The
// result is the command's.
func report(s cli.Streams, r finding.Report, format string, err error) error {
	if format == "text" {
		if failed := printNotes(s.Err, r.Findings); failed != nil {
			return failed
		}
		return err
	}
	r.Findings = append(slices.Clone(r.Findings), asFindings(err)...)
	if failed := printReport(s.Out, r, format); failed != nil {
		return failed
	}
	if err != nil {
		return reported{err}
	}
	return nil
}

func asFindings(err error) finding.List {
	var usage cli.UsageError
	if errors.As(err, &usage) {
		return finding.List{{Rule: "tool/usage", Level: finding.Error, Message: err.Error()}}
	}
	return finding.Of(err)
}

func printReport(w io.Writer, r finding.Report, format string) error {
	r.Version = cli.BuildVersion()
	if dir, err := os.Getwd(); err == nil {
		r.Dir, r.Root = dir, dir
		// a step of a workflow may run in a directory of the checkout
		if root := os.Getenv("GITHUB_WORKSPACE"); filepath.IsAbs(root) {
			if below, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(below) {
				r.Root = root
			}
		}
	}
	text, err := r.Write(format)
	if err != nil {
		return err
	}
	if format == "github" {
		w = terminal{w: w, commands: true}
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing findings: %w", err)
	}
	return nil
}

// machineFormat is how a command that failed was to print its findings, "" for text. Where the command line is wrong,
// the flag may not have been read.
func machineFormat(cmd *cobra.Command, args []string) string {
	formats := strings.Fields(cmd.Annotations[machines])
	format := ""
	for i, arg := range args {
		value, is := strings.CutPrefix(arg, "--output=")
		if short, ok := strings.CutPrefix(arg, "-o"); ok && short != "" {
			value, is = strings.TrimPrefix(short, "="), true
		}
		if (arg == "-o" || arg == "--output") && i+1 < len(args) {
			value, is = args[i+1], true
		}
		if arg == "--" {
			break
		}
		if is {
			format = value
		}
	}
	if !slices.Contains(formats, format) {
		return ""
	}
	return format
}
