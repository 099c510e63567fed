// Package playground is what a page shows beside a job that somebody types: the text of a job, of an Environment and of
// a policy in; the objects, their graph, the plan and all findings out, as data. It uses package render as the command
// does, so that both report the same. It reads no files and no network; the same texts give the same result.
package playground

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tegen-dev/tegen/internal/finding"
	"github.com/tegen-dev/tegen/internal/graph"
	"github.com/tegen-dev/tegen/internal/plan"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/render"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// What the texts are called in findings.
const (
	JobFile         = "job.yaml"
	EnvironmentFile = "environment.yaml"
	PolicyFile      = "policy.cue"
)

// mostNodes is how many objects a graph is drawn of: nobody reads a picture of more, and drawing takes their square.
const mostNodes = 300

// Result is what the page shows of the texts. What cannot be made of a job with an error is empty.
type Result struct {
	Objects string `json:"objects"` // as tegen render prints them
	Plan    string `json:"plan"`    // as tegen plan prints it
	Graph   string `json:"graph"`   // an SVG
	NoGraph string `json:"noGraph"` // why there is none, where there are objects

	Findings finding.List `json:"findings"` // with an error there is nothing else
}

// Evaluate returns what the page shows of a job, with an Environment and a policy, which may be blank.
func Evaluate(job, environment, rules string) Result {
	bundles, err := bundlesOf(job, environment, rules)
	if err != nil {
		return Failed(err)
	}
	out := Result{Findings: finding.List{}}
	for _, b := range bundles {
		for _, note := range b.Summary.Notes {
			out.Findings = append(out.Findings, finding.Noted(note).At(b.Summary.Position()))
		}
	}
	var text, planned strings.Builder
	if err := render.Write(&text, bundles); err != nil {
		return Failed(err)
	}
	plans := make([]*plan.Job, len(bundles))
	for i := range bundles {
		plans[i] = plan.Of(bundles[i].Job, bundles[i].Objects())
	}
	if err := plan.New(plans).WriteText(&planned); err != nil {
		return Failed(err)
	}
	out.Objects, out.Plan = text.String(), planned.String()
	if out.Graph, err = draw(bundles); err != nil {
		out.NoGraph = err.Error()
	}
	return out
}

// Failed is the Result of texts over which the program itself failed.
func Failed(err error) Result { return Result{Findings: finding.Of(err)} }

func bundlesOf(job, environment, rules string) ([]render.Bundle, error) {
	texts := map[string][]byte{JobFile: yamldoc.JoinSurrogates([]byte(job))}
	sources := []schema.Source{{Name: JobFile, Data: texts[JobFile]}}
	if strings.TrimSpace(environment) != "" {
		texts[EnvironmentFile] = yamldoc.JoinSurrogates([]byte(environment))
		sources = append(sources, schema.Source{
			Name: EnvironmentFile, Data: texts[EnvironmentFile], Environment: schema.AnyEnvironment,
		})
	}
	under, err := policyOf(rules)
	if err != nil {
		return nil, err
	}
	bundles, err := rendered(sources, schema.WithPolicy(under))
	err = render.WithObjects(err, func(o schema.Option) error {
		_, err := rendered(sources, schema.WithPolicy(under), o)
		return err
	})
	if err != nil {
		return nil, render.AtPodTemplates(finding.Of(err), func(file string) []byte { return texts[file] }).Once()
	}
	if len(bundles) == 0 {
		nothing := finding.Said("job/empty", finding.Error, "nothing to render: there is no TrainingJob in the input")
		return nil, finding.List{nothing.At(JobFile + ":1:1")}
	}
	var unfilled finding.List
	for _, b := range bundles {
		for _, what := range b.Summary.Unfilled {
			unfilled = append(unfilled, finding.Said("job/placeholder", finding.Error, what).At(b.Summary.Position()))
		}
	}
	return bundles, unfilled.Err()
}

// policyOf is nil of a blank text.
func policyOf(text string) (*policy.Policy, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	rules, err := policy.Load([]policy.Source{{Name: PolicyFile, Text: []byte(text)}}, render.PolicyTypes())
	list := finding.Of(err)
	for i := range list {
		if list[i].Line == 0 { // it is about the whole policy
			list[i] = list[i].At(PolicyFile + ":1:1")
		}
	}
	return rules, list.Err()
}

func rendered(sources []schema.Source, opts ...schema.Option) ([]render.Bundle, error) {
	jobs, err := schema.Load(sources, opts...)
	if err != nil {
		return nil, err
	}
	return render.Jobs(jobs, render.Options{})
}

func draw(bundles []render.Bundle) (string, error) {
	var objects []runtime.Object
	var titles []string
	for _, b := range bundles {
		titles = append(titles, b.Job.Metadata.Name)
		for _, concern := range b.Objects() {
			objects = append(objects, concern.Objects...)
		}
	}
	if len(objects) > mostNodes {
		return "", fmt.Errorf("%d objects are too many for a picture; tegen graph draws them", len(objects))
	}
	g, err := graph.Of(strings.Join(titles, ", "), objects)
	if err != nil {
		return "", err
	}
	return g.SVG(), nil
}
