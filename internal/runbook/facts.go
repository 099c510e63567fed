package runbook

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/internal/tree"
	"github.com/tegen-dev/tegen/schema/job"
)

var (
	lineAndColumn = lazy.Regexp(`:\d+:\d+$`)
	createAddon   = lazy.Regexp(`^eksctl create addon .*--name (\S+)`)
	openWord      = lazy.Regexp(`\b[A-Z]{5,}\b`)
)

// NodeLabels select the nodes that workers may run on.
func (b *book) NodeLabels() string {
	selector := b.Workers().Template().Spec.NodeSelector
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(selector)) {
		labels = append(labels, k+"="+selector[k])
	}
	return strings.Join(labels, ",")
}

// NodeColumns show what nodes have of what workers request beside CPU and memory.
func (b *book) NodeColumns() string {
	columns := ""
	for _, name := range slices.Sorted(maps.Keys(b.Workers().Each)) {
		if strings.Contains(string(name), "/") {
			columns += "," + strings.ToUpper(string(name)) + ":.status.allocatable." +
				strings.ReplaceAll(string(name), ".", `\.`)
		}
	}
	if columns == "" {
		return ""
	}
	return "custom-columns=NAME:.metadata.name" + columns
}

// Install are the commands that install a controller, without those for what the cluster is made with.
func (b *book) Install(c plan.Controller) (commands []string) {
	for _, command := range c.Install {
		if m := createAddon().FindStringSubmatch(command); m != nil && b.Cluster.has(m[1]) {
			continue
		}
		if b.Cluster != nil && b.Cluster.Tool == eksctl {
			command = strings.ReplaceAll(command, " CLUSTER ", " "+b.Cluster.Name+" --region "+b.Cluster.region+" ")
		}
		commands = append(commands, command)
	}
	return commands
}

// placeholder is the word in capitals that a command leaves to its user.
func placeholder(command string) string { return openWord().FindString(command) }

// filled is a command that reads its placeholder from the variable of that name.
func filled(command string) string {
	if word := placeholder(command); word != "" {
		command = strings.ReplaceAll(command, " "+word+" ", ` "$`+word+`" `)
	}
	if strings.Contains(command, "cd ") {
		return "(" + command + ")" // or all that follows would run in another directory
	}
	return command
}

// NeedsNamespace says whether the namespace is to be made first.
func (b *book) NeedsNamespace() bool {
	return b.Namespace != corev1.NamespaceDefault && !slices.ContainsFunc(b.Objects, func(o plan.Object) bool {
		return o.Kind == "Namespace" && o.APIVersion == "v1"
	})
}

// Expected is what the job names and does not make.
func (b *book) Expected() (all []string) {
	for _, expected := range b.Expects {
		kind, name, _ := strings.Cut(expected, "/")
		kind, group, _ := strings.Cut(kind, ".")
		all = append(all, resource(group, kind)+"/"+name)
	}
	return all
}

// Tegen is a command of ours over the job's files.
func (b *book) Tegen(verb string, more ...string) string { return b.over(b.Files, verb, more...) }

// over is a command of ours over files, through the overlay.
func (b *book) over(files []string, verb string, more ...string) string {
	words := []string{"tegen", verb}
	for _, name := range files {
		words = append(words, file(name))
	}
	if b.Overlay != "" {
		words = append(words, "--overlay", file(b.Overlay))
	}
	if b.Exec {
		words = append(words, "--enable-exec")
	}
	if b.Environment != "" {
		words = append(words, "--environment", file(b.Environment))
	}
	return quoted(append(words, more...))
}

// Tracked is what git has of the job: what it was rendered from as well, or a clone could not be held against it.
func (b *book) Tracked() string {
	var all []string
	for _, name := range append(slices.Clone(b.Files), b.Overlay, b.Tree) {
		if name != "" {
			all = append(all, file(name))
		}
	}
	return quoted(all)
}

// Folder is the job's in the tree.
func (b *book) Folder() string { return quote(file(path.Join(b.Tree, b.Name))) }

// RenderAll renders all jobs of the tree that are left. It adds no folder of a job that was not there.
func (b *book) RenderAll() string { return b.over(b.All, "render", "-o", file(b.Tree), "--prune") }

// Others succeeds if git has the folder of another job.
func (b *book) Others() string {
	find := []string{"git", "ls-files", file(path.Join(b.Tree, "*/kustomization.yaml"))}
	if b.Overlay != "" {
		find = append(find, ":!"+path.Join(b.Tree, tree.RestFolder))
	}
	return quoted(find) + " | grep -q ."
}

// Registration makes the reconciler's objects of the folder, and applies them.
func (b *book) Registration() string {
	repo := `"$REPO"`
	if told := b.OCI + b.Repo; told != "" {
		repo = quote(told)
	}
	command := "tegen gitops " + b.With + " " + quote(file(b.Tree)) + " --repo " + repo
	if !isTreeName(path.Base(b.Tree)) {
		command += " --name " + b.TreeName()
	}
	if b.With == Flux {
		command += ` ${SECRET_REF:+--secret-ref="$SECRET_REF"}`
	}
	return command + " | kubectl apply --server-side -f -"
}

// Reconciled is the object that the reconciler has of the job, in its own namespace.
func (b *book) Reconciled() string {
	kind := "-n argocd application.argoproj.io/"
	if b.With == Flux {
		kind = "-n flux-system kustomization.kustomize.toolkit.fluxcd.io/"
	}
	return kind + b.TreeName() + "-" + b.Name
}

// ApplicationSet is what makes Argo CD's Applications of the folder.
func (b *book) ApplicationSet() string { return "-n argocd applicationset.argoproj.io/" + b.TreeName() }

// TreeName is how 'tegen gitops' names its objects: after the folder, where that can be a name.
func (b *book) TreeName() string {
	if name := path.Base(b.Tree); isTreeName(name) {
		return name
	}
	return "training"
}

// isTreeName says whether a folder's name can be that of objects, to which a job's is added.
func isTreeName(name string) bool {
	return len(validation.IsDNS1123Label(name)) == 0 && len(name) <= 22
}

// Made is what makes the pods.
func (b *book) Made() (made []string) {
	for _, o := range b.Objects {
		group, _, versioned := strings.Cut(o.APIVersion, "/")
		if o.Kind != "Pod" && versioned && slices.Contains([]string{"worker", "gang", "prefetch"}, o.Concern) {
			made = append(made, resource(group, o.Kind)+"/"+o.Name)
		}
	}
	return made
}

// logs are those of a role.
type logs struct {
	Role, Pods, Selector, Container string
	Requests                        int32 // how many kubectl has to follow, 0 if no more than by default
}

// Logs are those of each role, with the container that the role is about.
func (b *book) Logs() (all []logs) {
	for _, set := range b.PodSets {
		l := logs{Role: set.Role, Pods: plan.Names(set.Pods), Selector: role(b, set)}
		l.Container = set.Template().Spec.Containers[0].Name
		if set.Template().Labels[names.LabelComponent] == "" || slices.ContainsFunc(all, func(other logs) bool {
			return other.Role == l.Role && other.Container == l.Container
		}) {
			continue
		}
		if n := replicas(b, set.Role); n > 5 {
			l.Requests = n
		}
		all = append(all, l)
	}
	return all
}

// role selects the pods of a role.
func role(b *book, set *plan.PodSet) string {
	return b.Selector + "," + names.LabelComponent + "=" + set.Role
}

// replicas are the pods of a role, or as many as there may be of the workers.
func replicas(b *book, role string) (n int32) {
	for _, s := range b.PodSets {
		if s.Role == role {
			n += s.Replicas
		}
	}
	if role == job.RoleWorker {
		n = max(n, b.job.Spec.Workers.Max)
	}
	return n
}

// Least is the fewest workers with which training starts.
func (b *book) Least() int32 {
	least := b.job.Spec.Workers.Min
	if g := b.job.Spec.Gang; g.Active() && len(b.job.Spec.Components()) == 1 {
		least = max(least, g.MinAvailable)
	}
	return least
}

// Other is another number of workers that the job may have; 0 where there is none. DLRover's come in units.
func (b *book) Other() int32 {
	w, unit := &b.job.Spec.Workers, max(1, b.job.Spec.DLRover.NodeUnit)
	switch {
	case !b.job.Spec.Elastic() || b.Queue != "": // Kueue admits a fixed number
		return 0
	case w.Replicas-unit >= b.Least():
		return w.Replicas - unit
	case w.Replicas+unit <= w.Max && b.job.Spec.Framework != job.FrameworkDLRover:
		return w.Replicas + unit
	}
	return 0
}

// Lost selects a worker that is there before and after the runbook's own change of their number, and not the first,
// which may be the store that the others meet in.
func (b *book) Lost() []string {
	workers := b.Workers()
	if workers == nil || len(workers.Pods) == 0 {
		return nil
	}
	n := len(workers.Pods)
	if other := int(b.Other()); other > 0 {
		n = min(n, max(other, 2))
	}
	last := workers.Pods[n-1].Name
	index, isIndexed := strings.CutSuffix(last, "-*")
	switch {
	case !strings.Contains(last, "*"):
		return []string{last}
	case len(workers.Jobs) > 1 && len(workers.Jobs) == len(workers.Pods): // a Job for each
		return []string{"-l", role(b, workers) + "," + batchv1.JobNameLabel + "=" + workers.Jobs[n-1]}
	case isIndexed && !strings.Contains(index, "*") && len(workers.Pods) > 1:
		return []string{"-l", role(b, workers) + "," + batchv1.JobCompletionIndexAnnotation + "=" +
			index[strings.LastIndexByte(index, '-')+1:]}
	}
	return []string{"-l", role(b, workers)}
}

// NodeGroup is that of the workers. AWS chooses which of its nodes goes.
func (b *book) NodeGroup() *nodeGroup { return b.Cluster.group(b.Workers()) }

// queueLabel marks what Kueue holds back until there is room in a queue.
const queueLabel = "kueue.x-k8s.io/queue-name"

// Queued are the owners of the Workloads that Kueue made for the job, and for no other job of its queue. Kueue labels
// them with the uid of their owner. It deletes bare pods that it evicts, and nothing recreates these.
func (b *book) Queued() (queued []string) {
	if b.Queue == "" || b.job.Spec.Target == job.TargetPods {
		return nil
	}
	for _, o := range b.objects {
		m, err := meta.Accessor(o)
		if err == nil && m.GetLabels()[queueLabel] != "" && m.GetLabels()[names.LabelComponent] != "prefetch" {
			queued = append(queued, nameOf(o))
		}
	}
	return queued
}

// Kinds are those of the objects with the job's label, in a namespace or in none.
func (b *book) Kinds(inNamespace bool) string {
	var kinds []string
	for _, obj := range b.objects {
		m, err := meta.Accessor(obj)
		name, _, _ := strings.Cut(nameOf(obj), "/")
		if err == nil && m.GetLabels()[names.LabelJob] != "" && (m.GetNamespace() != "") == inNamespace &&
			!slices.Contains(kinds, name) {
			kinds = append(kinds, name)
		}
	}
	return strings.Join(kinds, ",")
}

// ClusterSelector selects the job's objects that are in no namespace.
func (b *book) ClusterSelector() string {
	return fmt.Sprintf("%s,%s=%s", b.Selector, names.LabelNamespace, b.Namespace)
}

// Kept are the objects that outlive the job, but for the Namespace, in which others may live.
func (b *book) Kept() (kept []string) {
	for _, obj := range b.objects {
		m, err := meta.Accessor(obj)
		_, isNamespace := obj.(*corev1.Namespace)
		if err == nil && !isNamespace && m.GetLabels()[names.LabelJob] == "" {
			kept = append(kept, nameOf(obj))
		}
	}
	return kept
}
