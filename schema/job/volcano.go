package job

import (
	"slices"
	"strings"
)

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

// VolcanoArgumentOr is the value that a plugin is told, or another one.
func VolcanoArgumentOr(args []string, name, otherwise string) string {
	for _, word := range args {
		if flag, value := VolcanoArgument(word); flag == name {
			otherwise = value // the last one counts
		}
	}
	return otherwise
}

// AsksForKeys says whether Volcano's controller mounts a pair of ssh keys: plugin mpi has ssh added by its webhook.
func (p *VolcanoPlugins) AsksForKeys() bool { return p.SSH != nil || p.MPI != nil }

// CountsTasks says whether Volcano's scheduler counts the pods of each task of a job by themselves. It does not where
// the job's minimum is below the sum of those of its tasks (TaskMinAvailableTotal in pkg/scheduler/api/job_info.go):
// that is so where other pods wait until all workers run, since the minimum of their task is what these wait for. No
// other pods may then be in the gang.
func (s *Spec) CountsTasks() bool {
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

// What starts all pods anew.
const (
	OnFailure  = "failure"
	OnEviction = "eviction"
)

// GoesOn says whether Volcano leaves pods that failed as they are, and goes on with the others.
func (f *Failure) GoesOn() bool {
	return f.RestartsPerWorker != nil || f.RestartAll != nil && f.RestartAllOn == OnEviction
}
