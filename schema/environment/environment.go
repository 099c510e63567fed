// Package environment reads an overlay's Environment, and changes jobs as it says.
package environment

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tegen-dev/tegen/internal/policy"
	"github.com/tegen-dev/tegen/internal/quantity"
	"github.com/tegen-dev/tegen/internal/structural"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
	"github.com/tegen-dev/tegen/schema/rule"
)

// Environment mirrors #Environment but for its defaults and overrides, which are merged into a job's tree before the
// job is decoded, so that positions survive.
type Environment struct {
	Metadata job.Metadata `json:"metadata"`
	Spec     Spec         `json:"spec"`

	Root     *structural.Node
	Written  []byte                       // its spec, see Job.Input
	Fence    *policy.Policy               // nil without one
	Invalid  part.Set                     // of jobs, that it is wrong about
	Reported map[structural.Position]bool // where its own mistakes are: merged into jobs, they are not theirs
}

// Spec mirrors #Environment.spec.
type Spec struct {
	Namespace   string         `json:"namespace,omitempty"`
	Fence       bool           `json:"fence,omitempty"`
	Env         []job.Env      `json:"env,omitempty"`
	Images      []ImageRewrite `json:"images,omitempty"`
	Caps        Caps           `json:"caps"`
	Anywhere    bool           `json:"anywhere,omitempty"`
	Machines    []job.Machine  `json:"machines,omitempty"`
	Accelerator *Accelerator   `json:"accelerator,omitempty"`
	Topology    []job.Level    `json:"topology,omitempty"`
	OnDelete    string         `json:"onDelete,omitempty"`
	Storage     *Storage       `json:"storage,omitempty"`
}

// ImageRewrite replaces the start of an image's name.
type ImageRewrite struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Caps are the most that a worker may ask for; nil is no limit.
type Caps struct {
	CPU              *resource.Quantity `json:"cpu,omitempty"`
	Memory           *resource.Quantity `json:"memory,omitempty"`
	Shm              *resource.Quantity `json:"shm,omitempty"`
	EphemeralStorage *resource.Quantity `json:"ephemeralStorage,omitempty"`
}

// Accelerator is what workers with accelerators need to land on their nodes.
type Accelerator struct {
	RuntimeClass string            `json:"runtimeClass,omitempty"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []job.Toleration  `json:"tolerations,omitempty"`
	Each         Each              `json:"each,omitzero"`
}

// Each is what comes with each accelerator. It is merged into a job's tree, like defaults.
type Each struct {
	job.Amounts
	Shm job.Amount `json:"shm,omitzero"`
}

// Storage replaces the sources of volumes.
type Storage struct {
	Replace string `json:"replace"` // unnamed or all
	job.VolumeSource
}

// MergeInto fills in what a job leaves out and puts the overrides over what it says.
func (env *Environment) MergeInto(job *structural.Node, s *structural.Schema) {
	metadata := job.Field("metadata")
	if ns := env.Root.Field("spec").Field("namespace"); ns != nil && metadata != nil && metadata.Kind == yamldoc.Map &&
		metadata.Field("namespace") == nil {
		metadata.Add("namespace", ns.At, ns)
	}
	spec, specSchema := job.Field("spec"), s.Field("spec").Schema
	defaults, overrides := env.Root.Field("spec").Field("defaults"), env.Root.Field("spec").Field("overrides")
	foreign, lacking := passedOver(overrides, spec, defaults)
	env.equip(spec, overrides, defaults) // before defaults, which are those of jobs without accelerators too
	if defaults != nil {
		structural.Merge(spec, defaults.Clear(lacking).MarkMerged(), specSchema, false)
	}
	if overrides != nil {
		structural.Merge(spec, overrides.Clear(foreign).MarkMerged(), specSchema, true)
	}
}

// equip gives workers what comes with each of their accelerators, where the job itself does not say it.
func (env *Environment) equip(spec, overrides, defaults *structural.Node) {
	each, count := env.Root.Below("spec", "accelerator", "each"), acceleratorsOf(overrides, spec, defaults)
	if each == nil || each.Kind != yamldoc.Map {
		return
	}
	equip(spec, each, count)
	for _, group := range rule.GroupItems(spec) {
		if gpu := group.Below("resources", "gpu"); gpu != nil && !env.takesAccelerators() {
			count, _ = strconv.Atoi(gpu.Text)
			equip(group, each, count)
		}
	}
}

// equip adds to the resources of the workers or a group what comes with a number of accelerators.
func equip(pods, each *structural.Node, count int) {
	if count < 1 {
		return
	}
	resources := sectionOf(pods, "resources", each.At)
	for _, e := range each.Fields {
		if resources.Kind != yamldoc.Map || resources.Entry(e.Key) != nil ||
			pods.Field("name") != nil && e.Key == "shm" { // a group has the job's
			continue
		}
		total := &structural.Node{Kind: yamldoc.String, Text: job.None, At: e.Value.At}
		if e.Value.Text != job.None {
			q, err := quantity.Parse(e.Value.Text)
			if err != nil { // reported of the environment already
				continue
			}
			q.Mul(int64(count))
			total.Text = q.String()
		}
		resources.Add(e.Key, e.At, total.MarkMerged())
	}
}

// acceleratorsOf counts those of a worker by the first tree that says it.
func acceleratorsOf(trees ...*structural.Node) int {
	for _, n := range trees {
		if gpu := n.Below("resources", "gpu"); gpu != nil {
			count, _ := strconv.Atoi(gpu.Text) // what is no number is refused where it stands
			return count
		}
	}
	return 0
}

// sectionOf is a section of a spec, made where nobody has written it.
func sectionOf(spec *structural.Node, name string, at structural.Position) *structural.Node {
	if spec.Entry(name) == nil {
		spec.Add(name, at, (&structural.Node{Kind: yamldoc.Map, At: at}).MarkMerged())
	}
	return spec.Field(name)
}

// Apply changes what is a function of the job's own value: images, caps, sources, and what accelerators need.
func (env *Environment) Apply(j *job.Job) {
	spec := &j.Spec
	j.Origin.Levels = env.Spec.Topology
	for _, e := range env.Spec.Env {
		if !slices.ContainsFunc(spec.Env, func(own job.Env) bool { return own.Name == e.Name }) {
			spec.Env = append(spec.Env, e)
		}
	}
	for _, image := range allImages(spec) {
		*image = env.Rewrite(*image)
	}
	if p := &spec.Workers.Processes; spec.Resources.GPU == 0 && j.Origin.Asked.GPU > 0 &&
		(p.StrVal == "auto" || p.StrVal == "gpu") {
		*p = intstr.FromInt32(1) // what it counted is gone, and torchrun would count the machine's cores instead
	}
	env.applyToGroups(spec)
	env.Spec.Caps.apply(spec)
	if env.Spec.Anywhere {
		if m := spec.Metrics; m != nil {
			*m = job.Metrics{Port: m.Port} // no Prometheus is there to ask
		}
		// what Volcano's own Job has by itself stays
		spec.Placement, spec.Gang, spec.ManagedBy = job.Placement{}, nil, ""
		for _, pods := range spec.Roles.All() {
			pods.NodeSelector, pods.Tolerations = nil, nil
		}
	}
	if a := env.Spec.Accelerator; a != nil && spec.Resources.GPU > 0 {
		a.Apply(&spec.Placement)
		if m := j.Origin.Machine; m != nil && !slices.ContainsFunc(env.Spec.Machines, func(own job.Machine) bool {
			return own.Name == m.Name
		}) {
			j.Origin.Asked.Nodes = a.NodeSelector
		}
	}
	if env.Spec.OnDelete != "" {
		for i := range spec.Storage {
			if !j.Origin.Asked.OnDelete[i] {
				spec.Storage[i].OnDelete = env.Spec.OnDelete
			}
		}
	}
	if env.Spec.Storage != nil {
		for i := range spec.Storage {
			v := &spec.Storage[i]
			own := v.Claim
			env.Spec.Storage.apply(v, j)
			if now := v.ClaimName(j); own != "" && now != own {
				j.Origin.Asked.Replaced = append(j.Origin.Asked.Replaced, job.Replaced{Volume: i, Own: own, Now: now})
			}
		}
		for _, own := range []*job.EtcdStorage{spec.Rendezvous.Etcd.Storage, spec.Rendezvous.Companion.Storage} {
			if own != nil {
				env.Spec.Storage.applyClass(own)
			}
		}
	}
}

// apply lowers what the pods of a job ask for.
func (c *Caps) apply(spec *job.Spec) {
	limits := job.Amounts{
		CPU: c.amount(c.CPU), Memory: c.amount(c.Memory), EphemeralStorage: c.amount(c.EphemeralStorage),
	}
	spec.Resources.Lower(limits)
	for i := range spec.Groups {
		spec.Groups[i].Resources.Lower(limits)
	}
	for _, row := range job.RoleTable {
		if row.Capped {
			row.Settings(&spec.Roles).Resources.Lower(limits)
		}
	}
	for i := range spec.Sidecars {
		spec.Sidecars[i].Resources.Lower(limits)
	}
	Lower(&spec.Resources.Shm.Quantity, c.Shm)
	Lower(&spec.Resources.Tmp.Quantity, c.EphemeralStorage)
	for i := range spec.Storage {
		if e := spec.Storage[i].EmptyDir; e != nil && e.Size != nil {
			limit := c.EphemeralStorage
			if e.Medium != "" {
				limit = c.Shm
			}
			Lower(e.Size, limit)
		}
	}
}

func (c *Caps) amount(limit *resource.Quantity) job.Amount {
	if limit == nil {
		return job.Amount{}
	}
	return job.Amount{Quantity: *limit}
}

// allImages are the images that a job names.
func allImages(s *job.Spec) []*string {
	all := []*string{
		&s.Image, &s.Images.Etcd, &s.Images.EtcdV2, &s.Images.Fetch, &s.Images.AWS, &s.Images.Git,
		&s.Images.Kubectl, &s.Images.Rendezvous,
	}
	if s.Code != nil && s.Code.Image != "" {
		all = append(all, &s.Code.Image)
	}
	for i := range s.Groups {
		all = append(all, &s.Groups[i].Image)
	}
	for _, row := range job.RoleTable {
		if row.Own != nil {
			all = append(all, &row.Own(&s.Roles).Image)
		}
	}
	for i := range s.Sidecars {
		all = append(all, &s.Sidecars[i].Image)
	}
	return all
}

// Rewrite returns an image's name here. A nil Environment changes none.
func (env *Environment) Rewrite(image string) string {
	if env == nil {
		return image
	}
	best := ImageRewrite{}
	for _, r := range env.Spec.Images {
		if strings.HasPrefix(image, r.From) && len(r.From) > len(best.From) {
			best = r
		}
	}
	if best.From == "" {
		return image
	}
	return best.To + strings.TrimPrefix(image, best.From)
}

// CheckImages holds what rewrites made of a job's images against the schema, since they may end in no image at all.
func (env *Environment) CheckImages(j *job.Job, s *structural.Schema, invalid part.Set) (errs structural.Errors) {
	if len(env.Spec.Images) == 0 || invalid.Touch("image") || invalid.Touch("images") || invalid.Touch("roles") ||
		invalid.Touch("groups") || invalid.Touch("sidecars") {
		return nil
	}
	image := s.Field("spec").Schema.Field("image").Schema
	for _, name := range allImages(&j.Spec) {
		if *name != "" && !image.Allows(*name) {
			errs = append(errs,
				env.Root.Errorf("spec.images", "format", "make %q of an image of job %q: must be %s", *name,
					j.Metadata.Name, image.Words()))
		}
	}
	return errs
}

// Lower sets a quantity to a limit that it is above.
func Lower(q *resource.Quantity, limit *resource.Quantity) {
	if limit != nil && q.Cmp(*limit) > 0 {
		*q = limit.DeepCopy()
	}
}

// Apply changes a placement as pods with accelerators need it.
func (a *Accelerator) Apply(p *job.Placement) {
	if p.RuntimeClass == "" {
		p.RuntimeClass = a.RuntimeClass
	}
	selector := make(map[string]string, len(a.NodeSelector)+len(p.NodeSelector))
	for k, v := range a.NodeSelector {
		selector[k] = v
	}
	for k, v := range p.NodeSelector { // the job knows better which accelerator it needs
		selector[k] = v
	}
	p.NodeSelector = selector
	p.Tolerations = append(slices.Clone(p.Tolerations), a.Tolerations...)
}

// apply moves a volume to where this environment keeps volumes. A directory or export that holds many of them gets a
// sub-directory for each claim, so that jobs which share a claim share its directory.
func (s *Storage) apply(v *job.Storage, j *job.Job) {
	unnamed := v.VolumeSource == (job.VolumeSource{}) || v.Dynamic != nil && v.Dynamic.StorageClass == ""
	if v.EmptyDir != nil || s.Replace == "unnamed" && !unnamed {
		return
	}
	shared := v.ClaimName(j)
	claim := shared
	if v.Claim != "" { // the claim is nobody's to render twice: each job has one of its own
		claim = j.Metadata.Name + "-" + v.Name
	}
	below := func(dir string) string {
		return path.Join(dir, j.Metadata.Namespace, shared)
	}
	to := s.VolumeSource
	switch {
	case to.Dynamic != nil:
		d := *to.Dynamic
		d.Claim, to.Dynamic = claim, &d
	case to.EFS != nil:
		e := *to.EFS
		e.Claim, to.EFS = claim, &e
	case to.FSx != nil:
		f := *to.FSx
		f.Claim, to.FSx = claim, &f
	case to.NFS != nil:
		n := *to.NFS
		n.Claim, n.Path, to.NFS = claim, below(n.Path), &n
	case to.HostPath != nil:
		h := *to.HostPath
		h.Claim, h.Path, to.HostPath = claim, below(h.Path), &h
	}
	v.VolumeSource = to
}

// applyClass gives the volume of one pod's own data the class of this environment's volumes. Where those are no
// class's, it is the cluster's default: no file system that many pods share is one for a database.
func (s *Storage) applyClass(v *job.EtcdStorage) {
	if s.Replace == "unnamed" && v.StorageClass != "" {
		return
	}
	v.StorageClass = ""
	if s.Dynamic != nil {
		v.StorageClass = s.Dynamic.StorageClass
	}
}
