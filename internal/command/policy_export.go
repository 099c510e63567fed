package command

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/internal/admission"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/cli"
	"github.com/tegen-dev/tegen/internal/finding"
)

const policyLong = `A policy is a set of rules in CUE, which the flag --policy of other commands names.
docs/policy.md describes its language.`

const policyExportLong = `export prints ValidatingAdmissionPolicies and their bindings. With them, an API server
checks the rules of a policy for pods and objects in the namespaces of --namespaces, also
if somebody applies objects without tegen. The command talks to no cluster.

The rules for pods hold for pods and for the templates of every workload: those of
Kubernetes and of the custom resources that tegen knows. Rules for jobs are left out,
since a cluster has no TrainingJobs. If CEL, the language of API servers, cannot
express a rule, nothing is printed, and the error has the position of the rule.

The file of an Environment with a fence stands for the rules of the fence.

A change of an object is checked against the rules that the object satisfied before.

A cluster also writes fields into objects, such as the volume of an account's token.
Notes on standard error name the rules about such fields. Use --action warn or audit
first to see what would be refused.

Kubernetes 1.30 or newer serves these objects.`

const policyExportExample = `  tegen policy export policies --namespaces team-a,team-b | kubectl apply --server-side -f -
  tegen policy export acme.cue --namespaces team-a --action warn,audit > admission.yaml
  tegen policy export fenced.yaml --namespaces team-a # the rules of an Environment's fence`

func newPolicyCmd(s cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "policy",
		Short:   "Export a policy for API servers",
		Long:    policyLong,
		Example: policyExportExample,
		Args:    cli.OneOf("action"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPolicyExportCmd(s))
	return cmd
}

func newPolicyExportCmd(s cli.Streams) *cobra.Command {
	o := admission.Options{}
	actions := []string{"deny"}
	cmd := &cobra.Command{
		Use:               "export FILE|DIR...",
		Short:             "Render a policy as ValidatingAdmissionPolicies",
		Long:              policyExportLong,
		Example:           policyExportExample,
		Args:              aPolicy,
		ValidArgsFunction: cueFiles,
		RunE: func(_ *cobra.Command, files []string) (err error) {
			if o.Actions, err = admission.ParseActions(actions); err != nil {
				return cli.Usagef("--action: %v", err)
			}
			if err := checkExport(o); err != nil {
				return err
			}
			return runPolicyExport(s, files, o)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Namespaces, "namespaces", nil, "namespaces where the rules hold, separated by commas")
	flags.StringVar(&o.Name, "name", "tegen", "what the names of all objects start with")
	flags.StringSliceVar(&actions, "action", actions, "what happens to a violation: deny, warn or audit, or warn,audit")
	flags.BoolVar(&o.Cluster, "cluster-scoped", false, "export rules for objects without a namespace too, "+
		"for the whole cluster")
	completeBy(cmd, "namespaces", cobra.NoFileCompletions)
	completeBy(cmd, "name", cobra.NoFileCompletions)
	complete(cmd, "action", "deny", "warn", "audit", "warn,audit", "deny,audit")
	return cmd
}

func aPolicy(_ *cobra.Command, args []string) error {
	if len(args) == 0 || slices.Contains(args, "") {
		return cli.Usagef("policy export needs the CUE files of a policy, or their directory")
	}
	return nil
}

// cueFiles completes the names of policies.
func cueFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"cue"}, cobra.ShellCompDirectiveFilterFileExt
}

// system are the namespaces of Kubernetes itself. If its pods are refused, the cluster can stop.
var system = []string{"kube-system", "kube-public", "kube-node-lease"}

func checkExport(o admission.Options) error {
	if len(o.Namespaces) == 0 {
		return cli.Usagef("--namespaces needs the namespaces where the rules hold, such as --namespaces team-a,team-b")
	}
	for i, name := range o.Namespaces {
		problems := validation.IsDNS1123Label(name)
		switch {
		case len(problems) > 0:
			return cli.Usagef("--namespaces: %q is no name of a namespace: %s", name, strings.Join(problems, "; "))
		case slices.Contains(o.Namespaces[:i], name):
			return cli.Usagef("--namespaces has %s twice", name)
		case slices.Contains(system, name):
			return cli.Usagef("--namespaces: a policy in %s can stop the cluster; leave it out", name)
		}
	}
	const longest = 160 // names of objects have at most 253 characters, and a kind with its group follows
	if problems := validation.IsDNS1123Subdomain(o.Name); len(problems) > 0 {
		return cli.Usagef("--name: %q is no name of an object: %s", o.Name, strings.Join(problems, "; "))
	}
	if len(o.Name) > longest {
		return cli.Usagef("--name has %d characters, and the limit is %d", len(o.Name), longest)
	}
	return nil
}

func runPolicyExport(s cli.Streams, files []string, o admission.Options) error {
	rules, fences, err := readPolicies(files)
	if err != nil {
		return err
	}
	if rules = rules.With(fences.Without(apis.ClusterScoped)); !rules.HasObjectRules() {
		return errors.New("the policy has rules for jobs only, and a cluster has no TrainingJobs: there is nothing " +
			"to export")
	}
	objects, err := admission.Export(rules, o)
	if err != nil {
		return err
	}
	notes := admission.Notes(rules)
	if rules.HasJobRules() {
		notes = append(notes, finding.Finding{
			Rule: "policy/cluster", Level: finding.Note,
			Message: "the rules for jobs are not exported: a cluster has no TrainingJobs",
		})
	}
	if fences != nil {
		notes = append(notes, finding.Finding{
			Rule: "policy/cluster", Level: finding.Note,
			Message: "the rules of a fence for objects without a namespace are not exported: they would hold for " +
				"everybody",
		})
	}
	if err := printNotes(s.Err, notes); err != nil {
		return err
	}
	return writeObjects(s, objects)
}
