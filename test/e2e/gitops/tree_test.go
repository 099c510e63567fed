package gitops

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tegen-dev/tegen/test/gitops"
)

// treeCases apply what 'tegen gitops' renders for a tree as it is.
var treeCases = []testCase{
	{row: "one job refused", run: oneRefused},
	{row: "a folder leaves git", run: folderLeaves},
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
	args := slices.Concat([]string{
		"gitops", controller, filepath.Join(t.app.Repository.Dir, t.app.Path),
		"--repo", t.app.Repository.URL, "--path", t.app.Path, "--name", t.name,
	}, flags)
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
	p.eventually("the commit that takes the change back", func() error {
		if status := resnet.sync(); !status.Synced {
			return fmt.Errorf("%s", status)
		}
		return nil
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
