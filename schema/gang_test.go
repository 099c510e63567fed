package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tegen-dev/tegen/schema/definition"
	"github.com/tegen-dev/tegen/schema/job"
)

// gangJob is a job of several roles, whether or not its framework has the target.
func gangJob(spec string) string {
	return "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j, namespace: ml}\nspec:\n" +
		"  framework: mxnet\n  target: job\n  image: x:1\n  command: [train]\n" + spec
}

// TestGangOfRoles: a scheduler that counts all pods together must not count workers for a server, and a group holds
// the gang of each role.
func TestGangOfRoles(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{
			"sum", "  workers: {min: 2, max: 4}\n  gang: {scheduler: coscheduling}\n",
			"spec.gang.minAvailable: coscheduling of target job counts the pods of all roles together, so workers " +
				"could stand in for a scheduler: set it to 4, or use koordinator, ",
		},
		{
			"sum of Kubernetes",
			"  kubernetesVersion: \"1.37\"\n  workers: {min: 2, max: 4}\n  gang: {scheduler: kubernetes, " +
				"minAvailable: 3}\n",
			"spec.gang.minAvailable: kubernetes of target job counts the pods of all roles together",
		},
		{"whole", "  workers: {min: 2, max: 4}\n  gang: {scheduler: coscheduling, minAvailable: 4}\n", ""},
		{"tasks", "  workers: {min: 2, max: 4}\n  gang: {scheduler: volcano}\n", ""},
		{"gangs", "  workers: {min: 2, max: 4}\n  gang: {scheduler: koordinator}\n", ""},
		{
			"group", "  workers: {replicas: 2}\n  gang: {scheduler: koordinator, groups: [ml/j, ml/other]}\n",
			"spec.gang.groups: the group must hold this gang too: add ml/j-scheduler, ml/j-server, ml/j-worker",
		},
		{
			"whole group",
			"  workers: {replicas: 2}\n  gang: {scheduler: koordinator, groups: [ml/j-worker, ml/j-server, " +
				"ml/j-scheduler, ml/other]}\n", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, errs := load(t, gangJob(c.spec))
			got := ""
			for _, e := range errs {
				if strings.HasPrefix(e.Path, "spec.gang") {
					got += e.Path + ": " + e.Msg
				}
			}
			if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestPriorityOfGangs: what a gang and the placement of its pods name is one priority, unless the gang's is Kueue's
// own, which orders a queue and no pods.
func TestPriorityOfGangs(t *testing.T) {
	for scheduler, want := range map[string]string{
		"volcano":          "spec.gang.priority: high is not spec.placement.priorityClass low",
		"kueue, queue: ml": "",
	} {
		_, errs := load(t, small("a")+"  placement: {priorityClass: low}\n"+
			"  gang: {priority: high, scheduler: "+scheduler+"}\n")
		if got := errs.Error(); want == "" && len(errs) > 0 || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", scheduler, got, want)
		}
	}
}

// TestNamesOfGangs: two jobs share a gang only where its scheduler calls both by one name.
func TestNamesOfGangs(t *testing.T) {
	roles := strings.Replace(gangJob("  workers: {replicas: 2}\n"), "name: j,", "name: a,", 1)
	one := strings.NewReplacer("{name: a}", "{name: a-worker, namespace: ml}").Replace(small("a"))
	for _, c := range []struct{ roles, one, want string }{
		{"volcano", "volcano", ""}, // PodGroups a and a-worker
		{"koordinator", "volcano", ""},
		{"koordinator", "koordinator", `"ml/a-worker" is the gang of job "a" already`},
		{"koordinator", "tegen", `"ml/a-worker" is the gang of job "a" already`},
		{"volcano", "volcano, name: a", `"ml/a" is the gang of job "a" already`},
		{"volcano", "coscheduling, name: a", ""},
	} {
		_, errs := load(t, roles+"  gang: {scheduler: "+c.roles+"}\n", one+"  gang: {scheduler: "+c.one+"}\n")
		if c.want == "" && errs != nil || c.want != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0].Msg, c.want)) {
			t.Errorf("%s and %s: %v, want %q", c.roles, c.one, errs, c.want)
		}
	}
}

// TestDialects: job.cue names the dialects, what one is told are fields of a gang, and no two schedulers have one name.
func TestDialects(t *testing.T) {
	seen := map[string]string{}
	names := []string{job.GangNone}
	for _, d := range job.Dialects {
		names = append(names, d.Name)
		for _, field := range d.Fields {
			if _, _, err := Explain("TrainingJob", "spec.gang."+field); err != nil {
				t.Errorf("%s: %v", d.Name, err)
			}
		}
		if other := seen[d.Scheduler]; other != "" && d.Scheduler != "" {
			t.Errorf("%s and %s are both %s", d.Name, other, d.Scheduler)
		}
		seen[d.Scheduler] = d.Name
	}
	gang := definition.Job().Field("spec").Schema.Field("gang").Schema
	enum := gang.Field("scheduler").Schema.Enum()
	slices.Sort(names)
	slices.Sort(enum)
	if diff := cmp.Diff(names, enum); diff != "" {
		t.Errorf("schedulers (-Dialects +job.cue):\n%s", diff)
	}
}
