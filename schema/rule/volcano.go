package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
)

var volcanoRules = []oldRule{
	{(*Validation).volcanoTasks, "volcano groups"},
	{(*Validation).volcanoKeys, "volcano security"},
	{(*Validation).volcanoPartitions, "gang target workers groups launcher"},
	{(*Validation).restartAllOn, "failure"},
	{(*Validation).volcanoRay, "volcano framework launcher command args script groups"},
}

// volcanoTasks holds the names by which plugins know tasks against those that the job has.
func (r *Validation) volcanoTasks() {
	known := append([]string{job.RoleWorker}, r.Spec.GroupNames()...)
	for _, plugin := range job.VolcanoPluginTable {
		args, asked := r.Spec.Volcano.Plugins.ByName()[plugin.Name]
		if !asked {
			continue
		}
		for _, role := range plugin.Roles {
			at := "spec.volcano.plugins." + plugin.Name
			name := job.VolcanoArgumentOr(args, role.Flag, role.Default)
			i := slices.IndexFunc(args, func(word string) bool {
				flag, _ := job.VolcanoArgument(word)
				return flag == role.Flag
			})
			if i >= 0 {
				at = fmt.Sprintf("%s[%d]", at, i)
			}
			task := strings.TrimSuffix(role.Flag, "Container")
			switch in := job.VolcanoArgumentOr(args, task, task); {
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

// volcanoKeys refuses users to whom the keys are of no use. In /root/.ssh they have mode 0600, elsewhere 0644, and they
// are root's (plugins/ssh/ssh.go); the kubelet adds the group's bits to them where a pod has an fsGroup. ssh takes no
// private key of its own user that others may read, and sshd of root needs capabilities to serve anybody.
func (r *Validation) volcanoKeys() {
	if !r.Spec.Volcano.Plugins.AsksForKeys() {
		return
	}
	const plugin, user, group = "plugin ssh of Volcano", "spec.security.runAsUser", "spec.security.fsGroup"
	s := &r.Spec.Security
	elsewhere := job.VolcanoArgumentOr(r.Spec.Volcano.Plugins.ByName()["ssh"], "ssh-key-file-path", "") != ""
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

// volcanoPartitions: a task's minimum is that of its partitions, or the webhook refuses the job.
func (r *Validation) volcanoPartitions() {
	s := &r.Spec
	if t := s.Topology(); s.Target == job.TargetVCJob && s.Gang.Is(job.GangVolcano) && t != nil && t.Slice > 0 &&
		s.WorkersAwaited() && s.Gang.MinAvailable < s.Workers.Min {
		r.fail("spec.gang.minAvailable", "requires", "is below the %d workers that others wait for, and Volcano has "+
			"one number for both where workers are in slices: leave it out", s.Workers.Min)
	}
}

func (r *Validation) restartAllOn() {
	if f := &r.Spec.Failure; f.RestartAllOn != "" && f.RestartAll == nil {
		r.fail("spec.failure.restartAllOn", "requires", "nothing says how often all are started anew: give "+
			"restartAll, or leave it out")
	}
}

// volcanoRay refuses programs that plugin ray puts its own into the place of.
func (r *Validation) volcanoRay() {
	args, asked := r.Spec.Volcano.Plugins.ByName()["ray"]
	if !asked {
		return
	}
	const instead = "plugin ray of Volcano puts ray start into its place: leave it out"
	for _, role := range []string{"head", "worker"} {
		name := job.VolcanoArgumentOr(args, role, role)
		at := "spec."
		g := r.Spec.Group(name)
		switch {
		case g != nil:
			at = r.Spec.PlaceOf(name) + "."
		case name != job.RoleWorker:
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
