// Package starter has the files by which a repository of jobs starts: a job, the place where it runs, and what holds
// commits to them.
package starter

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/tegen-dev/tegen/internal/lazy"
	"github.com/tegen-dev/tegen/internal/spelling"
	"github.com/tegen-dev/tegen/schema/target"
)

//go:embed files
var files embed.FS

// Options say what to start with.
type Options struct {
	Framework string // of target.All
	Target    string // of target.All, for that framework
	Overlay   string // directory of the place, below that of the files, with slashes
	CI        string // one of CIs
	Version   string // of tegen, as 'go install' knows it
}

// CIs are whose workflows there are.
var CIs = []string{GitHub, GitLab, None}

// Whose workflow is written.
const (
	GitHub = "github"
	GitLab = "gitlab"
	None   = "none"
)

// JobFile is the name of the job.
const JobFile = "jobs/train.yaml"

const (
	module   = "github.com/tegen-dev/tegen"
	releases = "https://" + module + "/releases/" // has the schemas of each
)

// directory is one that a shell and YAML read as it stands, and whose last part names an Environment.
var directory = lazy.Regexp(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(/[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// values are what the files' templates read.
type values struct {
	Options
	Place, Up, Module         string
	Schema, EnvironmentSchema string
	// Of the configuration of kustomize.
	ImageFields []string
	References  []reference
	PodSpecs    []podSpec
}

// Files are what to write by name, with slashes.
func Files(o Options) (map[string][]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	from := releases + "download/" + o.Version + "/"
	if !strings.HasPrefix(o.Version, "v") || strings.ContainsAny(o.Version, "+- ") {
		o.Version, from = "latest", releases+"latest/download/" // no release has what was built here
	}
	v := values{
		Options: o, Place: path.Base(o.Overlay), Up: strings.Repeat("../", strings.Count(o.Overlay, "/")+1),
		Module: module + "/cmd/tegen",
		Schema: from + "trainingjob.schema.json", EnvironmentSchema: from + "environment.schema.json",
		ImageFields: imageFields, References: references,
	}
	job, err := filled(JobFile, "jobs/"+o.Framework+".yaml", v)
	if err != nil {
		return nil, err
	}
	if v.PodSpecs, err = podSpecs(job); err != nil {
		return nil, err
	}
	configuration := o.Overlay + "/kustomizeconfig.yaml"
	sources := map[string]string{
		JobFile:                           "jobs/" + o.Framework + ".yaml",
		"jobs/kustomization.yaml":         "jobs.yaml",
		o.Overlay + "/environment.yaml":   "environment.yaml",
		o.Overlay + "/kustomization.yaml": "kustomization.yaml",
		o.Overlay + "/tegen.yaml":         "generator.yaml",
		configuration:                     "kustomizeconfig.yaml",
		".pre-commit-config.yaml":         "pre-commit.yaml",
	}
	switch o.CI {
	case GitHub:
		sources[".github/workflows/tegen.yaml"] = "workflow.yaml"
	case GitLab:
		sources[".gitlab-ci.yml"] = "gitlab.yaml"
	}
	all := map[string][]byte{}
	for name, source := range sources {
		if all[name], err = filled(name, source, v); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// filled is a file's text, made of its template.
func filled(name, source string, v values) ([]byte, error) {
	t, err := template.New(path.Base(source)).Delims("<<", ">>").Option("missingkey=error").
		ParseFS(files, "files/"+source)
	if err != nil {
		return nil, fmt.Errorf("reading the template of %s: %w", name, err)
	}
	var text bytes.Buffer
	if err := t.Execute(&text, v); err != nil {
		return nil, fmt.Errorf("filling in %s: %w", name, err)
	}
	return text.Bytes(), nil
}

func (o *Options) check() error {
	switch targets := TargetsOf(o.Framework); {
	case targets == nil:
		return fmt.Errorf("there is no framework %q; there are: %s%s", o.Framework, strings.Join(Frameworks(), ", "),
			spelling.Suggest(o.Framework, Frameworks()))
	case !slices.Contains(targets, o.Target):
		return fmt.Errorf("framework %s has no target %q; it has: %s%s", o.Framework, o.Target,
			strings.Join(targets, ", "), spelling.Suggest(o.Target, targets))
	case !slices.Contains(CIs, o.CI):
		return fmt.Errorf("there is no workflow for %q; there is one for: %s%s", o.CI, strings.Join(CIs, ", "),
			spelling.Suggest(o.CI, CIs))
	case !directory().MatchString(o.Overlay):
		return fmt.Errorf("overlay %q: write a directory of lower-case letters, digits and '-' below the new one, "+
			"such as overlays/eks", o.Overlay)
	case slices.Contains([]string{"jobs", "rendered"}, strings.Split(o.Overlay, "/")[0]):
		return fmt.Errorf("overlay %q: jobs and rendered hold jobs and what is rendered of them: write another, such "+
			"as overlays/eks", o.Overlay)
	}
	return nil
}

// Frameworks are those that there is a job for, in the order of docs/support.md.
func Frameworks() (all []string) {
	for _, t := range target.All {
		if !slices.Contains(all, t.Framework) {
			all = append(all, t.Framework)
		}
	}
	return all
}

// TargetsOf are those of a framework, the one that goes without a controller first; nil of one that is not there.
func TargetsOf(framework string) (all []string) {
	for _, t := range target.All {
		if t.Framework == framework {
			all = append(all, t.Name)
		}
	}
	return all
}
