package schema

import (
	"fmt"
	"slices"
	"strings"
)

var volcanoRules = []rule{
	{(*validation).volcanoTasks, "volcano groups"},
	{(*validation).volcanoKeys, "volcano security"},
	{(*validation).volcanoPartitions, "gang target workers groups launcher"},
	{(*validation).restartAllOn, "failure"},
	{(*validation).volcanoRay, "volcano framework launcher command args script groups"},
}

// Volcano mirrors #Volcano.
type Volcano struct {
	Plugins VolcanoPlugins `json:"plugins"`
}

// VolcanoPlugins mirrors #VolcanoPlugins. One that is not asked for is nil; one without arguments is not.
type VolcanoPlugins struct {
	SSH        *[]string `json:"ssh,omitempty"`
	MPI        *[]string `json:"mpi,omitempty"`
	PyTorch    *[]string `json:"pytorch,omitempty"`
	TensorFlow *[]string `json:"tensorflow,omitempty"`
	Ray        *[]string `json:"ray,omitempty"`
	HCCLRank   *[]string `json:"hcclrank,omitempty"`
}

// ByName are the plugins that are asked for, with their arguments.
func (p *VolcanoPlugins) ByName() map[string][]string {
	if *p == (VolcanoPlugins{}) { // of nearly every job
		return nil
	}
	all := map[string][]string{}
	for name, args := range map[string]*[]string{
		"ssh": p.SSH, "mpi": p.MPI, "pytorch": p.PyTorch, "tensorflow": p.TensorFlow, "ray": p.Ray,
		"hcclrank": p.HCCLRank,
	} {
		if args != nil {
			all[name] = *args
		}
	}
	return all
}

// VolcanoPlugin is a plugin of Volcano's controller, and its arguments that name something of the job (v1.15.1,
// pkg/controllers/job/plugins). refusals.cue has all arguments.
type VolcanoPlugin struct {
	Name  string
	Roles []VolcanoRole
}

// VolcanoRole is an argument that names a task, or the container in one.
type VolcanoRole struct {
	Flag, Default string
	Without       string // what becomes of a job that has no such task; "" where it may lack one
	Container     bool
}

// VolcanoPluginTable has a row for each plugin, sorted.
var VolcanoPluginTable = []VolcanoPlugin{
	{"hcclrank", []VolcanoRole{{"master", "master", "", false}, {"worker", "worker", "", false}}},
	{"mpi", []VolcanoRole{
		{"master", "master", "its webhook refuses the job", false},
		{"worker", "worker", "nobody is told of any host", false},
	}},
	{"pytorch", []VolcanoRole{
		{"master", "master", "no variable is set", false}, {"worker", "worker", "", false},
	}},
	{"ray", []VolcanoRole{
		{"head", "head", "no pod is made", false},
		{"headContainer", "head", "ray is not started there", true},
		{"worker", "worker", "no worker is started", false},
		{"workerContainer", "worker", "ray is not started there", true},
	}},
	{"ssh", nil},
	{"tensorflow", []VolcanoRole{
		{"ps", "ps", "", false},
		{"worker", "worker", "", false},
		{"chief", "chief", "", false},
		{"evaluator", "evaluator", "", false},
	}},
}

// VolcanoArgument is an argument's name and its value, as Go's package flag reads it.
func VolcanoArgument(word string) (name, value string) {
	if !strings.HasPrefix(word, "-") {
		return "", word
	}
	name, value, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-"), "=")
	return name, value
}

// volcanoArgument is the value that a plugin is told, or another one.
func volcanoArgument(args []string, name, otherwise string) string {
	for _, word := range args {
		if flag, value := VolcanoArgument(word); flag == name {
			otherwise = value // the last one counts
		}
	}
	return otherwise
}

// volcanoTasks holds the names by which plugins know tasks against those that the job has.
func (r *validation) volcanoTasks() {
	known := append([]string{RoleWorker}, r.Spec.groupNames()...)
	for _, plugin := range VolcanoPluginTable {
		args, asked := r.Spec.Volcano.Plugins.ByName()[plugin.Name]
		if !asked {
			continue
		}
		for _, role := range plugin.Roles {
			at := "spec.volcano.plugins." + plugin.Name
			name := volcanoArgument(args, role.Flag, role.Default)
			i := slices.IndexFunc(args, func(word string) bool {
				flag, _ := VolcanoArgument(word)
				return flag == role.Flag
			})
			if i >= 0 {
				at = fmt.Sprintf("%s[%d]", at, i)
			}
			task := strings.TrimSuffix(role.Flag, "Container")
			switch in := volcanoArgument(args, task, task); {
			case role.Container && slices.Contains(known, in) && name != in:
				r.fail(at, "requires", "container %s is none of group %s, whose container is called like the group: "+
					"write --%s=%s", name, in, role.Flag, in)
			case role.Container || slices.Contains(known, name) || name == "":
			case i >= 0:
				r.fail(at, "unknown", "there is no group %s: one of %s", name, strings.Join(known, ", "))
			case role.Without != "":
				r.fail(at, "requires", "there is no group %s, and without one %s: add it, or name another by --%s=…",
					name, role.Without, role.Flag)
			}
		}
	}
}

// asksForKeys says whether Volcano's controller mounts a pair of ssh keys: plugin mpi has ssh added by its webhook.
func (p *VolcanoPlugins) asksForKeys() bool { return p.SSH != nil || p.MPI != nil }

// volcanoKeys refuses users to whom the keys are of no use. In /root/.ssh they have mode 0600, elsewhere 0644, and they
// are root's (plugins/ssh/ssh.go); the kubelet adds the group's bits to them where a pod has an fsGroup. ssh takes no
// private key of its own user that others may read, and sshd of root needs capabilities to serve anybody.
func (r *validation) volcanoKeys() {
	if !r.Spec.Volcano.Plugins.asksForKeys() {
		return
	}
	const plugin, user, group = "plugin ssh of Volcano", "spec.security.runAsUser", "spec.security.fsGroup"
	s := &r.Spec.Security
	elsewhere := volcanoArgument(r.Spec.Volcano.Plugins.ByName()["ssh"], "ssh-key-file-path", "") != ""
	switch root := s.RunAsUser.Is(0); {
	case elsewhere && root:
		r.fail(user, "requires", "%s makes keys that all may read elsewhere than in /root/.ssh, and ssh of root takes "+
			"none of these: leave --ssh-key-file-path out, or name another user", plugin)
	case elsewhere:
	case !root && s.RunAsUser.Number != nil:
		r.fail(user, "requires", "%s puts keys into /root/.ssh that root alone can read, not user %d: set image or 0, "+
			"or volcano.plugins.ssh: [--ssh-key-file-path=…] with the directory .ssh of that user", plugin,
			*s.RunAsUser.Number)
	case s.FSGroup.Number != nil:
		r.fail(group, "requires", "group %d could read the keys of %s, and ssh takes none that others than root may "+
			"read: set none", *s.FSGroup.Number, plugin)
	case s.Restricted:
		r.fail("spec.security.restricted", "requires", "an sshd of root serves nobody without capabilities, which "+
			"this drops: set false, since %s puts keys into /root/.ssh", plugin)
	}
}

// countsTasks says whether Volcano's scheduler counts the pods of each task of a job by themselves. It does not where
// the job's minimum is below the sum of those of its tasks (TaskMinAvailableTotal in pkg/scheduler/api/job_info.go):
// that is so where other pods wait until all workers run, since the minimum of their task is what these wait for. No
// other pods may then be in the gang.
func (s *Spec) countsTasks() bool {
	g := s.Gang
	if s.Target != TargetVCJob || !g.Is(GangVolcano) {
		return false
	}
	if g.MinAvailable >= s.Workers.Min || !s.WorkersAwaited() {
		return true
	}
	return !slices.ContainsFunc(s.Groups, func(g Group) bool { return len(g.After) == 0 })
}

// WorkersAwaited says whether a group is started after the workers.
func (s *Spec) WorkersAwaited() bool {
	return slices.ContainsFunc(s.Groups, func(g Group) bool {
		return slices.ContainsFunc(g.After, func(a After) bool { return a.Group == RoleWorker })
	})
}

// volcanoPartitions: a task's minimum is that of its partitions, or the webhook refuses the job.
func (r *validation) volcanoPartitions() {
	s := &r.Spec
	if t := s.Topology(); s.Target == TargetVCJob && s.Gang.Is(GangVolcano) && t != nil && t.Slice > 0 &&
		s.WorkersAwaited() && s.Gang.MinAvailable < s.Workers.Min {
		r.fail("spec.gang.minAvailable", "requires", "is below the %d workers that others wait for, and Volcano has "+
			"one number for both where workers are in slices: leave it out", s.Workers.Min)
	}
}

// What starts all pods anew.
const (
	OnFailure  = "failure"
	OnEviction = "eviction"
)

func (r *validation) restartAllOn() {
	if f := &r.Spec.Failure; f.RestartAllOn != "" && f.RestartAll == nil {
		r.fail("spec.failure.restartAllOn", "requires", "nothing says how often all are started anew: give "+
			"restartAll, or leave it out")
	}
}

// goesOn says whether Volcano leaves pods that failed as they are, and goes on with the others.
func (f *Failure) goesOn() bool {
	return f.RestartsPerWorker != nil || f.RestartAll != nil && f.RestartAllOn == OnEviction
}

// volcanoNotes tell what of a Volcano Job ends otherwise than its author may think. It is complete where all pods have
// ended and as many have succeeded as start together (pkg/controllers/job/state/running.go).
func (s *Spec) volcanoNotes() (notes []string) {
	if s.Target == TargetVCJob && s.Success != nil && s.Ordered() && s.Failure.goesOn() {
		notes = append(notes, fmt.Sprintf("spec.success: pods that fail stay as they are, and where all pods have "+
			"ended Volcano takes the job for complete when enough others succeeded, though %s failed: keep another "+
			"group running until then", strings.Join(s.Success.Groups, " and ")))
	}
	return notes
}

// volcanoRay refuses programs that plugin ray puts its own into the place of.
func (r *validation) volcanoRay() {
	args, asked := r.Spec.Volcano.Plugins.ByName()["ray"]
	if !asked {
		return
	}
	const instead = "plugin ray of Volcano puts ray start into its place: leave it out"
	for _, role := range []string{"head", "worker"} {
		name := volcanoArgument(args, role, role)
		at := "spec."
		g := r.Spec.Group(name)
		switch {
		case g != nil:
			at = r.Spec.placeOf(name) + "."
		case name != RoleWorker:
			continue
		case !r.Spec.Unlaunched():
			r.fail("spec.launcher", "requires", "plugin ray of Volcano starts the workers' program: set none")
			continue
		}
		for _, field := range []string{"command", "args", "script"} {
			if r.IsSet(at + field) {
				r.fail(at+field, "requires", instead)
			}
		}
	}
}
