package runbook

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/schema"
)

// tegen is a command of ours over the job's files.
func (b *book) tegen(verb string, more ...string) []string { return b.over(b.Files, verb, more...) }

// over is a command of ours over files, through the overlay.
func (b *book) over(files []string, verb string, more ...string) []string {
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
	return append(words, more...)
}

// deliver gets the job into the cluster.
func deliver(b *book) *section {
	s := &section{title: "Commit"}
	switch {
	case b.With == Kubectl:
		s.title = "Apply"
	case b.OCI != "":
		s.title = "Publish"
	}
	for _, value := range b.job.Unfilled() {
		s.text("Before it is rendered: %s.", value)
	}
	s.text("Whether the job is right, and has a place now:")
	s.run(b.tegen("vet")...)
	s.pipe([]string{"kubectl", "get", "nodes,pods", "-A", "-o", "json"}, b.tegen("plan", "--inventory", "-"))
	if b.With == Kubectl && b.job.Spec.HashedNames {
		s.text("A changed image or command is an object of a new name: delete the old one before, or both train at " +
			"once.")
	} else if b.With != Kubectl && b.Overlay != "" {
		s.text("The job itself. What other overlays render of it belongs into the same commit, as for each change " +
			"below.")
	} else {
		s.text("The job itself:")
	}
	b.deliver(s, "Train "+b.Name)
	s.register(b)
	return s
}

// deliver renders the job anew, and has it applied. With --server-side kubectl would refuse to change again what a
// patch of this runbook changed.
func (b *book) deliver(s *section, message string) {
	if b.With == Kubectl {
		s.pipe(b.tegen("render"), []string{"kubectl", "apply", "-f", "-"})
		return
	}
	s.run(b.tegen("render", "-o", file(b.Tree))...)
	s.run(append([]string{"git", "add"}, b.tracked()...)...)
	b.push(s, message)
}

// tracked is what git has of the job: what it was rendered from as well, or a clone could not be held against it.
func (b *book) tracked() (all []string) {
	for _, name := range append(slices.Clone(b.Files), b.Overlay, b.Tree) {
		if name != "" {
			all = append(all, file(name))
		}
	}
	return all
}

// push hands on what is rendered. An artifact says of which commit it is, which others should find.
func (b *book) push(s *section, message string) {
	s.commit(message)
	if b.OCI != "" {
		s.run(b.publish()...)
	}
}

func (s *section) commit(message string) {
	s.run("git", "commit", "-m", message)
	s.run("git", "push")
}

func (b *book) publish() []string { return []string{"tegen", "publish", b.OCI, file(b.Tree)} }

// watch follows the pods and what makes them. What prints until it is stopped is the last of its block.
func watch(b *book) *section {
	s := &section{title: "Watch"}
	s.found(b)
	s.reconcile(b)
	s.synced(b)
	var made []string
	for _, o := range b.Objects {
		group, _, versioned := strings.Cut(o.APIVersion, "/")
		if o.Kind != "Pod" && versioned && slices.Contains([]string{"worker", "gang", "prefetch"}, o.Concern) {
			made = append(made, resource(group, o.Kind)+"/"+o.Name)
		}
	}
	if len(made) > 0 {
		s.run(b.kubectl("get", made...)...)
	}
	if b.Queue != "" {
		s.run(b.kubectl("get", "workload.kueue.x-k8s.io")...)
	}
	s.comment("why pods have no node:")
	s.run(b.kubectl("get", "events", "--field-selector", "reason=FailedScheduling", "--sort-by=.lastTimestamp")...)
	s.run(b.follow()...)
	return s
}

// follow shows the job's pods, and each change of them.
func (b *book) follow() []string {
	return b.kubectl("get", "pods", "-l", b.Selector, "-o", "wide", "--watch")
}

// logs are those of each role, with the container that the role is about.
func logs(b *book) *section {
	s := &section{title: "Logs"}
	var done []string
	for _, set := range b.PodSets {
		container := set.Template().Spec.Containers[0].Name
		if set.Template().Labels[names.LabelComponent] == "" || slices.Contains(done, set.Role+" "+container) {
			continue
		}
		done = append(done, set.Role+" "+container)
		s.text("%s: %s", set.Role, code(plan.Names(set.Pods)))
		words := b.kubectl("logs", "-l", b.role(set), "-c", container, "--prefix", "--tail", "100", "--follow")
		if n := b.replicas(set.Role); n > 5 { // of which kubectl follows no more by default
			words = append(words, "--max-log-requests", fmt.Sprint(n))
		}
		s.run(words...)
	}
	return s
}

// role selects the pods of a role.
func (b *book) role(set *plan.PodSet) string {
	return b.Selector + "," + names.LabelComponent + "=" + set.Role
}

// replicas are the pods of a role, or as many as there may be of the workers.
func (b *book) replicas(role string) (n int32) {
	for _, s := range b.PodSets {
		if s.Role == role {
			n += s.Replicas
		}
	}
	if role == schema.RoleWorker {
		n = max(n, b.job.Spec.Workers.Max)
	}
	return n
}

// start lets a suspended job go.
func start(b *book) *section {
	if !b.job.Spec.Suspend {
		return nil
	}
	s := &section{title: "Resume"}
	e, ok := b.edited(func(s *schema.Spec) { s.Suspend = false })
	if !ok {
		return s.unknown(b, "suspend: false")
	}
	s.text("The job is suspended: everything is there, and no training pod starts before its `spec.suspend` is false.")
	b.change(s, "suspend: false", "Resume "+b.Name, e)
	return s
}

// hold stops a job that trains, and lets it go on. Bare pods take no gate once they are there, DLRover stops no
// workers, and Kueue's jobs are held by their Workload.
func hold(b *book) *section {
	t := schema.TargetOf(b.job.Spec.Framework, b.job.Spec.Target)
	switch {
	case b.Queue != "":
		return holdWorkload(b)
	case b.job.Spec.Suspend || t == nil || !t.Carries("suspend") || t.Name == schema.TargetPods ||
		t.Framework == schema.FrameworkDLRover:
		return nil
	}
	s := &section{title: "Suspend and resume"}
	off, ok := b.edited(func(s *schema.Spec) { s.Suspend = true })
	switch {
	case !ok:
		return s.unknown(b, "suspend: true")
	case !off.inPlace():
		return nil
	}
	on := edit{patches: []patch{}}
	for _, p := range off.patches {
		back := patch{object: p.object}
		for _, f := range p.fields {
			back.fields = append(back.fields, field{f.path, f.after, f.before})
		}
		on.patches = append(on.patches, back)
	}
	text := "Its pods get SIGTERM and go; those that come later start anew."
	if b.job.Spec.Checkpoint != nil {
		text = "Its pods get SIGTERM and go; those that come later go on from the last checkpoint."
	}
	s.text("%s", text)
	b.change(s, "suspend: true", "Suspend "+b.Name, off)
	s.text("And on again:")
	b.change(s, "suspend: false", "Resume "+b.Name, on)
	return s
}

// queueLabel marks what Kueue holds back until there is room in a queue.
const queueLabel = "kueue.x-k8s.io/queue-name"

// holdWorkload deactivates the Workloads that Kueue made for the job, and for no other job of its queue. Kueue labels
// them with the uid of their owner. It deletes bare pods that it evicts, and nothing recreates these.
func holdWorkload(b *book) *section {
	if b.job.Spec.Target == schema.TargetPods {
		return nil
	}
	var queued []string
	for _, o := range b.objects {
		m, err := meta.Accessor(o)
		if err == nil && m.GetLabels()[queueLabel] != "" && m.GetLabels()[names.LabelComponent] != "prefetch" {
			queued = append(queued, nameOf(o))
		}
	}
	if len(queued) == 0 {
		return nil
	}
	s := &section{title: "Suspend and resume"}
	s.text("Kueue suspends and resumes the job. To suspend it by hand, deactivate its own Workload: Kueue evicts its " +
		"pods, and admits it again after `spec.active` is true. Other jobs of the queue are not affected.")
	for _, active := range []bool{false, true} {
		for _, owner := range queued {
			s.pipe(b.kubectl("get", owner, "-o", "jsonpath={.metadata.uid}"),
				append([]string{"xargs", "-I", "UID"},
					b.kubectl("get", "workload.kueue.x-k8s.io", "-l", "kueue.x-k8s.io/job-uid=UID", "-o", "name")...),
				append([]string{"xargs", "-I", "WORKLOAD"}, b.kubectl("patch", "WORKLOAD", "--type", "merge", "-p",
					asJSON(map[string]any{"spec": map[string]any{"active": active}}))...))
		}
	}
	return s
}

// change has a field of the job changed in its file, or with kubectl in the objects, where they stay the same ones.
func (b *book) change(s *section, fields, message string, e edit) {
	if b.With == Kubectl && e.inPlace() && !e.replaces {
		s.comment("in %s too, or the next render undoes it: %s", b.source(), fields)
		for _, p := range e.patches {
			s.run(b.kubectl("patch", append([]string{p.object}, p.args()...)...)...)
		}
		return
	}
	s.comment("in %s: %s", b.source(), fields)
	if b.With == Kubectl && len(e.gone) > 0 {
		s.run(b.kubectl("delete", e.gone...)...)
	}
	b.deliver(s, message)
	s.reconcile(b)
}

// unknown says of a change what it takes where something else than tegen had the last word on the objects: no patch of
// theirs can be printed, nor whether they are made anew.
func (s *section) unknown(b *book, fields string) *section {
	s.text("The overlay changes objects after tegen has made them, so what %s does to those is not known here: say it "+
		"in %s, render, and look at the difference before it is applied.", code(fields), code(b.source()))
	return s
}

// source is where the job stands.
func (b *book) source() string { return Source(b.job) }

// Source is where a job stands: its position less line and column.
func Source(job *schema.Job) string { return lineAndColumn().ReplaceAllString(job.Position(), "") }

var lineAndColumn = lazy.Regexp(`:\d+:\d+$`)

// scale changes how many workers there are, where fewer may train than do.
func scale(b *book) *section {
	n := b.other()
	if n == 0 {
		return nil
	}
	s := &section{title: "Scale"}
	e, ok := b.edited(func(s *schema.Spec) { s.Workers.Replicas = n })
	switch {
	case !ok:
		return s.unknown(b, fmt.Sprintf("workers.replicas: %d", n))
	case len(e.patches)+len(e.gone)+len(e.added) == 0:
		return nil
	}
	w := &b.job.Spec.Workers
	how := "Pods that stay are not replaced."
	if e.replaces {
		how = "No API server changes that number: the object is made anew, with all its pods."
	}
	s.text("From %d to %d workers; %d to %d are possible. %s", w.Replicas, n, b.least(), w.Max, how)
	b.change(s, fmt.Sprintf("workers.replicas: %d", n), fmt.Sprintf("Scale %s to %d workers", b.Name, n), e)
	return s
}

// least is the fewest workers with which training starts.
func (b *book) least() int32 {
	least := b.job.Spec.Workers.Min
	if g := b.job.Spec.Gang; g.Active() && len(b.job.Spec.Components()) == 1 {
		least = max(least, g.MinAvailable)
	}
	return least
}

// other is another number of workers that the job may have; 0 where there is none. DLRover's come in units.
func (b *book) other() int32 {
	w, unit := &b.job.Spec.Workers, max(1, b.job.Spec.DLRover.NodeUnit)
	switch {
	case !b.job.Spec.Elastic() || b.Queue != "": // Kueue admits a fixed number
		return 0
	case w.Replicas-unit >= b.least():
		return w.Replicas - unit
	case w.Replicas+unit <= w.Max && b.job.Spec.Framework != schema.FrameworkDLRover:
		return w.Replicas + unit
	}
	return 0
}

// disrupt takes a worker away, and then a node.
func disrupt(b *book) *section {
	s, workers := &section{title: "Simulate a disruption"}, b.workers()
	if workers == nil {
		return nil
	}
	b.losePod(s, workers)
	if g := b.Cluster.group(workers); g != nil {
		b.loseNode(s, g)
	}
	if len(s.parts) == 0 {
		return nil
	}
	return s
}

// losePod deletes a worker that is there before and after the runbook's own change of their number, and not the first,
// which may be the store that the others meet in.
func (b *book) losePod(s *section, workers *plan.PodSet) {
	if len(workers.Pods) == 0 {
		return
	}
	n := len(workers.Pods)
	if other := int(b.other()); other > 0 {
		n = min(n, max(other, 2))
	}
	last := workers.Pods[n-1].Name
	words := b.kubectl("delete", "pod")
	index, isIndexed := strings.CutSuffix(last, "-*")
	switch {
	case !strings.Contains(last, "*"):
		words = append(words, last)
	case len(workers.Jobs) > 1 && len(workers.Jobs) == len(workers.Pods): // a Job for each
		words = append(words, "-l", b.role(workers)+","+batchv1.JobNameLabel+"="+workers.Jobs[n-1])
	case isIndexed && !strings.Contains(index, "*") && len(workers.Pods) > 1:
		words = append(words, "-l", b.role(workers)+","+batchv1.JobCompletionIndexAnnotation+"="+
			index[strings.LastIndexByte(index, '-')+1:])
	default:
		words = append(words, "-l", b.role(workers))
	}
	what := "Its controller makes a lost worker anew."
	if workers.Owner == "Pod" {
		what = "Nothing makes a bare pod anew but applying it again."
		if b.With != Kubectl {
			what = "A bare pod is made anew with the next sync."
		}
	}
	if least := b.least(); least < b.job.Spec.Workers.Replicas {
		what += fmt.Sprintf(" Training goes on with %s or more meanwhile.", count(least, "worker"))
	}
	s.text("%s", what)
	s.run(words...)
	if workers.Owner == "Pod" && b.With == Kubectl {
		b.deliver(s, "")
	}
}

// loseNode scales the node group down and up again, the experiment of the elastic tutorials. AWS chooses the node.
func (b *book) loseNode(s *section, g *nodeGroup) {
	c, fewer := b.Cluster, max(g.now-1, 0)
	scale := func(n int) []string {
		return append(c.args("scale", "nodegroup"), "--name", g.name, "--nodes", fmt.Sprint(n))
	}
	down, up := scale(fewer), scale(g.now)
	if fewer < g.least {
		down = append(down, "--nodes-min", fmt.Sprint(fewer))
		up = append(up, "--nodes-min", fmt.Sprint(g.least))
	}
	s.text("A node less, of %d; AWS chooses which.", g.now)
	s.run(append(c.args("get", "nodegroup"), "--name", g.name)...)
	s.run(down...)
	s.run(b.follow()...)
	s.text("And back:")
	s.run(up...)
}
