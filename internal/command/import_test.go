package command

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/apis"
)

// TestImportHelpKinds: the help of import names every kind of job that tegen renders.
func TestImportHelpKinds(t *testing.T) {
	help, _, _ := tegen("", "import", "--help")
	for _, k := range apis.Kinds {
		if strings.Contains(k.Kind, "Job") && !strings.Contains(help, k.Kind+"s") {
			t.Errorf("the help of import does not name %s", k.GroupKind())
		}
	}
}
