package definition

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tegen-dev/tegen/internal/quantity"
	"github.com/tegen-dev/tegen/schema/job"
)

// maxDuration keeps every number of seconds within the API's 32 bits.
const maxDuration = 10 * 365 * 24 * time.Hour

// Formats ask Go's own parsers, since a regular expression can only sketch a format. CUE says where None is allowed.
var Formats = map[string]func(text string) bool{
	"bytes": func(text string) bool {
		q, err := quantity.Parse(text)
		return text == job.None || err == nil && q.Value() >= 1<<20
	},
	"cpu": func(text string) bool {
		q, err := quantity.Parse(text)
		whole := resource.NewMilliQuantity(q.MilliValue(), resource.DecimalSI)
		return text == job.None || err == nil && q.MilliValue() >= 1 && q.Cmp(*whole) == 0
	},
	"duration": func(text string) bool {
		d, err := time.ParseDuration(text)
		return text == job.None || err == nil && d%time.Second == 0 && d <= maxDuration
	},
}
