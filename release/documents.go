package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// manifests are what installs the companions and what editors read, as the release's own tegen prints it.
var manifests = []struct {
	file  string
	image string // that it needs
	args  []string
}{
	{"install-crds.yaml", "", []string{"install", "crds"}},
	{"trainingjob.schema.json", "", []string{"schema"}},
	{"environment.schema.json", "", []string{"schema", "--environment"}},
	{"install-scheduler.yaml", "tegen-scheduler", []string{"install", "scheduler"}},
	// The namespace of the README's jobs: whose jobs may reach it, nobody but its owner can say.
	{"install-rendezvous.yaml", "tegen-rendezvous", []string{"install", "rendezvous", "--clients", "training"}},
}

func (r *release) writeManifests(ctx context.Context) error {
	for _, m := range manifests {
		if m.image != "" && r.link[linked[m.image]] == "" {
			continue // a snapshot has only some
		}
		text, err := r.call(ctx, "tegen", m.args...)
		if err != nil {
			return err
		}
		if err := r.writeFile(m.file, text); err != nil {
			return err
		}
	}
	return nil
}

// writeNotes says what is new, and how to see that a download is what was released.
func (r *release) writeNotes(ctx context.Context) error {
	changes, err := r.changes(ctx)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# tegen %s\n\n%s\n## Images\n\n", r.version, changes)
	for _, i := range r.pushed {
		fmt.Fprintf(&out, "- `%s`\n", i)
	}
	out.WriteString("\n## Checking\n\nWhat was downloaded is whole where this says OK of each file:\n\n" +
		"```sh\nsha256sum --check --ignore-missing SHA256SUMS\n```\n\n" +
		"`provenance.json` names what every file was made of. Neither is signed.\n")
	return r.writeFile("NOTES.md", out.Bytes())
}

// changes are the subjects of the commits since the tag before.
func (r *release) changes(ctx context.Context) (string, error) {
	tags, err := git(ctx, r.root, "tag", "--list", "--merged=HEAD", "--no-contains=HEAD", "--sort=-v:refname",
		"--sort=-creatordate", "v[0-9]*")
	if err != nil {
		return "", err
	}
	before, _, _ := strings.Cut(tags, "\n")
	if before == "" {
		return "The first release.\n", nil
	}
	// As many digits as nobody's configuration changes.
	log, err := git(ctx, r.root, "log", "--no-merges", "--abbrev=12", "--format=- %s (%h)", before+"..HEAD")
	if err != nil {
		return "", err
	}
	return "## Changes since " + before + "\n\n" + log + "\n", nil
}
