package schema

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
)

// Environment mirrors #Environment but for its defaults and overrides, which are merged into a job's tree before the
// job is decoded, so that positions survive.
type Environment struct {
	Metadata Metadata        `json:"metadata"`
	Spec     EnvironmentSpec `json:"spec"`

	root     *structural.Node
	written  []byte                       // its spec, see Job.Input
	fence    *policy.Policy               // nil without one
	invalid  parts                        // of jobs, that it is wrong about
	reported map[structural.Position]bool // where its own mistakes are: merged into jobs, they are not theirs
}

// EnvironmentSpec mirrors #Environment.spec.
type EnvironmentSpec struct {
	Namespace   string              `json:"namespace,omitempty"`
	Fence       bool                `json:"fence,omitempty"`
	Env         []Env               `json:"env,omitempty"`
	Images      []ImageRewrite      `json:"images,omitempty"`
	Caps        Caps                `json:"caps"`
	Anywhere    bool                `json:"anywhere,omitempty"`
	Machines    []Machine           `json:"machines,omitempty"`
	Accelerator *Accelerator        `json:"accelerator,omitempty"`
	Topology    []Level             `json:"topology,omitempty"`
	OnDelete    string              `json:"onDelete,omitempty"`
	Storage     *EnvironmentStorage `json:"storage,omitempty"`
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
	Tolerations  []Toleration      `json:"tolerations,omitempty"`
	Each         Each              `json:"each,omitzero"`
}

// Each is what comes with each accelerator. It is merged into a job's tree, like defaults.
type Each struct {
	Amounts
	Shm Amount `json:"shm,omitzero"`
}

// EnvironmentStorage replaces the sources of volumes.
type EnvironmentStorage struct {
	Replace string `json:"replace"` // unnamed or all
	VolumeSource
}

// mergeInto fills in what a job leaves out and puts the overrides over what it says.
func (env *Environment) mergeInto(job *structural.Node, s *structural.Schema) {
	metadata := job.Field("metadata")
	if ns := env.root.Field("spec").Field("namespace"); ns != nil && metadata != nil && metadata.Kind == yamldoc.Map &&
		metadata.Field("namespace") == nil {
		metadata.Add("namespace", ns.At, ns)
	}
	spec, specSchema := job.Field("spec"), s.Field("spec").Schema
	defaults, overrides := env.root.Field("spec").Field("defaults"), env.root.Field("spec").Field("overrides")
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
	each, count := env.root.Below("spec", "accelerator", "each"), acceleratorsOf(overrides, spec, defaults)
	if each == nil || each.Kind != yamldoc.Map {
		return
	}
	equip(spec, each, count)
	for _, group := range groupItems(spec) {
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
		total := &structural.Node{Kind: yamldoc.String, Text: None, At: e.Value.At}
		if e.Value.Text != None {
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

// apply changes what is a function of the job's own value: images, caps, sources, and what accelerators need.
func (env *Environment) apply(job *Job) {
	spec := &job.Spec
	job.levels = env.Spec.Topology
	for _, e := range env.Spec.Env {
		if !slices.ContainsFunc(spec.Env, func(own Env) bool { return own.Name == e.Name }) {
			spec.Env = append(spec.Env, e)
		}
	}
	for _, image := range spec.allImages() {
		*image = env.rewrite(*image)
	}
	if p := &spec.Workers.Processes; spec.Resources.GPU == 0 && job.asked.gpu > 0 &&
		(p.StrVal == "auto" || p.StrVal == "gpu") {
		*p = intstr.FromInt32(1) // what it counted is gone, and torchrun would count the machine's cores instead
	}
	env.applyToGroups(spec)
	env.Spec.Caps.apply(spec)
	if env.Spec.Anywhere {
		if m := spec.Metrics; m != nil {
			*m = Metrics{Port: m.Port} // no Prometheus is there to ask
		}
		spec.Placement, spec.Gang, spec.ManagedBy = Placement{}, nil, "" // what Volcano's own Job has by itself stays
		for _, pods := range spec.Roles.all() {
			pods.NodeSelector, pods.Tolerations = nil, nil
		}
	}
	if a := env.Spec.Accelerator; a != nil && spec.Resources.GPU > 0 {
		a.apply(&spec.Placement)
		if m := job.machine; m != nil && !slices.ContainsFunc(env.Spec.Machines, func(own Machine) bool {
			return own.Name == m.Name
		}) {
			job.asked.nodes = a.NodeSelector
		}
	}
	if env.Spec.OnDelete != "" {
		for i := range spec.Storage {
			if !job.asked.onDelete[i] {
				spec.Storage[i].OnDelete = env.Spec.OnDelete
			}
		}
	}
	if env.Spec.Storage != nil {
		for i := range spec.Storage {
			v := &spec.Storage[i]
			own := v.Claim
			env.Spec.Storage.apply(v, job)
			if now := v.ClaimName(job); own != "" && now != own {
				job.asked.replaced = append(job.asked.replaced, replaced{i, own, now})
			}
		}
		for _, own := range []*EtcdStorage{spec.Rendezvous.Etcd.Storage, spec.Rendezvous.Companion.Storage} {
			if own != nil {
				env.Spec.Storage.applyClass(own)
			}
		}
	}
}

// apply lowers what the pods of a job ask for.
func (c *Caps) apply(spec *Spec) {
	limits := Amounts{c.amount(c.CPU), c.amount(c.Memory), c.amount(c.EphemeralStorage)}
	spec.Resources.lower(limits)
	for i := range spec.Groups {
		spec.Groups[i].Resources.lower(limits)
	}
	for _, row := range roleTable {
		if row.capped {
			row.settings(&spec.Roles).Resources.lower(limits)
		}
	}
	for i := range spec.Sidecars {
		spec.Sidecars[i].Resources.lower(limits)
	}
	lower(&spec.Resources.Shm.Quantity, c.Shm)
	lower(&spec.Resources.Tmp.Quantity, c.EphemeralStorage)
	for i := range spec.Storage {
		if e := spec.Storage[i].EmptyDir; e != nil && e.Size != nil {
			limit := c.EphemeralStorage
			if e.Medium != "" {
				limit = c.Shm
			}
			lower(e.Size, limit)
		}
	}
}

func (c *Caps) amount(limit *resource.Quantity) Amount {
	if limit == nil {
		return Amount{}
	}
	return Amount{Quantity: *limit}
}

// allImages are the images that a job names.
func (s *Spec) allImages() []*string {
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
	for _, row := range roleTable {
		if row.own != nil {
			all = append(all, &row.own(&s.Roles).Image)
		}
	}
	for i := range s.Sidecars {
		all = append(all, &s.Sidecars[i].Image)
	}
	return all
}

// rewrite returns an image's name here.
func (env *Environment) rewrite(image string) string {
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

// checkImages holds what rewrites made of a job's images against the schema, since they may end in no image at all.
func (env *Environment) checkImages(job *Job, s *structural.Schema, invalid parts) (errs Errors) {
	if len(env.Spec.Images) == 0 || invalid.touch("image") || invalid.touch("images") || invalid.touch("roles") ||
		invalid.touch("groups") || invalid.touch("sidecars") {
		return nil
	}
	image := s.Field("spec").Schema.Field("image").Schema
	for _, name := range job.Spec.allImages() {
		if *name != "" && !image.Allows(*name) {
			errs = append(errs,
				env.root.Errorf("spec.images", "format", "make %q of an image of job %q: must be %s", *name,
					job.Metadata.Name, image.Words()))
		}
	}
	return errs
}

func lower(q *resource.Quantity, limit *resource.Quantity) {
	if limit != nil && q.Cmp(*limit) > 0 {
		*q = limit.DeepCopy()
	}
}

func (a *Accelerator) apply(p *Placement) {
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
func (s *EnvironmentStorage) apply(v *Storage, job *Job) {
	unnamed := v.Dynamic != nil && v.Dynamic.StorageClass == ""
	if v.EmptyDir != nil || s.Replace == "unnamed" && !unnamed {
		return
	}
	shared := v.ClaimName(job)
	claim := shared
	if v.Claim != "" { // the claim is nobody's to render twice: each job has one of its own
		claim = job.Metadata.Name + "-" + v.Name
	}
	below := func(dir string) string {
		return path.Join(dir, job.Metadata.Namespace, shared)
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
func (s *EnvironmentStorage) applyClass(v *EtcdStorage) {
	if s.Replace == "unnamed" && v.StorageClass != "" {
		return
	}
	v.StorageClass = ""
	if s.Dynamic != nil {
		v.StorageClass = s.Dynamic.StorageClass
	}
}

// ClaimName returns the name of the PersistentVolumeClaim that a volume is mounted through, "" for scratch space.
func (s *Storage) ClaimName(job *Job) string {
	own := ""
	switch {
	case s.EmptyDir != nil:
		return ""
	case s.Claim != "":
		return s.Claim
	case s.Dynamic != nil:
		own = s.Dynamic.Claim
	case s.EFS != nil:
		own = s.EFS.Claim
	case s.FSx != nil:
		own = s.FSx.Claim
	case s.NFS != nil:
		own = s.NFS.Claim
	case s.HostPath != nil:
		own = s.HostPath.Claim
	}
	if own != "" {
		return own
	}
	return job.Metadata.Name + "-" + s.Name
}
