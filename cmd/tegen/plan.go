package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/plan"
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
JSON; "-" reads it from standard input. With Pods in it, a node has what is
allocatable less the requests of the pods that run on it; pods of this job among
them keep their places. Cordons, readiness, taints, node selectors and affinity,
ports of the node, anti-affinity by hostname and the number of pods count as they
do for the scheduler. Not considered: where volumes can be attached, quotas,
preemption, and what the output lists as not counted. Several jobs are placed one
after another. A job of several kinds of pods is placed by a heuristic: where only
that finds no place, the answer says so.

docs/plan.md describes the JSON.

Exit codes: 0 every job fits, or no inventory was given; 1 a job does not fit, or
wrong input; 2 wrong command line.`

const planExample = `  tegen plan job.yaml
  tegen plan jobs/*.yaml --overlay overlays/eks -o json
  kubectl get nodes,pods -A -o json | tegen plan job.yaml --inventory -`

// maxInventory is the most bytes of an inventory: a thousand nodes with 30,000 pods are some 200 MB of YAML or JSON.
const maxInventory = 256 << 20

type planOptions struct {
	overlays          []string // one at most
	inventory, output string
}

func newPlanCmd(s cli.Streams) *cobra.Command {
	var opts planOptions
	formats := []string{"text", "json"}
	cmd := &cobra.Command{
		Use:               "plan [FILE|DIR...]",
		Short:             "Print a job's pods, addresses and requests, and whether they fit",
		Long:              planLong,
		Example:           planExample,
		ValidArgsFunction: yamlFiles,
		RunE: func(_ *cobra.Command, files []string) error {
			if !slices.Contains(formats, opts.output) {
				return cli.Usagef(
					"unknown output %q: -o of plan is a format, one of %s; only render writes to a directory",
					opts.output, strings.Join(formats, ", "))
			}
			if opts.inventory == "-" && slices.Contains(files, "-") {
				return cli.Usagef("standard input cannot be both the jobs and the inventory")
			}
			return runPlan(s, files, opts)
		},
	}
	addOverlayFlag(cmd, &opts.overlays, "")
	addOptional(cmd, &opts.inventory, "inventory", "file, or -",
		"file of Nodes and Pods as kubectl prints them, or - for standard input")
	cmd.Flags().StringVarP(&opts.output, "output", "o", formats[0], "format: "+strings.Join(formats, " or "))
	err := errors.Join(
		cmd.MarkFlagFilename("inventory", "yaml", "yml", "json"),
		cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)),
	)
	if err != nil {
		panic(err) // the flags are defined above
	}
	return cmd
}

func runPlan(s cli.Streams, files []string, opts planOptions) error {
	outs, err := build(s, files, opts.overlays, false)
	if err != nil {
		return err
	}
	if err := noteUnfilled(s, outs); err != nil {
		return err
	}
	out := outs[0]
	objects, err := out.Objects()
	if err != nil {
		return err
	}
	jobs := make([]*plan.Job, len(objects))
	for i := range objects {
		jobs[i] = plan.Of(out.Bundles[i].Job, objects[i])
	}
	p := plan.New(jobs)
	if opts.inventory != "" {
		inventory, err := readInventory(s, opts.inventory)
		if err != nil {
			return err
		}
		p.Fit(inventory)
	}
	if opts.output == "json" {
		e := json.NewEncoder(s.Out)
		e.SetIndent("", "  ")
		err = e.Encode(p)
	} else {
		err = p.WriteText(terminal{s.Out})
	}
	if err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return unfit(p)
}

func readInventory(s cli.Streams, file string) (*plan.Inventory, error) {
	sources, err := read(s.In, []string{file}, maxInventory)
	if err != nil {
		return nil, err
	}
	src := sources[0]
	if len(src.Data) > maxInventory {
		return nil, fmt.Errorf("reading %s: it has more than %d MiB", src.Name, maxInventory>>20)
	}
	return plan.ReadInventory(src.Name, src.Data)
}

// unfit is what a script sees of a plan that does not fit; people see why in the plan.
func unfit(p *plan.Plan) error {
	var errs []error
	for _, j := range p.Jobs {
		if j.Fit != nil && !j.Fit.Fits {
			errs = append(errs, fmt.Errorf("%s in %s does not fit into the inventory", j.Name, j.Namespace))
		}
	}
	return errors.Join(errs...)
}
