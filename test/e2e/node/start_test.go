package node

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// repository is its address in documents.
const repository = "https://git.example/team/jobs"

// block is a code block of a document, below the line that names it.
func block(t *testing.T, file, marker string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("<!-- " + regexp.QuoteMeta(marker) + " -->\n```\\w+\n((?s:.*?))```\n").FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s has no block %q", file, marker)
	}
	return string(m[1])
}

// sixCommands are those of docs/start.md.
func sixCommands(t *testing.T) []string {
	t.Helper()
	commands := strings.Split(strings.TrimSpace(block(t, "docs/start.md", "six commands")), "\n")
	if len(commands) > 6 {
		t.Fatalf("docs/start.md takes %d commands", len(commands))
	}
	return commands
}

// TestStart is the way of a newcomer: the commands of docs/start.md, from an empty repository to workers that train,
// with Flux between them. Nothing is changed but the repository's address.
func TestStart(t *testing.T) {
	w := begin(t)
	d := w.newDesk(t, "start")
	const file = "jobs/resnet.yaml"
	text := block(t, "docs/start.md", file)
	d.write(file, text)
	j := w.job(t, "9 start", manifest(t, file, text, "base"), "")
	t.Cleanup(func() { d.forget("rendered") })
	for _, command := range sixCommands(t) {
		if strings.HasPrefix(command, "tegen gitops") {
			j.setApplied()
		}
		command = strings.ReplaceAll(command, repository, d.repository.URL)
		if strings.HasSuffix(command, "--watch") {
			d.follow(command, func(printed string) bool { return strings.Contains(printed, "Running") })
			continue
		}
		d.run(command)
	}
	two := j.awaitWorld(2, j.applied, patience)
	j.took("tegen gitops flux, applied, to two workers that train", j.applied, two.stepped)
	j.stop(two.joins[1].Pod)
	j.awaitDone(2, two.stepped, patience)
}

// forget has Flux leave alone what it applied of a repository.
func (d *desk) forget(source string) {
	ctx := context.WithoutCancel(d.t.Context())
	for _, kind := range []string{
		"kustomizations.kustomize.toolkit.fluxcd.io", "gitrepositories.source.toolkit.fluxcd.io",
	} {
		list, err := d.tryKubectl(ctx, "get", kind, "-n", "flux-system", "-o", "name")
		if err != nil {
			d.t.Errorf("looking for what Flux follows: %v", err)
		}
		for name := range strings.FieldsSeq(list) {
			_, short, _ := strings.Cut(name, "/")
			if short != source && !strings.HasPrefix(short, source+"-") {
				continue
			}
			if _, err := d.tryKubectl(ctx, "delete", "-n", "flux-system", name); err != nil {
				d.t.Errorf("having Flux forget %s: %v", name, err)
			}
		}
	}
}
