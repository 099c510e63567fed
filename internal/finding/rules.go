package finding

import "strings"

// Rule is a kind of finding.
type Rule struct {
	ID      string
	Meaning string
	Remedy  string
}

// Rules are all rules, in the order of docs/findings.md. An id stays what it is. Of notes there is one for each field
// that a note may be about, and one entry here.
var Rules = []Rule{
	{"job/alias", "An anchor, an alias or a merge key of YAML.", "Write the value out where it is needed."},
	{"job/tag", "A tag of YAML.", "Quote the value if it is a string, and leave the tag out."},
	{"job/key", "A key that is not a string.", "Quote the key."},
	{"job/duplicate-key", "A key stands twice in one mapping.", "Keep one of the two."},
	{
		"job/number", "A number in a notation that parsers read differently.",
		"Write it in plain decimal, or quote it.",
	},
	{"job/depth", "A value is nested deeper than 32 levels.", "Write the job flatter: no field needs that depth."},
	{
		"job/size", "A file has more than 8 MiB or too many documents, or a document more than 1 MiB.",
		"Split the file.",
	},
	{
		"job/encoding", "The file is not plain UTF-8 text.",
		"Save it as UTF-8 without byte order mark, with LF line ends.",
	},
	{"job/yaml", "The text is not YAML, or uses what tegen does not read.", "Correct the syntax at the place."},
	{"job/empty", "No TrainingJob is in the file.", "Name a file with a TrainingJob, or add one."},
	{
		"job/kind", "The document is no TrainingJob and no Environment of this API version.",
		"Correct apiVersion and kind, or leave the document out.",
	},
	{
		"job/environment", "An Environment is in the input, and no option selects it.",
		"Move it to a separate file and select that with --environment. In an overlay, set spec.environment of the " +
			"Generator to its name.",
	},
	{
		"job/unknown-field", "No field has this name here.",
		"Correct the name: 'tegen explain' lists the fields of each section.",
	},
	{
		"job/required", "A field that every job needs is missing.",
		"Add the field: 'tegen explain' says what it holds.",
	},
	{"job/no-value", "A field or an item has no value.", "Write a value, or leave the field out."},
	{
		"job/type", "The value is of another type than the field.",
		"Write a value of the type that the message names.",
	},
	{
		"job/enum", "The value is none of those that the field takes.",
		"Write one of the values that the message lists.",
	},
	{
		"job/format", "The value has not the form that the field asks for.",
		"Write it in the form that the message names.",
	},
	{
		"job/name", "The value is no name of an object of Kubernetes.",
		"Use lower-case letters, digits and '-', with a letter or digit at both ends.",
	},
	{"job/duration", "The value is no duration.", "Write a number and a unit, such as 30s, 10m or 2h."},
	{"job/bytes", "The value is no amount of bytes.", "Write a number and a unit, such as 512Mi or 16Gi."},
	{"job/cpu", "The value is no amount of CPU.", "Write a number of cores, or thousandths with m, such as 500m."},
	{
		"job/range", "A number is outside of the range of its field.",
		"Write a number in the range that the message names.",
	},
	{"job/length", "A name or text is longer than Kubernetes or a controller takes.", "Shorten it."},
	{
		"job/one-of", "Of several fields none or more than one is given.",
		"Give exactly as many as the message says.",
	},
	{
		"job/policy", "A complete job violates a rule of a policy.",
		"Change the value as the message says, or ask the owner of the policy, whose file the message names.",
	},
	{"job/order", "Two values contradict each other.", "Change one of the two values that the message names."},
	{
		"job/requires", "A field needs another one, or has no effect beside it.",
		"Add, change or leave out the field that the message names.",
	},
	{"job/reserved", "A name, label, variable or port belongs to tegen or to a controller.", "Choose another."},
	{
		"job/duplicate", "The same thing is given twice, in one job or in two.",
		"Rename or leave out one of the two.",
	},
	{"job/unknown", "The value names something that is not there.", "Correct the name, or define what it names."},
	{"job/placeholder", "A value still has to be filled in.", "Write the value in the place of the placeholder."},
	{"job/secret", "A secret would stand in a manifest.", "Keep it in a Secret, and name that."},
	{
		"job/target", "The target's API cannot carry the field.",
		"Use a target that can, or leave the field out: 'tegen explain --targets' lists them.",
	},
	{
		"job/pod-template", "A podTemplate sets what tegen or the API server would not take.",
		"Correct the podTemplate, or use the job's own field.",
	},
	{
		"job/data", "An annotation or label would have a reconciler delete the job's data.",
		"Say it of the workload alone, in spec.workload.",
	},
	{
		"job/hook", "An annotation makes a hook of what trains, which would run again with each sync.",
		"Leave it out.",
	},
	{
		"job/decode", "The document passes the schema and cannot be read: a fault of tegen.",
		"Report it with the document.",
	},

	{
		"render/duplicate", "Two jobs would render the same object.",
		"Rename it in one of them, or name it there as existing.",
	},
	{
		"render/generator", "A generator that your program adds to tegen refuses the job, or returns a wrong object.",
		"Change the job as the message says, or report the message to the owner of the program.",
	},
	{
		"overlay/patch", "A patch or a replacement of an overlay changes nothing, since nothing matches its target.",
		"Correct the target, or remove the patch.",
	},
	{
		"overlay/images", "An entry of images of an overlay leaves an image as it is, or matches none.",
		"Add a configuration that names the field, or correct the name.",
	},
	{
		"overlay/base", "Fields of a base do not apply to jobs that are named on the command line.",
		"Name none of its jobs, or move the fields to the overlay.",
	},
	{
		"overlay/function", "A function of an overlay cannot run, failed, or is another program for kustomize.",
		"Do what the message says, or remove the entry.",
	},
	{
		"overlay/unused", "A directory of jobs has a kustomization that changes them, and no --overlay selects it.",
		"Select the kustomization with --overlay, or remove the fields.",
	},
	{
		"overlay/unlisted", "A file of jobs beside those of an overlay is rendered by tegen or kustomize, not by both.",
		"List the file in the kustomization.yaml that the message names, or name it on the command line.",
	},

	{"manifest/yaml", "A manifest is not YAML.", "Correct the syntax at the place."},
	{
		"manifest/decode", "A manifest has a field or value that its kind does not have.",
		"Correct it as the message says.",
	},

	{
		"reference/unrendered", "A TrainingJob or an Environment is among the objects of a cluster, which has no " +
			"such kind.",
		"Render it, and check what is rendered.",
	},
	{
		"reference/missing", "An object refers to one that is not in the set.",
		"Add it, correct the name, or list it in the annotation tegen.dev/expects if the cluster has it.",
	},
	{
		"reference/mismatch", "An object refers to one that is there and is not what it needs.",
		"Make the two agree, as the message says.",
	},
	{
		"reference/selector", "A selector selects no pods, or not those of its own template.",
		"Make selector and labels agree.",
	},
	{
		"reference/duplicate", "Two objects, or two mounts of a container, are in one place.",
		"Rename or drop one of the two.",
	},
	{
		"reference/annotation", "An entry of the annotation tegen.dev/expects cannot be read.",
		"Write Kind/name, separated by commas.",
	},
	{
		"reference/delivery", "A reconciler would delete what outlives its job.",
		"Keep transformers from objects with the label tegen.dev/data.",
	},
	{
		"reference/moved", "An installation is not where it was rendered for.",
		"Keep it out of that kustomization, and choose the place by 'tegen install --namespace'.",
	},
	{
		"reference/hash", "An object was changed after tegen put a hash of its content into its name.",
		"Make the change in the TrainingJob, or in a kustomization that is built before tegen runs.",
	},
	{
		"reference/renamed", "An object refers to what it expects in the cluster, and the set has it under a " +
			"longer name.",
		"Name the field under nameReference in a configuration of kustomize, if a kustomization renamed it.",
	},

	{
		"reference/limit", "A value of an object is too large, or of a wrong type, for its references to be checked.",
		"Correct the value as the message says.",
	},

	{"policy/load", "A policy cannot be read, or has a rule that tegen cannot check.", "Correct it at the place."},
	{
		"policy/cluster", "A rule constrains what a cluster writes into objects by itself.",
		"Leave the rule out of the policy that is exported, or allow what the cluster writes.",
	},
	{
		"policy/pod", "The template of rendered pods violates a rule of a policy.",
		"Change the field of the job that it comes from, or ask the owner of the policy, whose file the message names.",
	},
	{
		"policy/object", "A rendered object violates a rule of a policy.",
		"Change the field of the job that it comes from, or ask the owner of the policy, whose file the message names.",
	},

	{
		"crd/dropped", "An API server would drop a field of a custom resource without a word.",
		"Remove the field, or install a definition that has it.",
	},
	{"crd/refused", "An API server would refuse a custom resource.", "Correct the field as the message says."},
	{
		"crd/undefined", "A custom resource has no definition among those given.",
		"Add its CustomResourceDefinition to the directory of --crds.",
	},

	{"import/dropped", "Neither the job nor what it renders has it.", "Add it to the job, or do without it."},
	{
		"import/changed", "The job means something else here than its source.",
		"Compare the two, and correct the job.",
	},
	{"import/error", "The source was wrong: it was corrected, or must be.", "Correct the job at the field."},
	{"import/refused", "The source was right, and no TrainingJob may have it.", "Correct the job at the field."},
	{"import/translated", "Its meaning is kept in another form.", "Nothing has to be done."},
	{"import/added", "The job renders more than there was.", "Nothing has to be done, unless it is not wanted."},
	{"import/beside", "It is not part of the job.", "Keep it beside the job as a manifest of its own."},
	{"import/warning", "It was kept as it was, and deserves a second look.", "Look at the field."},
	{"import/unread", "It could not be read.", "Correct the manifest, and import it again."},

	{
		"plan/fit", "The job does not fit into the inventory.",
		"Make room, or ask for less: the plan says what is missing where.",
	},

	{
		"note/*", "What somebody who applies the job should know of the field after the slash; no mistake.",
		"Read it once: the message says what follows and what would change it.",
	},

	{
		"tool/error", "Something failed that has no place: a file that is not there, an overlay that cannot be built.",
		"Correct what the message names.",
	},
	{
		InternalRule, "A fault of tegen ended the work on a job; the exit code is 2.",
		"Report it at " + issues + " with the job and the message.",
	},
	{"tool/usage", "The command line is wrong.", "Correct the flag or argument: --help describes each."},
}

// RuleOf is the rule with an id; of one that nobody described it has the id alone.
func RuleOf(id string) Rule {
	for _, r := range Rules {
		prefix, family := strings.CutSuffix(r.ID, "*")
		if r.ID == id || family && strings.HasPrefix(id, prefix) {
			r.ID = id
			return r
		}
	}
	return Rule{ID: id}
}
