package job

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/structural"
)

// Origin is what the loader knows of a job beside its fields. Rules and notes read it.
type Origin struct {
	At       structural.Position
	Input    string        // see Job.Input
	Place    func() string // in place of At
	Asked    AskedFor
	Machine  *Machine // nil where resources.machine names none that is known
	Cardless string   // why workers of a machine have no card of its fabric
	Released bool     // the rendezvous' image is the one of this release
	Levels   []Level  // of the Environment's topology
	Secrets  []string // notes of values that are secrets in plain text
	Policy   *policy.Policy
	Fence    *policy.Policy // of the Environment
}

// AskedFor is what an author's own file says, before an environment has a say where nothing else is written below.
type AskedFor struct {
	GPU       int64
	Compute   map[string]Compute // of the workers and of roles
	Companion bool               // settings of one
	Lifetime  bool               // after the end, other than for ever
	GitOps    bool               // either value, also by the environment
	OnDelete  map[int]bool       // of volumes that say it, also by the environment
	Grace     bool               // the author's own gracePeriod
	Fabric    bool               // network.fabric, also by the environment
	Replaced  []Replaced         // claims in whose place an environment has others
	Overrides []string           // notes about fields that the author's own podTemplate overrides
	Nodes     map[string]string  // labels that an environment without the machine asks of nodes with accelerators
}

// Volumes notes which of them say what becomes of them, after the environment's say.
func (a *AskedFor) Volumes(root *structural.Node) {
	a.OnDelete = map[int]bool{}
	if list := root.Below("spec", "storage"); list != nil {
		for i, item := range list.Items {
			a.OnDelete[i] = item.Field("onDelete") != nil
		}
	}
}

// DefaultProcesses is one for each accelerator: with fewer the rest would be paid for and idle. MXNet and JAX use all
// of a worker's in one process. With a Master it is the pods that are processes: the operator multiplies them by this,
// and they wait for as many, which only an author's own torchrun starts.
func (s *Spec) DefaultProcesses() int32 {
	if s.Resources.GPU < 1 || s.Framework == FrameworkMXNet || s.Framework == FrameworkJAX || s.Unlaunched() {
		return 1
	}
	if l := s.Launch(); s.Workers.Master && (l == nil || l.Program == "") {
		return 1
	}
	return int32(s.Resources.GPU)
}

// Input is a digest of what the author wrote: the job's metadata and spec as they reach tegen, and the spec of the
// Environment that is merged into them. Defaults, comments, the order of fields, and what tools write into metadata do
// not change it. Two renderings of one Input differ only where the programs differ that made them.
func (j *Job) Input() string { return j.Origin.Input }

// WithoutInput forgets the digest, for renderings that are only compared: two documents may mean the same.
func (j *Job) WithoutInput() *Job {
	j.Origin.Input = ""
	return j
}

// AddInput makes something else that the author wrote part of Input. Nothing leaves it as it is.
func (j *Job) AddInput(more ...string) {
	if len(more) > 0 {
		j.Origin.Input = Digest([]byte(j.Origin.Input + "\n" + strings.Join(more, "\n")))
	}
}

// Digest is a SHA-256 sum as sha256:hex.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Replaced is a claim of the author's in whose place an Environment mounts another one.
type Replaced struct {
	Volume   int
	Own, Now string
}

// Policy is what the objects of the job are checked against; nil if that is nothing.
func (j *Job) Policy() *policy.Policy { return j.Origin.Policy.With(j.Origin.Fence) }

// WithoutPolicy is for jobs whose objects are checked later, once others have changed them. The fence of their
// Environment stays.
func (j *Job) WithoutPolicy() *Job {
	j.Origin.Policy = nil
	return j
}

// Said is the part of an annotation that recreates objects.
func Said(key, value string) string {
	var options []string
	for option := range strings.SplitSeq(value, ",") {
		if option = strings.TrimSpace(option); names.Recreates(key, option) {
			options = append(options, option)
		}
	}
	return strings.Join(slices.Compact(options), ",")
}
