package gitops

import (
	"bufio"
	"errors"
	"io"
	"path/filepath"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// generated has the Application or Kustomization behave as that which tegen gitops renders for these jobs, without what
// says where they are.
func (p *place) generated() {
	p.Helper()
	tree := filepath.Join(p.app.Repository.Dir, p.app.Path)
	for kind, args := range map[string][]string{"ApplicationSet": {"argocd"}, "Kustomization": {"flux"}} {
		args = append([]string{"gitops"}, append(args, tree, "--repo", "https://git.example/team/jobs", "--path",
			p.app.Path, "--revision", "main")...)
		rendered := command(p.T, p.tegen, args...)
		documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(rendered)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				p.Fatal(err)
			}
			var o struct {
				Kind string
				Spec map[string]any
			}
			if err := yaml.Unmarshal(document, &o); err != nil {
				p.Fatal(err)
			}
			if o.Kind != kind {
				continue
			}
			p.adopt(kind, o.Spec)
		}
	}
}

// adopt takes over what a generated spec says of how to sync.
func (p *place) adopt(kind string, spec map[string]any) {
	if kind == "Kustomization" {
		for _, where := range []string{"sourceRef", "path", "interval"} {
			delete(spec, where)
		}
		p.app.Options.Flux = spec
		return
	}
	template, _ := spec["template"].(map[string]any)
	spec, _ = template["spec"].(map[string]any)
	p.app.Options.Argo = map[string]any{
		"ignoreDifferences": spec["ignoreDifferences"], "syncPolicy": spec["syncPolicy"],
	}
}
