package diff

import (
	"strings"

	"github.com/tegen-dev/tegen/internal/apis"
)

// isDefault says whether a value is what the API server makes of a field that is not there.
func (o *object) isDefault(path steps, value any) bool {
	kind := o.Kind
	if o.group != "" {
		kind += "." + o.group
	}
	of := apis.Defaults[kind]
	if of == nil {
		return false
	}
	want, ok := of[path.pattern()]
	return ok && want == canonical(value)
}

// pattern is the path with [] for each item of a list.
func (s steps) pattern() string {
	var b strings.Builder
	for i, step := range s {
		if strings.HasPrefix(step, "[") {
			b.WriteString("[]")
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}
