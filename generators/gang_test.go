package generators

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/names"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// TestRolesOfGang: where a job has several roles, no pod of one stands in for a pod of another.
func TestRolesOfGang(t *testing.T) {
	j := &job.Job{Metadata: job.Metadata{Name: "mx", Namespace: "ml"}}
	j.Spec.Framework, j.Spec.Target, j.Spec.MXNet.Mode = job.FrameworkMXNet, job.TargetJob, job.MXNetDist
	j.Spec.Workers, j.Spec.Servers.Replicas = job.Workers{Replicas: 4, Min: 2, Max: 6}, 2
	j.Spec.Gang = &job.Gang{
		Scheduler: job.GangKoordinator, MinAvailable: 3, Mode: "Strict", MatchPolicy: "waiting-and-running",
	}

	want := [][2]string{{"mx-scheduler", "1"}, {"mx-server", "2"}, {"mx-worker", "3"}}
	var got [][2]string
	for _, component := range []string{"scheduler", "server", "worker"} {
		a := koordinatorGang(j, component)
		got = append(got, [2]string{a[koordinatorKeys+"name"], a[koordinatorKeys+"min-available"]})
		if group := a[koordinatorKeys+"groups"]; group != `["ml/mx-scheduler","ml/mx-server","ml/mx-worker"]` {
			t.Errorf("%s: group %s", component, group)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("name and least (-want +got):\n%s", diff)
	}
	if a := koordinatorGang(j, "prefetch"); a != nil {
		t.Errorf("a pod that takes no part: %v", a)
	}
	j.Spec.Gang.Groups = []string{"ml/z", "ml/mx-worker", "ml/mx-scheduler", "ml/mx-server"}
	group := koordinatorGang(j, "worker")[koordinatorKeys+"groups"]
	if group != `["ml/mx-scheduler","ml/mx-server","ml/mx-worker","ml/z"]` {
		t.Errorf("the author's group: %s", group)
	}

	spec := volcanoGroup(j)[0].(*apis.Custom[apis.VolcanoPodGroup]).Spec
	least := map[string]int32{"scheduler": 1, "server": 2, "worker": 3}
	if diff := cmp.Diff(least, spec.MinTaskMember); diff != "" || spec.MinMember != 6 {
		t.Errorf("minMember %d, minTaskMember (-want +got):\n%s", spec.MinMember, diff)
	}
}

// TestGangs holds every target that carries a dialect to what its scheduler needs, whatever object the pods are in.
func TestGangs(t *testing.T) {
	for _, target := range target.All {
		for _, d := range job.Dialects {
			scheduler := d.Name
			if !target.Carries("gang.scheduler=" + scheduler) {
				continue
			}
			t.Run(target.Framework+"/"+target.Name+"/"+scheduler, func(t *testing.T) {
				text, err := supported(target, "gang.scheduler="+scheduler)
				if err != nil {
					t.Fatal(err)
				}
				objects := parsed(t, text)
				pods := podsIn(objects...)
				if len(pods) == 0 {
					t.Fatal("no pods of a role")
				}
				switch scheduler {
				case job.GangKoordinator, job.GangTegen:
					koordinatorGangs(t, pods)
				case job.GangKueue:
					queued(t, target, objects)
				}
				alike(t, pods)
			})
		}
	}
}

// keysOfOthers are keys in a gang's pods and objects that no scheduler knows the gang by.
var keysOfOthers = []string{kueueElasticKey, names.Expects}

// TestDialects: each dialect has a row here, which renders something, and its row in the schema knows all keys by which
// pods and objects then differ from those of a job without a gang.
func TestDialects(t *testing.T) {
	for _, d := range job.Dialects {
		if row := dialectOf(d.Name); row.annotations == nil && row.labels == nil && row.objects == nil {
			t.Errorf("%s has no row", d.Name)
		}
		for _, target := range target.All {
			if !target.Carries("gang.scheduler=" + d.Name) {
				continue
			}
			plain := keysIn(rendered(t, example(target, "")))
			for key := range keysIn(rendered(t, example(target, "gang.scheduler="+d.Name))) {
				if !plain[key] && !slices.Contains(d.Keys, key) && !slices.Contains(keysOfOthers, key) {
					t.Errorf("%s of %s: %s is not among its keys in schema.Dialects", d.Name, target.Name, key)
				}
			}
		}
	}
}

// keysIn are the labels and annotations anywhere in a value.
func keysIn(v any) map[string]bool {
	keys := map[string]bool{}
	switch v := v.(type) {
	case []map[string]any:
		for _, item := range v {
			maps.Copy(keys, keysIn(item))
		}
	case []any:
		for _, item := range v {
			maps.Copy(keys, keysIn(item))
		}
	case map[string]any:
		for name, item := range v {
			own, _ := item.(map[string]any)
			if name == "labels" || name == "annotations" {
				for key := range own {
					keys[key] = true
				}
			}
			maps.Copy(keys, keysIn(item))
		}
	}
	return keys
}

// TestRoleNames: generators and schema agree about roles, of which Kueue takes 8 at most (jobset#597).
func TestRoleNames(t *testing.T) {
	for _, target := range target.All {
		jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: []byte(example(target, ""))}})
		if err != nil {
			t.Errorf("%s/%s: %v", target.Framework, target.Name, err)
			continue
		}
		var got []string
		for _, r := range roles(jobs[0]) {
			got = append(got, r.component)
		}
		slices.Sort(got)
		if want := jobs[0].Spec.Components(); !slices.Equal(want, got) || len(got) > 8 {
			t.Errorf("%s/%s: roles are %v, and of the schema %v", target.Framework, target.Name, got, want)
		}
	}
}

// koordinatorGangs requires one list of gangs on all pods, and each pod's own gang in it.
func koordinatorGangs(t *testing.T, pods []podIn) {
	t.Helper()
	groups := map[string]bool{}
	names := map[string]string{} // of gangs, by role
	for _, p := range pods {
		name, group := p.annotations[koordinatorKeys+"name"], p.annotations[koordinatorKeys+"groups"]
		names[p.role] = name
		groups[group] = true
		if n, err := strconv.Atoi(p.annotations[koordinatorKeys+"min-available"]); err != nil || n < 1 {
			t.Errorf("%s: %v", p.role, p.annotations)
		}
	}
	if len(groups) != 1 {
		t.Fatalf("groups %v, want one", groups)
	}
	var group []string
	if text := slices.Collect(maps.Keys(groups))[0]; text != "" {
		if err := json.Unmarshal([]byte(text), &group); err != nil {
			t.Fatal(err)
		}
	}
	if len(names) == 1 {
		if group != nil {
			t.Errorf("one role, and a group %v", group)
		}
		return
	}
	for role, name := range names {
		if !slices.Contains(group, "ml/"+name) {
			t.Errorf("%s: gang %q is not in the group %v", role, name, group)
		}
	}
}

// queued requires a queue for every object that Kueue supports, and no field suspend beside it.
func queued(t *testing.T, target target.Target, objects []map[string]any) {
	t.Helper()
	found := 0
	for _, o := range objects {
		metadata, _ := o["metadata"].(map[string]any)
		spec, _ := o["spec"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		if labels[kueueQueueKey] == nil {
			continue
		}
		// Or it only helps.
		if component, _ := labels["app.kubernetes.io/component"].(string); slices.Contains(trainers, component) {
			found++
		}
		policy, _ := spec["runPolicy"].(map[string]any)
		if spec["suspend"] != nil || policy["suspend"] != nil {
			t.Errorf("%v %v is suspended by hand too", o["kind"], metadata["name"])
		}
	}
	if bare := target.Name == job.TargetPods; found == 0 || found > 1 && !bare {
		t.Errorf("%d objects in the queue: Kueue admits each by itself", found)
	}
}

// alike requires one scheduler and one priority.
func alike(t *testing.T, pods []podIn) {
	t.Helper()
	seen := map[string]bool{}
	for _, p := range pods {
		seen[fmt.Sprint(p.spec["schedulerName"], p.spec["priorityClassName"], p.spec["schedulingGroup"])] = true
	}
	if len(seen) != 1 {
		t.Errorf("scheduler, priority and group: %v", seen)
	}
}

// podIn is a pod of a role somewhere in an object.
type podIn struct {
	role        string
	annotations map[string]string
	spec        map[string]any
}

// trainers are the roles whose pods are a gang's.
var trainers = slices.DeleteFunc(schema.RoleNames(), func(role string) bool { return !job.Trains(role) })

// podsIn finds whatever has containers and, beside it, metadata that names the component of a role.
func podsIn(objects ...map[string]any) (found []podIn) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			metadata, _ := v["metadata"].(map[string]any)
			labels, _ := metadata["labels"].(map[string]any)
			spec, _ := v["spec"].(map[string]any)
			role, _ := labels["app.kubernetes.io/component"].(string)
			if spec["containers"] != nil && slices.Contains(trainers, role) {
				p := podIn{role, map[string]string{}, spec}
				annotations, _ := metadata["annotations"].(map[string]any)
				for k, v := range annotations {
					p.annotations[k], _ = v.(string)
				}
				found = append(found, p)
			}
			for _, item := range v {
				walk(item)
			}
		}
	}
	for _, o := range objects {
		walk(o)
	}
	return found
}

var documentStart = regexp.MustCompile(`(?m)^apiVersion: `)

// parsed splits what supported returns, which has no separators.
func parsed(t *testing.T, text string) (objects []map[string]any) {
	t.Helper()
	starts := documentStart.FindAllStringIndex(text, -1)
	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		var o map[string]any
		if err := yaml.Unmarshal([]byte(text[start[0]:end]), &o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}
