// Package runbook prints the commands by which one job is run, from the making of its cluster to its removal, as
// Markdown. In go a job with the objects that it became, and where both are; out come commands with the job's own
// names, selectors and fields, quoted for a shell, and nothing that does not apply to the job. It asks no cluster and
// opens no file, and the same input gives the same bytes.
package runbook

import (
	"fmt"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/schema"
)

// Ways by which rendered objects get into a cluster.
const (
	Kubectl = "kubectl"
	ArgoCD  = "argocd"
	Flux    = "flux"
)

// Ways lists them.
var Ways = []string{Kubectl, ArgoCD, Flux}

// Options say where a job is and how it gets into a cluster. Names of files are as on a command line.
type Options struct {
	Files       []string
	Overlay     string // "" where there is none
	Exec        bool   // the overlay lists programs that have to run
	Environment string // file of the Environment, "" for none
	Tree        string // the folder in git that jobs are rendered to, for Argo CD and Flux
	With        string // one of Ways
	Repo        string // address of the git repository; "" where the shell is to say it
	OCI         string // where the folder is published, oci://registry/repository:tag, in place of a git repository
	Cluster     *Cluster
	Alone       string   // the file that holds this job and no other, "" where there is none
	All         []string // the directories from which all jobs of Tree are rendered, where IsAll
	IsAll       bool
}

// section is a heading with what stands below it.
type section struct {
	title string
	parts []part
}

// part is a paragraph, or a block of commands.
type part struct {
	text     string
	commands []command
}

// sections are those of a runbook in their order. One that does not apply to a job is nil.
var sections = []func(*book) *section{
	theCluster, companions, prerequisites, deliver, watch, start, logs, scale, disrupt, hold, remove,
}

// book is what sections are made of.
type book struct {
	Options
	*plan.Job
	job     *schema.Job
	objects []runtime.Object
}

// Markdown is the runbook of a job that became these objects.
func Markdown(job *schema.Job, concerns []generators.Concern, o Options) []byte {
	b := &book{Options: o, Job: plan.Of(job, concerns), job: job}
	for _, c := range concerns {
		b.objects = append(b.objects, c.Objects...)
	}
	out := fmt.Appendf(nil, "# %s in %s, with %s\n\n%s\n", b.Name, b.Namespace, b.way(), b.head())
	n := 0
	for _, of := range sections {
		s := of(b)
		if s == nil {
			continue
		}
		n++
		out = fmt.Appendf(out, "\n## %d. %s\n", n, s.title)
		for _, p := range s.parts {
			out = p.append(out)
		}
	}
	return out
}

// way is what applies the job.
func (b *book) way() string {
	if r := reconcilers[b.With]; r != nil {
		return r.name
	}
	return b.With
}

// head says what the runbook is of, and what holds for all of it.
func (b *book) head() string {
	text := fmt.Sprintf("%s as target `%s`; training starts with %d of %s.", b.Framework, b.Target, b.Gang.Pods,
		count(b.trains(), "pod"))
	if b.job.Spec.Elastic() {
		text += fmt.Sprintf(" %d to %s train together.", b.job.Spec.Workers.Min,
			count(b.job.Spec.Workers.Max, "worker"))
	}
	return text + "\n\nRun the commands in the directory that `tegen runbook` ran in, one block after the other. " +
		"Make the runbook anew when\nthe job changes: its names may be others then."
}

// trains is how many pods train.
func (b *book) trains() (n int32) {
	for s := range b.training() {
		n += s.Replicas
	}
	return n
}

// training are the sets of pods that train.
func (b *book) training() iter.Seq[*plan.PodSet] {
	return func(yield func(*plan.PodSet) bool) {
		for _, s := range b.PodSets {
			if !s.Helper && !yield(s) {
				return
			}
		}
	}
}

// workers are the pods that learn; the first set that trains where none is called so.
func (b *book) workers() (workers *plan.PodSet) {
	for s := range b.training() {
		if workers == nil || s.Role == schema.RoleWorker && workers.Role != schema.RoleWorker {
			workers = s
		}
	}
	return workers
}

// holds says whether the bundle has an object of a kind.
func (b *book) holds(kind string) bool {
	return slices.ContainsFunc(b.Objects, func(o plan.Object) bool { return o.Kind == kind && o.APIVersion == "v1" })
}

// kubectl is a command in the job's namespace.
func (b *book) kubectl(verb string, words ...string) []string {
	return append([]string{"kubectl", verb, "-n", b.Namespace}, words...)
}

// images are those of the job's own pods and of what tegen brings along, each once.
func (b *book) images() (images []string) {
	for _, s := range b.PodSets {
		t := s.Template()
		for _, list := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
			for i := range list {
				if image := list[i].Image; b.isOwn(s, image) && !slices.Contains(images, image) {
					images = append(images, image)
				}
			}
		}
	}
	return images
}

// isOwn says whether an image is in no registry that everybody reads: the author's, and those of tegen.
func (b *book) isOwn(s *plan.PodSet, image string) bool {
	spec := &b.job.Spec
	return slices.Contains([]string{spec.Image, spec.Images.Rendezvous, spec.Role(s.Role).Image}, image)
}

func count(n int32, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
