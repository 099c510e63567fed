package schema

import (
	"fmt"

	"github.com/tegen-dev/tegen/schema/definition"
)

// CheckImage returns what is wrong with an image that is named outside a job, by the rule for those in jobs.
func CheckImage(name string) error {
	image := definition.Job().Field("spec").Schema.Field("image").Schema
	if image.Allows(name) {
		return nil
	}
	return fmt.Errorf("must be %s, not %q", image.Words(), name)
}
