package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/note"
)

// TestReleasedImage: a release has an image for the jobs that ask for tegen-rendezvous and name none, says so, and lets
// an Environment rewrite it; what else a job is does not depend on the build.
func TestReleasedImage(t *testing.T) {
	const image = "ghcr.io/tegen-dev/tegen-rendezvous:v1.2.3@sha256:" +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	const head = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\nspec:\n" +
		"  image: registry.example/a:1\n  command: [python, train.py]\n  workers: {replicas: 2}\n" +
		"  resources: {cpu: 1, memory: 1Gi}\n"
	const mirror = "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: here}\nspec:\n" +
		"  images: [{from: ghcr.io/, to: mirror.example/}]\n"
	t.Cleanup(func() { names.ReleasedRendezvous = "" })
	for what, c := range map[string]struct {
		text, env, want, store string
	}{
		"asks for the companion": {text: "  rendezvous: {store: companion}\n", want: image, store: job.StoreCompanion},
		"asks for proxies": {
			text: "  rendezvous: {proxy: true, store: etcd}\n", want: image, store: job.StoreEtcd,
		},
		"asks for neither": {store: job.StoreWorker},
		"names an image": {
			text: "  rendezvous: {store: companion}\n  images: {rendezvous: registry.example/r:1}\n",
			want: "registry.example/r:1", store: job.StoreCompanion,
		},
		"has a mirror": {
			text: "  rendezvous: {store: companion}\n", env: mirror,
			want: strings.Replace(image, "ghcr.io", "mirror.example", 1), store: job.StoreCompanion,
		},
	} {
		t.Run(what, func(t *testing.T) {
			texts := []string{head + c.text}
			if c.env != "" {
				texts = append(texts, c.env)
			}
			names.ReleasedRendezvous = image
			jobs, errs := load(t, texts...)
			if errs != nil {
				t.Fatal(errs)
			}
			s := &jobs[0].Spec
			if s.Images.Rendezvous != c.want || s.Rendezvous.Store != c.store {
				t.Errorf("the image is %q and the store %s, want %q and %s", s.Images.Rendezvous, s.Rendezvous.Store,
					c.want, c.store)
			}
			said := strings.Contains(strings.Join(note.Of(jobs[0]), "\n"), "spec.images.rendezvous: none is named")
			if released := strings.Contains(c.want, "v1.2.3@"); said != released {
				t.Errorf("the notes are %q", note.Of(jobs[0]))
			}

			names.ReleasedRendezvous = ""
			_, errs = load(t, texts...)
			refused := strings.Contains(errs.Error(), "make push REGISTRY=")
			if refused != strings.Contains(c.want, "@") {
				t.Errorf("a build that is no release says: %v", errs)
			}
		})
	}
}
