package schema

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// None is an author's word for leaving out what has a default.
const None = "none"

// Kubernetes' names of what Amounts has.
const (
	resourceCPU    = "cpu"
	resourceMemory = "memory"
	resourceDisk   = "ephemeral-storage"
)

var resourceNames = [...]string{resourceCPU, resourceMemory, resourceDisk}

// Amount is a quantity, or none. Its zero value is that of an amount of which nobody said anything.
type Amount struct {
	resource.Quantity
	None bool
}

// UnmarshalJSON reads a quantity or the word none.
func (a *Amount) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte(`"`+None+`"`)) {
		*a = Amount{None: true}
		return nil
	}
	a.None = false
	return a.Quantity.UnmarshalJSON(text)
}

// MarshalJSON writes what UnmarshalJSON reads.
func (a Amount) MarshalJSON() ([]byte, error) {
	if a.None {
		return json.Marshal(None)
	}
	return a.Quantity.MarshalJSON()
}

// IsZero says whether nobody said anything.
func (a Amount) IsZero() bool { return !a.None && a.Quantity.IsZero() }

// is says whether there is a quantity.
func (a *Amount) is() bool { return !a.None && !a.Quantity.IsZero() }

// OrNil returns the quantity, nil where there is none.
func (a Amount) OrNil() *resource.Quantity {
	if !a.is() {
		return nil
	}
	q := a.DeepCopy()
	return &q
}

// Amounts mirrors #Amounts.
type Amounts struct {
	CPU              Amount `json:"cpu,omitzero"`
	Memory           Amount `json:"memory,omitzero"`
	EphemeralStorage Amount `json:"ephemeralStorage,omitzero"`
}

// each calls f for every amount with Kubernetes' name of the resource; for none where there are none.
func (a *Amounts) each(f func(name string, amount *Amount)) {
	if a == nil {
		return
	}
	for _, name := range resourceNames {
		f(name, a.of(name))
	}
}

// of is the amount of a resource.
func (a *Amounts) of(name string) *Amount {
	switch name {
	case resourceCPU:
		return &a.CPU
	case resourceMemory:
		return &a.Memory
	}
	return &a.EphemeralStorage
}

// Compute mirrors #Compute: what a container asks for, and what it is limited to. Few say one of the two apart, and a
// job has many of these.
type Compute struct {
	Amounts
	Requests *Amounts `json:"requests,omitempty"`
	Limits   *Amounts `json:"limits,omitempty"`
}

// Requested is what is asked for, by Kubernetes' names of resources.
func (c *Compute) Requested() map[string]resource.Quantity { return but[string](c, c.Requests) }

// Limited is what the limits are, by Kubernetes' names of resources.
func (c *Compute) Limited() map[string]resource.Quantity { return but[string](c, c.Limits) }

// Asked is what is asked for and what the limits are.
func Asked[Name ~string](c *Compute) (requests, limits map[Name]resource.Quantity) {
	return but[Name](c, c.Requests), but[Name](c, c.Limits)
}

// but is the amounts of both sides, with those of one side in their place.
func but[Name ~string](c *Compute, side *Amounts) map[Name]resource.Quantity {
	out := make(map[Name]resource.Quantity, len(resourceNames))
	for _, name := range resourceNames {
		if a := c.chosen(side, name); a.is() {
			out[Name(name)] = a.DeepCopy()
		}
	}
	return out
}

// amount is one of what but returns, nil where there is none.
func (c *Compute) amount(side *Amounts, name string) *resource.Quantity {
	return c.chosen(side, name).OrNil()
}

func (c *Compute) chosen(side *Amounts, name string) *Amount {
	if side != nil {
		if a := side.of(name); a.None || !a.Quantity.IsZero() {
			return a
		}
	}
	return c.of(name)
}

// MemoryLimit is the limit of memory, nil where there is none.
func (c *Compute) MemoryLimit() *resource.Quantity { return c.amount(c.Limits, resourceMemory) }

// DiskLimit is the limit of local disk, nil where there is none.
func (c *Compute) DiskLimit() *resource.Quantity { return c.amount(c.Limits, resourceDisk) }

// taken says in words how much is left of what these are, each less than they are: of a limit, or else of what is asked
// for.
func (c *Compute) taken(left *Compute) (words []string) {
	limits, asked, isLimits, isAsked := c.Limited(), c.Requested(), left.Limited(), left.Requested()
	for _, name := range []string{resourceCPU, resourceMemory, resourceDisk} {
		limit, limited := limits[name]
		request, requested := asked[name]
		isLimit, bound := isLimits[name]
		isRequest := isAsked[name]
		switch {
		case limited && bound && limit.Cmp(isLimit) > 0:
			words = append(words, fmt.Sprintf("%s %s of %s", name, &isLimit, &limit))
		case !limited && bound && c.unbound(name):
			words = append(words, fmt.Sprintf("%s %s of no limit", name, &isLimit))
		case requested && !isRequest.IsZero() && request.Cmp(isRequest) > 0: // or an override says none
			words = append(words, fmt.Sprintf("%s %s of the %s asked for", name, &isRequest, &request))
		}
	}
	return words
}

// unbound says whether somebody wrote that there is no limit.
func (c *Compute) unbound(name string) (none bool) {
	for _, a := range []*Amounts{&c.Amounts, c.Limits} {
		a.each(func(own string, amount *Amount) { none = none || own == name && amount.None })
	}
	return none
}

// lower keeps every amount at or below a limit. No limit is above every limit; nothing asked for is below.
func (c *Compute) lower(limits Amounts) {
	lowerIn(&c.Amounts, limits, true)
	lowerIn(c.Requests, limits, false)
	lowerIn(c.Limits, limits, true)
}

func lowerIn(a *Amounts, limits Amounts, bound bool) {
	caps := map[string]*resource.Quantity{}
	limits.each(func(name string, limit *Amount) { caps[name] = limit.OrNil() })
	a.each(func(name string, own *Amount) {
		if limit := caps[name]; limit != nil && (own.None && bound || !own.None && own.Cmp(*limit) > 0) {
			*own = Amount{Quantity: *limit}
		}
	})
}

// Lifetime is how long something is kept; none is for ever.
type Lifetime struct {
	metav1.Duration
	None bool
}

// UnmarshalJSON reads a duration or the word none.
func (l *Lifetime) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte(`"`+None+`"`)) {
		*l = Lifetime{None: true}
		return nil
	}
	l.None = false
	return l.Duration.UnmarshalJSON(text)
}

// Restarts is how many failed pods a job survives; none is as many as there are.
type Restarts struct {
	Limit int32
	None  bool
}

// UnmarshalJSON reads a number or the word none.
func (r *Restarts) UnmarshalJSON(text []byte) error {
	*r = Restarts{None: bytes.Equal(text, []byte(`"`+None+`"`))}
	if r.None {
		return nil
	}
	return json.Unmarshal(text, &r.Limit)
}

// OrNil returns the number, nil where there is none.
func (r Restarts) OrNil() *int32 {
	if r.None {
		return nil
	}
	return &r.Limit
}

// Uncounted is the word for restarts of all pods after failures that do not count, and after no others.
const Uncounted = "uncounted"

// RestartAll is how many counted failures recreate all pods. It is 0 for the word uncounted.
type RestartAll int32

// UnmarshalJSON reads a number or the word uncounted.
func (r *RestartAll) UnmarshalJSON(text []byte) error {
	if *r = 0; bytes.Equal(text, []byte(`"`+Uncounted+`"`)) {
		return nil
	}
	return json.Unmarshal(text, (*int32)(r))
}

// MarshalJSON writes what UnmarshalJSON reads.
func (l Lifetime) MarshalJSON() ([]byte, error) {
	if l.None {
		return json.Marshal(None)
	}
	return l.Duration.MarshalJSON()
}

// imageUser is an author's word for the user of the image.
const imageUser = "image"

// ID is a user's or group's number. Without one it is the image's, or of volumes nobody's.
type ID struct{ Number *int64 }

// UnmarshalJSON reads a number, or a word in its place.
func (id *ID) UnmarshalJSON(text []byte) error {
	id.Number = nil
	if bytes.HasPrefix(text, []byte(`"`)) {
		return nil
	}
	return json.Unmarshal(text, &id.Number)
}

// Is says whether the id is this number.
func (id ID) Is(number int64) bool { return id.Number != nil && *id.Number == number }
