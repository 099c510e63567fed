package rule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/part"
)

var volcanoRules = []Rule{
	part.Of2(volcanoTasks, part.Volcano, part.GroupNames),
	part.Of2(volcanoKeys, part.Volcano, part.Security),
	part.Of4(volcanoPartitions, part.Gang, part.Target, part.MinWorkers, part.WorkersAwaited),
	part.Of1(restartAllOn, part.Failure),
	part.Of3(volcanoRay, part.Volcano, part.Unlaunched, part.GroupNames),
}

// volcanoTasks holds the names by which plugins know tasks against those that the job has.
func volcanoTasks(p *Problems, v *job.Volcano, groups []string) {
	known := append([]string{job.RoleWorker}, groups...)
	for _, plugin := range job.VolcanoPluginTable {
		args, asked := v.Plugins.ByName()[plugin.Name]
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
				p.fail(at, "requires", "container %s is none of group %s, whose container is called like the group: "+
					"write --%s=%s", name, in, role.Flag, in)
			case role.Container || slices.Contains(known, name) || name == "":
			case i >= 0:
				p.fail(at, "unknown", "there is no group %s: one of %s", name, strings.Join(known, ", "))
			case role.Without != "":
				p.fail(at, "requires", "there is no group %s, and without one %s: add it, or name another by --%s=…",
					name, role.Without, role.Flag)
			}
		}
	}
}

// volcanoKeys refuses users to whom the keys are of no use. In /root/.ssh they have mode 0600, elsewhere 0644, and they
// are root's (plugins/ssh/ssh.go); the kubelet adds the group's bits to them where a pod has an fsGroup. ssh takes no
// private key of its own user that others may read, and sshd of root needs capabilities to serve anybody.
func volcanoKeys(p *Problems, v *job.Volcano, s *job.Security) {
	if !v.Plugins.AsksForKeys() {
		return
	}
	const plugin, user, group = "plugin ssh of Volcano", "spec.security.runAsUser", "spec.security.fsGroup"
	elsewhere := job.VolcanoArgumentOr(v.Plugins.ByName()["ssh"], "ssh-key-file-path", "") != ""
	switch root := s.RunAsUser.Is(0); {
	case elsewhere && root:
		p.fail(user, "requires", "%s makes keys that all may read elsewhere than in /root/.ssh, and ssh of root takes "+
			"none of these: leave --ssh-key-file-path out, or name another user", plugin)
	case elsewhere:
	case !root && s.RunAsUser.Number != nil:
		p.fail(user, "requires", "%s puts keys into /root/.ssh that root alone can read, not user %d: set image or 0, "+
			"or volcano.plugins.ssh: [--ssh-key-file-path=…] with the directory .ssh of that user", plugin,
			*s.RunAsUser.Number)
	case s.FSGroup.Number != nil:
		p.fail(group, "requires", "group %d could read the keys of %s, and ssh takes none that others than root may "+
			"read: set none", *s.FSGroup.Number, plugin)
	case s.Restricted:
		p.fail("spec.security.restricted", "requires", "an sshd of root serves nobody without capabilities, which "+
			"this drops: set false, since %s puts keys into /root/.ssh", plugin)
	}
}

// volcanoPartitions: a task's minimum is that of its partitions, or the webhook refuses the job.
func volcanoPartitions(p *Problems, g *job.Gang, target string, least int32, awaited bool) {
	if target == job.TargetVCJob && g.Is(job.GangVolcano) && g.Topology != nil && g.Topology.Slice > 0 && awaited &&
		g.MinAvailable < least {
		p.fail("spec.gang.minAvailable", "requires", "is below the %d workers that others wait for, and Volcano has "+
			"one number for both where workers are in slices: leave it out", least)
	}
}

// restartAllOn refuses a reason to restart all pods where they are never restarted.
func restartAllOn(p *Problems, f *job.Failure) {
	if f.RestartAllOn != "" && f.RestartAll == nil {
		p.fail("spec.failure.restartAllOn", "requires", "nothing says how often all are started anew: give "+
			"restartAll, or leave it out")
	}
}

// volcanoRay refuses programs that plugin ray puts its own into the place of.
func volcanoRay(p *Problems, v *job.Volcano, unlaunched bool, groups []string) {
	args, asked := v.Plugins.ByName()["ray"]
	if !asked {
		return
	}
	for _, role := range []string{"head", "worker"} {
		name := job.VolcanoArgumentOr(args, role, role)
		at := "spec."
		switch i := slices.Index(groups, name); {
		case i >= 0:
			at = fmt.Sprintf("spec.groups[%d].", i)
		case name != job.RoleWorker:
			continue
		case !unlaunched:
			p.fail("spec.launcher", "requires", "plugin ray of Volcano starts the workers' program: set none")
			continue
		}
		p.failIfSet("plugin ray of Volcano puts ray start into its place: leave it out",
			at+"command", at+"args", at+"script")
	}
}
