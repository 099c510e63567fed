package gitops

import (
	"fmt"
	"path/filepath"
	"strings"
)

// artifact: a tree that 'tegen publish' pushed to a registry is followed as one in git is. What is published twice is
// one artifact, and writes nothing.
func artifact(p *place) {
	p.job("resnet", volume)
	p.commit("Train resnet")
	first := p.publish()
	t := p.fromRegistry("artifact")
	t.of("resnet").synced()
	p.running(2)

	if again := p.publish(); again != first {
		p.Errorf("the same tree was published as %s, then as %s", first, again)
	}
	before := p.changes()
	t.of("resnet").synced()
	if after := p.changes(); len(after) > len(before) {
		p.Errorf("nothing changed, and %s wrote %+v", p.Name(), after[len(before):])
	}

	p.job("resnet", volume, "suspend: true")
	p.commit("Suspend resnet")
	if next := p.publish(); next == first {
		p.Errorf("another tree has the digest of the first, %s", next)
	}
	t.of("resnet").synced()
	p.running(0)
}

// registry is the repository in the lab's registry.
func (p *place) registry() string {
	return strings.TrimPrefix(p.lab.OCI.URL, "http://") + "/" + p.namespace
}

// publish pushes what was committed, and returns the digest, which a synced cluster is then at.
func (p *place) publish() string {
	p.Helper()
	out := command(p.T, p.tegen, "publish", "oci://"+p.registry()+":eks",
		filepath.Join(p.app.Repository.Dir, p.app.Path), "--plain-http", "--source", "https://git.example/team/jobs")
	_, digest, found := strings.Cut(strings.TrimSpace(out), "@")
	if !found {
		p.Fatalf("publish printed no digest: %s", out)
	}
	p.app.Artifact = digest
	return digest
}

// fromRegistry is generate for an artifact, and for a registry without TLS.
func (p *place) fromRegistry(name string) *tree {
	p.Helper()
	if p.Name() == "Argo CD" {
		if _, err := p.lab.Apply(p.Context(), fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: argocd, labels: {argocd.argoproj.io/secret-type: repository}}
stringData: {type: oci, url: "oci://%s", insecureOCIForceHttp: "true"}
`, name, p.registry())); err != nil {
			p.Fatal(err)
		}
	}
	return p.generate(name, "--repo", "oci://"+p.registry(), "--path", ".", "--revision", "eks")
}
