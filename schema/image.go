package schema

import "fmt"

// CheckImage returns what is wrong with an image that is named outside a job, by the rule for those in jobs.
func CheckImage(name string) error {
	image := jobSchema().Field("spec").Schema.Field("image").Schema
	if image.Allows(name) {
		return nil
	}
	return fmt.Errorf("must be %s, not %q", image.Words(), name)
}
