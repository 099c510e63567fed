package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// None is an author's word for leaving out what has a default.
const None = "none"

// Kubernetes' names of what Amounts has.
const (
	ResourceCPU    = "cpu"
	ResourceMemory = "memory"
	ResourceDisk   = "ephemeral-storage"
)

// ResourceNames are all of them.
var ResourceNames = [...]string{ResourceCPU, ResourceMemory, ResourceDisk}

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

// Is says whether there is a quantity.
func (a *Amount) Is() bool { return !a.None && !a.Quantity.IsZero() }

// OrNil returns the quantity, nil where there is none.
func (a Amount) OrNil() *resource.Quantity {
	if !a.Is() {
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
	for _, name := range ResourceNames {
		f(name, a.of(name))
	}
}

// of is the amount of a resource.
func (a *Amounts) of(name string) *Amount {
	switch name {
	case ResourceCPU:
		return &a.CPU
	case ResourceMemory:
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
func (c *Compute) Requested() map[string]resource.Quantity { return But[string](c, c.Requests) }

// Limited is what the limits are, by Kubernetes' names of resources.
func (c *Compute) Limited() map[string]resource.Quantity { return But[string](c, c.Limits) }

// But is the amounts of both sides, with those of one side in their place.
func But[Name ~string](c *Compute, side *Amounts) map[Name]resource.Quantity {
	out := make(map[Name]resource.Quantity, len(ResourceNames))
	for _, name := range ResourceNames {
		if a := c.Chosen(side, name); a.Is() {
			out[Name(name)] = a.DeepCopy()
		}
	}
	return out
}

// Amount is one of what but returns, nil where there is none.
func (c *Compute) Amount(side *Amounts, name string) *resource.Quantity {
	return c.Chosen(side, name).OrNil()
}

// Chosen is the amount of one side if it says one, or else the one for both.
func (c *Compute) Chosen(side *Amounts, name string) *Amount {
	if side != nil {
		if a := side.of(name); a.None || !a.Quantity.IsZero() {
			return a
		}
	}
	return c.of(name)
}

// MemoryLimit is the limit of memory, nil where there is none.
func (c *Compute) MemoryLimit() *resource.Quantity { return c.Amount(c.Limits, ResourceMemory) }

// DiskLimit is the limit of local disk, nil where there is none.
func (c *Compute) DiskLimit() *resource.Quantity { return c.Amount(c.Limits, ResourceDisk) }

// Taken says in words how much is left of what these are, each less than they are: of a limit, or else of what is asked
// for.
func (c *Compute) Taken(left *Compute) (words []string) {
	limits, asked, isLimits, isAsked := c.Limited(), c.Requested(), left.Limited(), left.Requested()
	for _, name := range []string{ResourceCPU, ResourceMemory, ResourceDisk} {
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

// Lower keeps every amount at or below a limit. No limit is above every limit; nothing asked for is below.
func (c *Compute) Lower(limits Amounts) {
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

// ClaimOfAccelerators is what pods call the claim of the devices of resources.deviceClass. refusals.cue reserves it.
const ClaimOfAccelerators = "accelerators"

// Minor is the number of a minor version, 0 where none is said.
func (s *Spec) Minor() int {
	minor, err := strconv.Atoi(strings.TrimPrefix(s.KubernetesVersion, "1."))
	if err != nil {
		return 0
	}
	return minor
}

// ClaimsVersion is the newest version of resource.k8s.io that the cluster's release serves (kubernetes/api,
// resource/v1beta1, v1beta2 and v1: lifecycle-gen:introduced).
func (s *Spec) ClaimsVersion() string {
	switch minor := s.Minor(); {
	case minor == 0 || minor >= 34:
		return "v1"
	case minor == 33:
		return "v1beta2"
	}
	return "v1beta1"
}

// Provisioner is who brings a cluster's nodes, and how it tells that one may be taken back.
type Provisioner struct {
	Name       string
	Key, Value string        // label of spot nodes
	Lasting    string        // its value on nodes that stay, "" where spot nodes alone have the label
	tainted    bool          // with the same key and value, effect NoSchedule
	Notice     time.Duration // from the word that a node goes to its end
	Evicts     bool          // pods of a node that goes are evicted, by the Eviction API
	AsksPods   bool          // but for those with karpenter.sh/do-not-disrupt
}

// Provisioners has a row for each, as placement.provisioner has them.
//
// Sources: karpenter.sh, well-known labels; Amazon EKS, managed node groups, and EC2's interruption notice of two
// minutes; Google Kubernetes Engine, Spot VMs: of the 30 seconds pods have the first 15; Azure Kubernetes Service, spot
// node pools. Karpenter's IsEvictable (pkg/utils/pod/scheduling.go) leaves out pods that are not to be disrupted, also
// on a node that is interrupted.
var Provisioners = []Provisioner{
	{"karpenter", "karpenter.sh/capacity-type", "spot", "on-demand", false, 2 * time.Minute, true, true},
	{"eks", "eks.amazonaws.com/capacityType", "SPOT", "ON_DEMAND", false, 2 * time.Minute, true, false},
	{"gke", "cloud.google.com/gke-spot", "true", "", true, 15 * time.Second, false, false},
	{"aks", "kubernetes.azure.com/scalesetpriority", "spot", "", true, 30 * time.Second, false, false},
}

// Toleration is what pods need beside the label, nil where spot nodes have no taint.
func (p Provisioner) Toleration() *Toleration {
	if !p.tainted {
		return nil
	}
	return &Toleration{Key: p.Key, Operator: "Equal", Value: p.Value, Effect: "NoSchedule"}
}

// SpotProvisioner is the row of the placement; nil where it names none.
func (p *Placement) SpotProvisioner() *Provisioner {
	i := slices.IndexFunc(Provisioners, func(row Provisioner) bool { return row.Name == p.Provisioner })
	if i < 0 {
		return nil
	}
	return &Provisioners[i]
}

// OnSpot puts workers on nodes that may be taken back, in the words of who brings them.
func (p *Placement) OnSpot() {
	row := p.SpotProvisioner()
	if !p.Spot || row == nil {
		return
	}
	if _, said := p.NodeSelector[row.Key]; !said {
		p.NodeSelector = maps.Clone(p.NodeSelector)
		if p.NodeSelector == nil {
			p.NodeSelector = map[string]string{}
		}
		p.NodeSelector[row.Key] = row.Value
	}
	if t := row.Toleration(); t != nil && !slices.ContainsFunc(p.Tolerations, func(own Toleration) bool {
		return own.Key == "" || own.Key == t.Key
	}) {
		p.Tolerations = append(slices.Clip(p.Tolerations), *t)
	}
}

// BesideOnSpot are the roles and groups beside the workers whose pods may get to spot nodes, and say nothing of it.
func (s *Spec) BesideOnSpot(row *Provisioner) (others []string) {
	for _, name := range s.OtherRoles() {
		if _, said := s.Role(name).NodeSelector[row.Key]; s.Has(name) && !row.tainted && !said {
			others = append(others, name)
		}
	}
	return others
}

// PlacesOf names where the nodes of roles are chosen.
func (s *Spec) PlacesOf(roles []string) string {
	at := make([]string, len(roles))
	for i, name := range roles {
		at[i] = s.PlaceOf(name)
	}
	return strings.Join(at, ", ")
}
