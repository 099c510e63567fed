package gitops

import "fmt"

// private: a repository that asks for a password is followed once the Secret of the documents is there.
func private(p *place) {
	p.job("resnet")
	p.commit("Train resnet")
	const password = "s3cret"
	p.lab.Git.Protect(p.app.Repository, password)
	secret, label, flags := "private-login", "", []string{"--secret-ref", "private-login"}
	namespace := "flux-system"
	if p.Name() == "Argo CD" {
		namespace, label, flags = "argocd", ", labels: {argocd.argoproj.io/secret-type: repository}", nil
	}
	if _, err := p.lab.Apply(p.Context(), fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: %s%s}
stringData: {type: git, url: %q, username: git, password: %s}
`, secret, namespace, label, p.app.Repository.URL, password)); err != nil {
		p.Fatal(err)
	}
	t := p.generate("private", flags...)
	t.of("resnet").synced()
	p.running(2)
}
