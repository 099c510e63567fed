// Package runbook prints the commands by which one job is run, from the making of its cluster to its removal, as
// Markdown. In go a job with the objects that it became, and where both are; out come commands with the job's own
// names, selectors and fields, quoted for a shell, and nothing that does not apply to the job. It asks no cluster and
// opens no file, and the same input gives the same bytes.
//
// runbook.tmpl is what it prints. The methods of book are what the template reads.
package runbook

import (
	_ "embed" // the template
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/schema/job"
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

// book is what the template is executed with.
type book struct {
	Options
	*plan.Job
	job     *job.Job
	objects []runtime.Object
}

//go:embed runbook.tmpl
var text string

// parsed is the template. Most runs of tegen never need it.
var parsed = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("runbook").Funcs(template.FuncMap{
		"code": code, "count": count, "file": func(name string) string { return quote(file(name)) },
		"filled": filled, "join": strings.Join, "list": func(words ...string) []string { return words },
		"placeholder": placeholder, "q": quoted, "trim": strings.TrimSpace,
	}).Parse(text))
})

// Markdown is the runbook of a job that became these objects.
func Markdown(j *job.Job, concerns []generators.Concern, o Options) []byte {
	b := &book{Options: o, Job: plan.Of(j, concerns), job: j}
	for _, c := range concerns {
		b.objects = append(b.objects, c.Objects...)
	}
	return b.markdown()
}

func (b *book) markdown() []byte {
	var lines strings.Builder
	if err := parsed().Execute(&lines, b); err != nil {
		panic(fmt.Errorf("printing a runbook: %w", err)) // a strings.Builder takes all, and tests execute each template
	}
	return layout(lines.String())
}

// layout makes Markdown of lines: a heading, a command if it begins with "$ ", or a paragraph. Commands without a
// paragraph between them share a block. A section without content is left out.
func layout(lines string) []byte {
	var out []byte
	title, n, inBlock := "", 0, false
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		command, isCommand := strings.CutPrefix(line, "$ ")
		heading, isHeading := strings.CutPrefix(line, "## ")
		if line == "" {
			continue
		}
		if inBlock && !isCommand {
			out = append(out, "```\n"...)
			inBlock = false
		}
		if isHeading {
			title = heading
			continue
		}
		if title != "" {
			n++
			out = fmt.Appendf(out, "\n## %d. %s\n", n, title)
			title = ""
		}
		switch {
		case strings.HasPrefix(line, "# "):
			out = fmt.Appendf(out, "%s\n", line)
		case !isCommand:
			out = fmt.Appendf(out, "\n%s\n", wrap(line))
		default:
			if !inBlock {
				out = append(out, "\n```sh\n"...)
				inBlock = true
			}
			out = append(out, command+"\n"...)
		}
	}
	if inBlock {
		out = append(out, "```\n"...)
	}
	return out
}

// Way is what applies the job.
func (b *book) Way() string {
	switch b.With {
	case ArgoCD:
		return "Argo CD"
	case Flux:
		return "Flux"
	}
	return b.With
}

// Spec is that of the job.
func (b *book) Spec() *job.Spec { return &b.job.Spec }

// Source is the file of the job.
func (b *book) Source() string { return Source(b.job) }

// Source is where a job stands: its position less line and column.
func Source(j *job.Job) string { return lineAndColumn().ReplaceAllString(j.Position(), "") }

// Unfilled is what is to be filled in before the job is rendered.
func (b *book) Unfilled() []string { return b.job.Unfilled() }

// Trains is how many pods train.
func (b *book) Trains() (n int32) {
	for _, s := range b.PodSets {
		if !s.Helper {
			n += s.Replicas
		}
	}
	return n
}

// Workers are the pods that learn; the first set that trains where none is called so.
func (b *book) Workers() (workers *plan.PodSet) {
	for _, s := range b.PodSets {
		if !s.Helper && (workers == nil || s.Role == job.RoleWorker && workers.Role != job.RoleWorker) {
			workers = s
		}
	}
	return workers
}

// Images are those of the job's own pods and of what tegen brings along, each once.
func (b *book) Images() (images []string) {
	for _, s := range b.PodSets {
		t := s.Template()
		for _, list := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
			for i := range list {
				if image := list[i].Image; isOwn(b, s, image) && !slices.Contains(images, image) {
					images = append(images, image)
				}
			}
		}
	}
	return images
}

// isOwn says whether an image is in no registry that everybody reads: the author's, and those of tegen.
func isOwn(b *book, s *plan.PodSet, image string) bool {
	spec := &b.job.Spec
	return slices.Contains([]string{spec.Image, spec.Images.Rendezvous, spec.Role(s.Role).Image}, image)
}

func count(n int32, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
