package schema

import (
	"strconv"

	"github.com/tegen-dev/tegen/internal/lazy"
)

var launchRules = []rule{
	{(*validation).launch, "framework launcher command args workers resources.gpu rendezvous dlrover gang"},
}

// launch holds an author's own call of a launcher against the fields that say the same: options win over variables, and
// what a scheduler places must be what rendezvous waits for.
func (r *validation) launch() {
	s := &r.Spec
	l := s.Launch()
	if l == nil || s.Framework == FrameworkDLRover && !l.dlrover() {
		return
	}
	if o := l.Option("nproc_per_node"); o != nil {
		if n, err := strconv.Atoi(o.Value); err == nil && s.Resources.GPU > 0 && int64(n) > s.Resources.GPU {
			r.fail(o.path, "order",
				"%s is above spec.resources.gpu %d: each process needs an accelerator of its own", o, s.Resources.GPU)
		}
	}
	if s.Unlaunched() {
		return // its options are all that it goes by, and pods may train each for itself
	}
	for _, f := range launchFields(s) {
		if f.field == "workers.processes" && s.Workers.Master && f.value == "auto" {
			continue // the operator counts one for each pod then, and the option says how many torchrun starts there
		}
		if o := l.Option(f.option); o != nil && o.Value != f.value && r.IsSet("spec."+f.field) {
			r.fail(o.path, "order", "%s is not spec.%s %s: say it once", o, f.field, f.value)
		}
	}
	if s.Framework == FrameworkDLRover {
		r.unreached(l)
	}
	r.launchNodes(l)
}

// launchField is a field with the option that says the same.
type launchField struct{ field, option, value string }

func launchFields(s *Spec) []launchField {
	return []launchField{
		{"workers.processes", "nproc_per_node", s.Workers.Processes.String()},
		{"rendezvous.maxRestarts", "max_restarts", strconv.Itoa(int(s.Rendezvous.MaxRestarts))},
		{"dlrover.nodeUnit", "node_unit", strconv.Itoa(int(s.DLRover.NodeUnit))},
	}
}

// unreached refuses fields that an author's dlrover-run does not get to know: torchrun reads variables, but its master
// and its examples go by options.
func (r *validation) unreached(l *Launch) {
	fields := append(launchFields(&r.Spec),
		launchField{field: "rendezvous.lastCall", option: "rdzv_conf"},
		launchField{field: "rendezvous.joinTimeout", option: "rdzv_conf"},
		launchField{field: "rendezvous.conf", option: "rdzv_conf"},
	)
	if r.Spec.DLRover.NetworkCheck {
		fields = append(fields, launchField{field: "dlrover.networkCheck", option: "network_check"})
	}
	if r.Spec.DLRover.ExcludeStraggler {
		fields = append(fields, launchField{field: "dlrover.excludeStraggler", option: "exclude_straggler"})
	}
	for _, f := range fields {
		if r.IsSet("spec."+f.field) && l.Option(f.option) == nil {
			r.fail("spec."+f.field, "requires",
				"the command starts %s itself, so this field has no effect: add --%s there, or leave the launcher to "+
					"tegen", l.Program, f.option)
		}
	}
}

var nodeRange = lazy.Regexp(`^([0-9]+)(?::(.*))?$`)

// launchNodes reads --nnodes: MIN:MAX, or one number for both.
func (r *validation) launchNodes(l *Launch) {
	s := &r.Spec
	o := l.Option("nnodes")
	if o == nil {
		if s.Framework == FrameworkDLRover && l.Option("auto_config") == nil && s.Workers.Max > 1 {
			r.fail("spec.command", "requires",
				"%s starts with one node where --nnodes is missing: add --nnodes=%d:$NODE_NUM", l.Program,
				s.Workers.Min)
		}
		return
	}
	m := nodeRange().FindStringSubmatch(o.Value)
	if m == nil {
		return // a variable of the pod's, unknown here
	}
	least, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil {
		return
	}
	if g := s.Gang; g.Active() && int64(g.MinAvailable) < least {
		r.fail("spec.gang.minAvailable", "order",
			"%d is below the %d of --nnodes=%s: the pods placed could never rendezvous", g.MinAvailable, least, o.Value)
	}
	if w := s.Workers; m[2] == "" && w.Min == w.Max {
		if least != int64(w.Max) {
			r.fail(o.path, "order", "%s is not spec.workers.replicas %d: make them agree, or leave it out", o, w.Max)
		}
		return
	}
	if least != int64(s.Workers.Min) {
		r.fail(o.path, "order", "--nnodes=%s starts with %d, spec.workers.min is %d: make them agree", o.Value, least,
			s.Workers.Min)
	}
	most := m[2]
	if most == "" {
		most = m[1]
	}
	if n, err := strconv.Atoi(most); err == nil && n != int(s.Workers.Max) {
		r.fail(o.path, "order", "--nnodes=%s ends with %d, spec.workers.max is %d: make them agree", o.Value, n,
			s.Workers.Max)
	}
}
