package plan

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/generators"
	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/golden"
	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
)

// TestGoldenTargets holds docs/targets.md to the table by which plans are made.
func TestGoldenTargets(t *testing.T) {
	golden.Open(t, "../../docs").Compare(t, "targets.md", []byte(Doc()))
}

// builtin are the groups that an API server has by itself.
var builtin = []string{
	"", "apps", "batch", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
	"storage.k8s.io", "scheduling.k8s.io", "resource.k8s.io",
}

// TestControllers: no fixture has an object of a custom kind whose definition the plan does not name, or a gang of a
// dialect whose scheduler it does not; and no row of the table is there for nothing but what no job can have.
func TestControllers(t *testing.T) {
	used := map[string]bool{}
	eachFixture(t, func(file string, j *job.Job) {
		concerns := generators.Generate(j)
		planned := Of(j, concerns)
		var crds []string
		gangs := map[string]bool{}
		for _, c := range planned.Controllers {
			used[c.Name] = true
			crds = append(crds, c.CRDs...)
			gangs[rowOf(t, c.Name).Gang] = true
		}
		for _, c := range concerns {
			for _, obj := range c.Objects {
				of, err := manifest.GVK(obj)
				if err != nil {
					t.Fatal(err)
				}
				if crd := apis.CRD(of.GroupKind()); !slices.Contains(builtin, of.Group) &&
					!slices.Contains(crds, crd) {
					t.Errorf("%s: a %s of %s, and the plan names no %s, but %q", file, of.Kind, of.Group, crd, crds)
				}
			}
		}
		if g := j.Spec.Gang; g.Active() && !gangs[g.Scheduler] {
			t.Errorf("%s: a gang of %s, and the plan names nobody who places it", file, g.Scheduler)
		}
	})
	for _, n := range controllers {
		if !used[n.Name] {
			t.Errorf("no fixture needs %s", n.Name)
		}
	}
}

// rowOf is the table's row of a controller.
func rowOf(t *testing.T, name string) *needed {
	t.Helper()
	i := slices.IndexFunc(controllers, func(n needed) bool { return n.Name == name })
	if i < 0 {
		t.Fatalf("no row %q", name)
	}
	return &controllers[i]
}

// TestSchedulers: pods that name a scheduler of tegen-scheduler's stay pending without it, gang or not; those of
// another's gang may call theirs what they like.
func TestSchedulers(t *testing.T) {
	const tegen = "tegen-scheduler"
	for spec, want := range map[string][]string{
		"placement: {scheduler: random}":                                  {tegen},
		"placement: {scheduler: tegen-scheduler}":                         {tegen},
		"placement: {scheduler: mine}":                                    nil,
		"podTemplate: {spec: {schedulerName: random}}":                    {tegen},
		"gang: {scheduler: tegen}, placement: {scheduler: random}":        {tegen},
		"gang: {scheduler: tegen}, placement: {scheduler: mine}":          {tegen},
		"gang: {scheduler: coscheduling}, placement: {scheduler: random}": {"scheduler-plugins, as a second scheduler"},
		"gang: {scheduler: none}, placement: {scheduler: random}":         {tegen},
	} {
		text := "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\nspec: {image: 'x:1', " +
			"command: [a], workers: {replicas: 2}, " + spec + "}\n"
		jobs, err := schema.Load([]schema.Source{{Name: spec, Data: []byte(text)}})
		if err != nil {
			t.Error(err)
			continue
		}
		var got []string
		for _, c := range Of(jobs[0], generators.Generate(jobs[0])).Controllers {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the plan names %q, want %q", spec, got, want)
		}
	}
}

// TestCommands: what is printed to be run is one line for a shell each, of a release where there are several; and what
// a shell cannot do is no command.
func TestCommands(t *testing.T) {
	program := regexp.MustCompile(`^(kubectl|helm|git|eksctl|tegen) `)
	for _, n := range controllers {
		for _, command := range append(slices.Clone(n.Install), n.Check) {
			if !program.MatchString(command) || strings.Contains(command, "#") {
				t.Errorf("%s: %q is no command", n.Name, command)
			}
			if strings.HasPrefix(command, "helm install") && !strings.Contains(command, "--version ") {
				t.Errorf("%s: %q takes whatever release is the newest", n.Name, command)
			}
		}
		if len(n.Install)+len(n.Requires) == 0 {
			t.Errorf("%s: nothing says how it gets there", n.Name)
		}
	}
}

// TestReleasedScheduler: a release has an image of its own, so that its command asks for none.
func TestReleasedScheduler(t *testing.T) {
	i := slices.IndexFunc(controllers, func(n needed) bool { return n.Gang == job.GangTegen })
	t.Cleanup(func() { names.ReleasedScheduler = "" })
	for image, want := range map[string]string{
		"": "tegen install scheduler --image IMAGE | kubectl apply --server-side -f -",
		"registry.example/tegen-scheduler:v1.2.3": "tegen install scheduler | kubectl apply --server-side -f -",
	} {
		names.ReleasedScheduler = image
		if got := install(&controllers[i], &job.Job{}); len(got) != 1 || got[0] != want {
			t.Errorf("with the image %q: %q, want %q", image, got, want)
		}
	}
}
