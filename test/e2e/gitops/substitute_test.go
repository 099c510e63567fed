package gitops

import "strings"

// substituted: the ${variables} of a script stay the shell's, also where all Kustomizations of a cluster are given
// variables to put in their place.
func substituted(p *place) {
	const script = `exec python train.py --rank "${RANK}" --cluster "${cluster}"`
	variables := map[string]any{"substitute": map[string]any{"cluster": "eks"}}
	p.job("resnet", `command: [sh, -c, '`+script+`']`)
	p.commit("Train resnet")
	p.app.Options.Flux = map[string]any{"postBuild": variables}
	status := p.follow()
	unset := strings.Contains(status.Message, `variable not set (strict mode): "RANK"`)
	if p.Name() == "Flux" && (status.Synced || !unset) {
		p.Errorf("Flux does not say that it has no variable RANK: %s", status)
	}
	p.generated()
	p.app.Options.Flux["postBuild"] = variables
	if err := p.Follow(p.Context(), p.app); err != nil {
		p.Fatal(err)
	}
	p.synced()
	p.running(2)
	container := p.theJob().Spec.Template.Spec.Containers[0]
	if got := strings.Join(append(container.Command, container.Args...), " "); !strings.Contains(got, script) {
		p.Errorf("the script is %q, want %q in it", got, script)
	}
}
