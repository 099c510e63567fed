package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/diff"
	"github.com/tegen-dev/tegen/internal/spelling"
)

const diffLong = `diff says what becomes of a cluster when NEW is applied over OLD: each changed field
with its class, why, and what to do.

  data      data is deleted                  restart   pods are replaced
  refused   the API server refuses it        removed   the object is deleted
  overlap   a new run begins while the       unknown   no rule of the kind is known
            old one's pods still end         in-place  the object is changed
  recreate  deleted and made anew            added     the object is made

OLD and NEW are each one of:
  - a directory of rendered objects, as render -o writes it
  - REV or REV:PATH, a revision of the git repository that you are in; REV alone has the
    path of the other side, where that is a directory in the repository
  - a file of objects, or - for standard input, such as 'kubectl get -o json' prints

Of objects that a server printed only the fields count that the other side has, and those
that somebody applied: not status, defaults and what controllers write. What controllers
made, and what tegen did not render, is left out. Values of Secrets are never printed.

docs/diff.md has the rules, and the JSON.

Exit codes: 0 success; 1 wrong input, or changes that --exit-code or --fail-on name;
2 wrong command line.`

const diffExample = `  tegen diff main:rendered/eks rendered/eks
  tegen diff HEAD~1 rendered/eks --fail-on data,refused
  kubectl get job,pod,svc,sa,cm,secret,pvc,pdb,netpol,sts,deploy,role,rolebinding -n training \
    -l app.kubernetes.io/instance=resnet -o json --show-managed-fields \
    | tegen diff - rendered/eks/resnet`

type diffOptions struct {
	version, output, failOn string
	exitCode                bool
}

// newestKubernetes is the release whose rules are tried, in test/e2e.
const newestKubernetes = "1.36"

func newDiffCmd(s cli.Streams) *cobra.Command {
	var opts diffOptions
	formats := []string{"text", "json", "markdown"}
	cmd := &cobra.Command{
		Use:     "diff OLD NEW",
		Short:   "Say what applying a change does: in place, restarts, refused, lost data",
		Long:    diffLong,
		Example: diffExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("diff takes OLD and NEW: two directories, revisions or files, not %d "+
					"arguments", len(args))
			}
			return nil
		},
		ValidArgsFunction: anyFile, // and revisions, which git alone knows
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(formats, opts.output) {
				return cli.Usagef("unknown output %q: -o of diff is a format, one of %s%s", opts.output,
					strings.Join(formats, ", "), spelling.Suggest(opts.output, formats))
			}
			return runDiff(cmd, s, args, opts)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&opts.output, "output", "o", formats[0], "format: "+strings.Join(formats, ", "))
	f.StringVar(&opts.version, "kubernetes-version", newestKubernetes, "minor version of Kubernetes whose rules apply")
	f.BoolVar(&opts.exitCode, "exit-code", false, "exit with 1 where anything changes")
	f.StringVar(&opts.failOn, "fail-on", "", "exit with 1 on a change of these classes, separated by commas")
	complete(cmd, "output", formats...)
	complete(cmd, "kubernetes-version", newestKubernetes)
	var classes []string
	for _, c := range diff.Classes {
		classes = append(classes, string(c))
	}
	complete(cmd, "fail-on", classes...)
	return cmd
}

func runDiff(cmd *cobra.Command, s cli.Streams, args []string, opts diffOptions) error {
	minor, err := minorOf(opts.version)
	if err != nil {
		return err
	}
	var fatal []diff.Class
	if cmd.Flags().Changed("fail-on") {
		if fatal, err = diff.ParseClasses(opts.failOn); err != nil {
			return cli.Usagef("--fail-on: %w", err)
		}
	}
	before, after, err := readSides(cmd.Context(), s.In, args[0], args[1])
	if err != nil {
		return err
	}
	report, err := diff.Compare(before, after, diff.Options{Minor: minor})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	switch opts.output {
	case "json":
		e := json.NewEncoder(&out)
		e.SetIndent("", "  ")
		err = e.Encode(report)
	case "markdown":
		err = report.WriteMarkdown(terminal{w: &out})
	default:
		err = report.WriteText(terminal{w: &out})
	}
	if err == nil {
		_, err = s.Out.Write(out.Bytes())
	}
	if err != nil {
		return fmt.Errorf("writing the differences: %w", err)
	}
	return changesFatal(report, fatal, opts.exitCode)
}

// changesFatal is what a script sees of changes that it asked to fail on.
func changesFatal(r *diff.Report, fatal []diff.Class, any bool) error {
	var have []diff.Class
	for _, c := range diff.Classes {
		if r.Counts[c] > 0 && slices.Contains(fatal, c) {
			have = append(have, c)
		}
	}
	switch {
	case len(have) > 0:
		return fmt.Errorf("there are changes of --fail-on: %s", classNames(have))
	case any && len(r.Jobs) > 0:
		return errors.New("there are changes")
	}
	return nil
}

func classNames(classes []diff.Class) string {
	var all []string
	for _, c := range classes {
		all = append(all, string(c))
	}
	return strings.Join(all, ", ")
}

// minorOf is the number in 1.x.
func minorOf(version string) (int, error) {
	text, found := strings.CutPrefix(strings.TrimPrefix(version, "v"), "1.")
	minor, err := strconv.Atoi(text)
	if !found || err != nil || minor < 0 {
		return 0, cli.Usagef("--kubernetes-version %q: write a minor version such as %s", version, newestKubernetes)
	}
	return minor, nil
}
