package gitops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/test/gitops"
)

// treeCases apply what 'tegen gitops' renders for a tree as it is.
var treeCases = []testCase{
	{row: "one job refused", run: oneRefused},
	{row: "a folder leaves git", run: folderLeaves},
	{row: "a broken file", run: broken},
	{row: "a hand's suspension", run: suspendedByHand},
	{row: "several namespaces", run: severalNamespaces},
	{row: "another kind or namespace", run: fenced},
	{row: "how jobs are", run: howJobsAre},
	{row: "an artifact in a registry", run: artifact},
	{row: "a private repository", run: private},
	{row: "rendered by the plugin", run: plugin, only: "Argo CD"},
}

// tree is a place whose jobs each have an Application or Kustomization of their own.
type tree struct {
	*place
	name    string
	applied *gitops.Objects
}

// generate applies what 'tegen gitops' renders for what was committed. Its name starts those of all objects.
func (p *place) generate(name string, flags ...string) *tree {
	p.Helper()
	t := &tree{place: p, name: name}
	p.Cleanup(t.leave)
	t.again(flags...)
	return t
}

// again is what a person does after a change of the tree's folders or of the flags.
func (t *tree) again(flags ...string) {
	t.Helper()
	controller := map[string]string{"Flux": "flux", "Argo CD": "argocd"}[t.Name()]
	folder := t.app.Path
	if slices.Contains(flags, "--plugin") {
		folder = "jobs"
	}
	args := slices.Concat([]string{
		"gitops", controller, filepath.Join(t.app.Repository.Dir, folder),
		"--repo", t.app.Repository.URL, "--path", folder, "--name", t.name,
	}, flags) // of a flag that is there twice the last one counts
	applied, err := t.lab.Apply(t.Context(), command(t.T, t.tegen, args...))
	if err != nil {
		t.Fatal(err)
	}
	t.applied = applied
	t.look()
}

// look has Argo CD list the folders now, which it does every three minutes.
func (t *tree) look() {
	t.Helper()
	if t.Name() != "Argo CD" {
		return
	}
	if err := t.lab.Argo.Refresh(t.Context(), t.name); err != nil {
		t.Fatal(err)
	}
}

// of is the place of one job.
func (t *tree) of(job string) *place {
	p := *t.place
	p.app.Name, p.app.Source = t.name+"-"+job, t.name
	return &p
}

func (t *tree) leave() {
	ctx, cancel := cleanupContext()
	defer cancel()
	if t.Failed() {
		t.report(ctx)
	}
	if err := t.applied.Delete(ctx); err != nil {
		t.Error(err)
	}
	err := t.client.CoreV1().Namespaces().Delete(ctx, t.namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// oneRefused: what is wrong with one job stops no other.
func oneRefused(p *place) {
	const plain = "hashedNames: false"
	p.job("resnet", plain)
	p.job("bert", plain)
	p.commit("Train resnet and bert")
	t := p.generate("refused")
	resnet, bert := t.of("resnet"), t.of("bert")
	resnet.synced()
	bert.synced()
	p.running(4)

	p.job("resnet", plain, "image: registry.example/resnet:2.0")
	p.job("bert", plain, "suspend: true")
	p.commit("Train resnet 2.0, suspend bert")
	resnet.refused("field is immutable")
	bert.synced()
	p.running(2)
	p.job("resnet", plain)
	p.commit("Go back to resnet 1.0")
	resnet.mended()
}

// broken: a file that cannot be read, as after a merge, stops one job until the commit that mends it.
func broken(p *place) {
	p.job("resnet")
	p.job("bert")
	p.commit("Train resnet and bert")
	t := p.generate("broken")
	resnet, bert := t.of("resnet"), t.of("bert")
	resnet.synced()
	bert.synced()
	spoilt := []string{"worker.yaml"}
	if p.Name() == "Argo CD" {
		spoilt = append(spoilt, "kustomization.yaml") // from which the ApplicationSet makes Applications
	}
	for _, name := range spoilt {
		file := filepath.Join(p.app.Repository.Dir, p.app.Path, "resnet", name)
		text, err := os.ReadFile(file)
		if err != nil {
			p.Fatal(err)
		}
		if err := os.WriteFile(file, append([]byte("<<<<<<< HEAD\n"), text...), 0o600); err != nil {
			p.Fatal(err)
		}
	}
	if err := p.app.Repository.Commit(p.Context(), "Merge"); err != nil {
		p.Fatal(err)
	}
	resnet.says(map[string]string{
		"Flux": "kustomize build failed", "Argo CD": "ComparisonError: Failed to load target state",
	}[p.Name()])
	bert.synced()
	if p.Name() == "Argo CD" {
		ctx, cancel := context.WithTimeout(p.Context(), 40*time.Second) // which ends: a broken set is never refreshed
		defer cancel()
		err := p.lab.Argo.Refresh(ctx, t.name)
		if err == nil || !strings.Contains(err.Error(), "unable to parse file") {
			p.Errorf("the ApplicationSet does not say that it cannot read a folder: %v", err)
		}
		p.applications("broken-", "broken-bert", "broken-resnet")
	}
	p.running(4)
	p.job("resnet", "suspend: true")
	p.commit("Mend it, and suspend resnet")
	resnet.mended()
	p.running(2)
}

// suspendedByHand: how long it stays so.
func suspendedByHand(p *place) {
	p.job("resnet")
	p.commit("Train resnet")
	resnet := p.generate("by-hand").of("resnet")
	resnet.synced()
	p.running(2)
	p.patchJob(`{"spec":{"suspend":true}}`)
	p.running(0)
	status := resnet.sync()
	if p.Name() == "Argo CD" {
		if status.Synced || status.Health != "Suspended" {
			p.Errorf("it is not seen to be suspended: %s", status)
		}
		p.running(0)
		p.commit("Say something elsewhere")
		resnet.synced()
	}
	p.running(2)
}

// mended has the reconciler look at the newest commit once, as it does by itself, and waits until the cluster is there.
func (p *place) mended() {
	p.Helper()
	if err := p.Ask(p.Context(), p.app); err != nil {
		p.Fatal(err)
	}
	p.eventually("the commit that mends it", func() error {
		status, err := p.Status(p.Context(), p.app)
		if err == nil && (!status.Synced || !strings.HasSuffix(status.Revision, p.app.Repository.Head)) {
			err = fmt.Errorf("%s is at %s: %s", p.app.Name, status.Revision, status)
		}
		return err
	})
}

// folderLeaves: a job whose folder is gone runs on, unless somebody said --on-removal delete, and keeps its data.
func folderLeaves(p *place) {
	p.job("resnet", volume)
	p.job("bert", volume)
	p.job("gpt", "suspend: true")
	p.commit("Train resnet and bert")
	t := p.generate("leaving")
	for _, job := range []string{"resnet", "bert", "gpt"} {
		t.of(job).synced()
	}
	p.running(4)
	resnet, bert := p.checkpoint("resnet-data"), p.checkpoint("bert-data")

	delete(p.jobs, "resnet")
	p.commit("Remove resnet")
	t.gone("resnet")
	p.running(4)
	p.kept(resnet)

	t.again("--on-removal", "delete")
	t.of("bert").synced()
	delete(p.jobs, "bert")
	p.commit("Remove bert")
	t.gone("bert")
	p.running(2) // those of resnet, which nobody applies any more
	p.kept(bert)
}

// gone waits until the Application of a job whose folder left git is gone. Of Flux a person deletes the Kustomization,
// which by itself deletes nothing.
func (t *tree) gone(job string) {
	t.Helper()
	if t.Name() == "Flux" {
		t.of(job).says("kustomization path not found")
		if err := t.Remove(t.Context(), gitops.App{Name: t.name + "-" + job}); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.look()
	if err := t.lab.Argo.Gone(t.Context(), t.name+"-"+job); err != nil {
		t.Fatal(err)
	}
}

// says has the reconciler look now, and waits until a user reads these words.
func (p *place) says(words string) {
	p.Helper()
	if err := p.Ask(p.Context(), p.app); err != nil {
		p.Fatal(err)
	}
	p.eventually(words, func() error {
		status, err := p.Status(p.Context(), p.app)
		if err == nil && (status.Synced || !strings.Contains(status.Message, words)) {
			err = fmt.Errorf("%s", status)
		}
		return err
	})
}
