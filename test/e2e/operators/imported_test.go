package operators

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/importer"
	tegen "github.com/tegen-dev/tegen/schema"
)

// imported gives what the controller left of some objects, among the others of their job, to tegen import. Whatever it
// says must be true, so it says nothing: the objects are tegen's own.
func (p *place) imported(objects []*unstructured.Unstructured, left ...*unstructured.Unstructured) {
	p.Helper()
	var text strings.Builder
	for _, o := range objects {
		if slices.Contains(left, o) {
			o = p.live(o)
		}
		out, err := yaml.Marshal(o.Object)
		if err != nil {
			p.Fatal(err)
		}
		text.WriteString("---\n" + string(out))
	}
	result := importer.Jobs([]tegen.Source{{Name: "live.yaml", Data: []byte(text.String())}})
	for _, n := range result.Notes {
		p.Errorf("import of what the controller left: %s", n)
	}
	if len(result.Notes) > 0 {
		p.Logf("%s\n%s", text.String(), result.YAML)
	}
}
