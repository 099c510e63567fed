package importer_test

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/importer"
	"github.com/tegen-dev/tegen/schema"
)

// TestServersBesideScript: servers whose arguments do not begin with the workers' script run their image's entrypoint.
func TestServersBesideScript(t *testing.T) {
	t.Parallel()
	const job = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j, namespace: ml}\nspec: " +
		"{framework: mxnet, image: 'a/b:1', script: {configMap: {name: c}}, workers: {replicas: 2}, servers: "
	for servers, want := range map[string]string{
		"{entrypoint: true, args: [serve, now]}": "entrypoint: true\n    args:\n    - serve\n    - now\n",
		"{args: [serve, now]}":                   "servers:\n    args:\n    - serve\n    - now\n",
	} {
		rendered := renders(t, []byte(job+servers+"}\n"))
		out := importer.Jobs([]schema.Source{{Name: "rendered.yaml", Data: []byte(rendered)}})
		if !strings.Contains(string(out.YAML), want) {
			t.Errorf("%s came back as\n%s", servers, out.YAML)
		}
	}
}
