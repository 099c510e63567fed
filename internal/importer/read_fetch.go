package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/lazy"
)

// fetched is what a container gets from elsewhere, and the field of a TrainingJob that says it.
type fetched struct{ url, field string }

// fetches are the commands that people fetch with, each with what follows it up to the source.
var fetches = []struct {
	command func() *regexp.Regexp
	of      func(match []string) fetched
}{
	{
		lazy.Regexp(`\baws s3 (cp|sync)((?: --[a-z][-a-z0-9]*)*) (s3://[^ '"]+)`),
		func(m []string) fetched {
			url := m[3]
			if m[1] == "sync" || strings.Contains(m[2], "--recursive") {
				url = strings.TrimSuffix(url, "/") + "/"
			}
			return fetched{url, "dataset"}
		},
	},
	{
		lazy.Regexp(`\b(?:hf|huggingface-cli) download(?: --repo-type[ =](dataset|model))? ` +
			`([A-Za-z0-9][-\w.]*/[-\w.]+)(?:[^;&|]*--repo-type[ =](dataset))?`),
		func(m []string) fetched {
			if m[1] == "dataset" || m[3] == "dataset" {
				return fetched{"hf://datasets/" + m[2], "dataset"}
			}
			return fetched{"hf://" + m[2], "dataset"}
		},
	},
	{
		lazy.Regexp(`\bgit clone(?: -[-\w=.]+(?: \d+)?)* ([a-z+]+://[^ '"]+|git@[^ '"]+)`),
		func(m []string) fetched { return fetched{m[1], "code"} },
	},
	{
		lazy.Regexp(`\b(?:wget|curl)\b[^;&|]*? (https?://[^ '"]+)`),
		func(m []string) fetched { return fetched{m[1], "dataset"} },
	},
}

var blanks = lazy.Regexp(`[\s"']+`)

// fetchOf finds what a container fetches, if it does nothing else that is told from here.
func fetchOf(c view) (fetched, bool) {
	words := slices.Concat(c.at("command").texts(), c.at("args").texts())
	text := " " + blanks().ReplaceAllString(strings.Join(words, " "), " ")
	for _, f := range fetches {
		if m := f.command().FindStringSubmatch(text); m != nil && !strings.Contains(m[len(m)-1], "$") {
			return f.of(m), true
		}
	}
	repo := c.at("env").item("name", "GITSYNC_REPO").at("value").text()
	for _, word := range words {
		if own, ok := strings.CutPrefix(strings.TrimLeft(word, "-"), "repo="); ok {
			repo = own
		}
	}
	if repo != "" && strings.Contains(c.at("image").text(), "git-sync") {
		return fetched{repo, "code"}, true
	}
	return fetched{}, false
}

// instead says which fields take the place of what fetches.
func (f fetched) instead(at string) string {
	if f.field == "code" {
		return "spec.code.git.repository: " + f.url
	}
	return at + ".dataset.url: " + f.url
}

// prefetched says of an object beside the jobs that it fetches into a claim that one of them mounts, "" of any other.
func prefetched(o *object, drafts []*draft) string {
	pod := o.view().at("spec")
	switch {
	case o.is("batch", "Job"):
		pod = pod.at("template", "spec")
	case !o.is("", "Pod"):
		return ""
	}
	for _, c := range slices.Concat(pod.at("initContainers").items(), pod.at("containers").items()) {
		f, ok := fetchOf(c)
		if !ok {
			continue
		}
		for _, volume := range pod.at("volumes").items() {
			claim := volume.at("persistentVolumeClaim", "claimName").text()
			for _, d := range drafts {
				i := slices.IndexFunc(d.get("spec.storage").items(), func(v view) bool {
					return claim != "" && v.at("claim").text() == claim && sameNamespace(d.namespace(), o.namespace)
				})
				if i >= 0 {
					return fmt.Sprintf("it fetches %s into claim %s, which job %s mounts: keep it beside and let it "+
						"end before the job starts, or have the job fetch it, by %s", f.url, claim, d.name(),
						f.instead(fmt.Sprintf("spec.storage[%d]", i)))
				}
			}
		}
	}
	return ""
}

// fetchNotes tell of init containers, which podTemplate keeps, that fetch what a field of the job would.
func (d *draft) fetchNotes() {
	for _, c := range d.template.at("spec", "initContainers").items() {
		name := c.at("name").text()
		f, ok := fetchOf(c)
		if !ok || strings.HasPrefix(name, "fetch-") || name == "wait-for-dataset" {
			continue
		}
		how := "a volume of spec.storage has it fetched once for all pods, by"
		if f.field == "code" {
			how = "a git-sync that tegen renders fetches it, by"
		}
		d.note(c.at("name"), Warning, "it fetches %s, anew in each pod: it is kept in podTemplate; %s %s", f.url, how,
			f.instead("spec.storage[n]"))
	}
}
