package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/internal/spelling"
)

const planLong = `plan prints what a cluster will hold once the rendered objects are applied: the
objects, names of the pods, their addresses and ports, what they request each and
in all, and what must exist before. A * in a pod's name stands for letters that
the cluster chooses.

Without an overlay the objects are those that render prints, for kubectl apply;
with an overlay, or gitops: true in a job or Environment, they are those for git,
as render -o DIR writes them, where names carry a hash. The first line of each
job says which.

With --inventory it says whether the pods that training needs to start have a
place now: a gang's minimum of workers, or spec.workers.min, and all pods of other
kinds. The inventory is what kubectl prints, as YAML or, several times faster, as
JSON; "-" reads it from standard input, several files are read as one, and it may
be of any size, since it is read object by object. With Pods in it, a node has what is
allocatable less the requests of the pods that run on it; pods of this job among
them keep their places. Cordons, readiness, taints, node selectors and affinity,
ports of the node, anti-affinity by hostname and the number of pods count as they
do for the scheduler, and so do claims of devices where it has ResourceSlices and
DeviceClasses. Not considered: where volumes can be attached, quotas, preemption,
and what the output lists as not counted. Several jobs are placed one after
another. A job of several kinds of pods is placed by a heuristic: where only that
finds no place, the answer says so.

docs/plan.md describes the JSON. -o sarif and github print the findings alone, as vet
does, with a job that does not fit among them; docs/findings.md describes them. So
does -o json where no plan could be made; its kind is Findings then.

Exit codes: 0 every job fits, or no inventory was given; 1 a job does not fit, or
wrong input; 2 wrong command line, or an internal error of tegen.`

const planExample = `  tegen plan job.yaml
  tegen plan jobs/*.yaml --overlay overlays/eks -o json
  kubectl get nodes,pods -A -o json | tegen plan job.yaml --inventory -
  tegen plan job.yaml --inventory nodes.json -o github`

type planOptions struct {
	input     // with one overlay at most
	inventory []string
	output    string
}

func newPlanCmd(s cli.Streams, set generators.Set) *cobra.Command {
	opts := planOptions{input: input{generators: set}}
	formats := append([]string{"text"}, finding.Formats...)
	cmd := &cobra.Command{
		Use:               "plan [FILE|DIR...]",
		Short:             "Print a job's pods, addresses and requests, and whether they fit",
		Long:              planLong,
		Example:           planExample,
		ValidArgsFunction: yamlFiles,
		RunE: func(cmd *cobra.Command, files []string) error {
			if !slices.Contains(formats, opts.output) {
				return cli.Usagef(
					"unknown output %q: -o of plan is a format, one of %s%s; only render writes to a directory",
					opts.output, strings.Join(formats, ", "), spelling.Suggest(opts.output, formats))
			}
			if err := checkInventory(opts.inventory, files); err != nil {
				return err
			}
			opts.files = files
			return runPlan(s, painter{s.Out, cmd.Flag(colorFlag).Value}, files, opts)
		},
	}
	addInputFlags(cmd, &opts.input, "")
	cmd.Flags().StringArrayVar(&opts.inventory, "inventory", nil,
		"file of Nodes and Pods as kubectl prints them, or - for standard input; repeat for more")
	cmd.Flags().StringVarP(&opts.output, "output", "o", formats[0], "format: "+strings.Join(formats, ", "))
	completeBy(cmd, "inventory", manifests)
	complete(cmd, "output", formats...)
	cmd.Annotations = map[string]string{machines: strings.Join(finding.Formats, " ")}
	return cmd
}

// checkInventory refuses an empty name, as where a script's variable is unset, and standard input twice.
func checkInventory(inventory, files []string) error {
	for i, file := range inventory {
		switch {
		case file == "":
			return cli.Usagef("--inventory needs the name of a file, or -")
		case slices.Contains(inventory[:i], file):
			return cli.Usagef("--inventory names %s twice", printable(file))
		case file == "-" && slices.Contains(files, "-"):
			return cli.Usagef("standard input cannot be both the jobs and the inventory")
		}
	}
	return nil
}

// runPlan writes a plan for people to text.
func runPlan(s cli.Streams, text io.Writer, files []string, opts planOptions) error {
	p, notes, err := planned(s, files, opts)
	r := finding.Report{Command: "plan", Findings: notes}
	if err != nil {
		return report(s, r, opts.output, err)
	}
	lacking := unfit(p)
	switch opts.output {
	case "json":
		e := json.NewEncoder(s.Out)
		e.SetIndent("", "  ")
		err = errors.Join(printNotes(s.Err, notes), e.Encode(p.Plan))
	case "text":
		err = errors.Join(printNotes(s.Err, notes), p.WriteText(terminal{w: text}))
	default:
		return report(s, r, opts.output, lacking.Err())
	}
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	if len(lacking) == 0 {
		return nil
	}
	_, err = fmt.Fprintln(s.Err, lacking) // beside the plan, which says it too
	return errors.Join(reported{lacking}, err)
}

// placedPlan is a plan with the places of its jobs.
type placedPlan struct {
	*plan.Plan
	places []string
}

// planned is the plan of jobs, with the notes about them.
func planned(s cli.Streams, files []string, opts planOptions) (p placedPlan, notes finding.List, err error) {
	outs, notes, err := built(s.In, opts.input, purpose{})
	if err != nil {
		return p, nil, err
	}
	notes = append(notes, unfilled(outs, finding.Note)...)
	objects, err := outs[0].Objects()
	if err != nil {
		return p, notes, err
	}
	jobs := make([]*plan.Job, len(objects))
	for i := range objects {
		job := outs[0].Bundles[i].Job
		jobs[i], p.places = plan.Of(job, objects[i]), append(p.places, job.Position())
	}
	p.Plan = plan.New(jobs)
	if len(opts.inventory) > 0 {
		inventory, err := readInventory(s, opts.inventory)
		if err != nil {
			return p, notes, err
		}
		p.Fit(inventory)
	}
	return p, notes, nil
}

func readInventory(s cli.Streams, files []string) (*plan.Inventory, error) {
	var sources []plan.Source
	read := &atomic.Int64{}
	for _, name := range files {
		if name == "-" {
			sources = append(sources, plan.Source{Name: "<stdin>", In: counted{s.In, read}})
			continue
		}
		file, err := openFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", printable(name), err)
		}
		defer func() { _ = file.Close() }() // it was only read
		sources = append(sources, plan.Source{Name: printable(name), In: counted{file, read}})
	}
	if s.Doing != nil {
		s.Doing(func() string { return fmt.Sprintf("%d MB of the inventory are read", read.Load()/1_000_000) })
	}
	return plan.ReadInventory(sources...)
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	count *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.count.Add(int64(n))
	return n, err
}

// unfit is what a script sees of a plan that does not fit; people see why in the plan.
func unfit(p placedPlan) (list finding.List) {
	for i, j := range p.Jobs {
		if j.Fit == nil || j.Fit.Fits {
			continue
		}
		text := fmt.Sprintf("%s in %s does not fit into the inventory", j.Name, j.Namespace)
		f := finding.Finding{Rule: "plan/fit", Level: finding.Error, Message: text}.At(p.places[i])
		f.Text = text
		for _, m := range j.Fit.Missing {
			var reasons []string
			for _, r := range m.Reasons {
				reasons = append(reasons, fmt.Sprintf("%s (nodes: %d)", r.Reason, r.Nodes))
			}
			f.Message += fmt.Sprintf("; %d pods of role %s have no place: %s", m.Pods, m.Role,
				strings.Join(reasons, ", "))
		}
		list = append(list, f)
	}
	return list
}
