package render

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/apis"
	"github.com/tegen-dev/tegen/internal/yamldoc"
	"github.com/tegen-dev/tegen/schema"
)

// fencedOverrides are fields of a job with two values each: overrides has the one, and an author wants the other.
var fencedOverrides = []struct{ field, a, b string }{
	{"image", "a:1", "b:1"},
	{"imagePullPolicy", "Always", "Never"},
	{"imagePullSecrets", "[a]", "[b]"},
	{"command", "[a]", "[b]"},
	{"args", "[a]", "[b]"},
	{"workingDir", "/a", "/b"},
	{"env", "[{name: A, value: a}]", "[{name: A, value: b}]"},
	{"envFrom", "[{secret: a}]", "[{secret: b}]"},
	{"gracePeriod", "1m", "2m"},
	{"probes", "{liveness: {exec: [a]}}", "{liveness: {exec: [b]}}"},
	{"probes", "{startup: {exec: [a]}}", "{startup: {exec: [b]}}"},
	{"probes", "{readiness: {exec: [a]}}", "{readiness: {exec: [b]}}"},
	{"resources", "{cpu: 1}", "{cpu: 2}"},
	{"resources", "{memory: 1Gi}", "{memory: 2Gi}"},
	{"resources", "{ephemeralStorage: 1Gi}", "{ephemeralStorage: 2Gi}"},
	{"resources", "{gpu: 1, cpu: 1, memory: 1Gi}", "{gpu: 2, cpu: 1, memory: 1Gi}"},
	{"resources", "{cpu: 4, requests: {cpu: 1}}", "{cpu: 4, requests: {cpu: 2}}"},
	{"resources", "{devices: {acme.com/nic: 1}}", "{devices: {acme.com/nic: 2}}"},
	{"resources", "{shm: 1Gi}", "{shm: 2Gi}"},
	{"resources", "{claims: [a]}", "{claims: [b]}"},
	{"placement", "{scheduler: a}", "{scheduler: b}"},
	{"placement", "{priorityClass: a}", "{priorityClass: b}"},
	{"placement", "{preemptionPolicy: Never}", "{preemptionPolicy: PreemptLowerPriority}"},
	{"placement", "{runtimeClass: a}", "{runtimeClass: b}"},
	{"placement", "{nodeSelector: {pool: a}}", "{nodeSelector: {pool: b}}"},
	{"placement", "{tolerations: [{key: a}]}", "{tolerations: [{key: b}]}"},
	{"placement", "{spot: false}", "{spot: true, provisioner: gke}"},
	{"network", "{interface: eth0}", "{interface: eth1}"},
	{"network", "{fabric: none}", "{fabric: infiniband}, resources: {devices: {rdma/ib: 1}}, security: {runAsUser: 0}"},
	{"network", "{collective: gloo}", "{collective: nccl}"},
	{"security", "{runAsUser: 1000}", "{runAsUser: 2000}"},
	{"security", "{runAsGroup: 1000}", "{runAsGroup: 2000}"},
	{"security", "{fsGroup: 1000}", "{fsGroup: 2000}"},
	{"security", "{readOnlyRootFilesystem: true}", "{readOnlyRootFilesystem: false}"},
	{"security", "{restricted: true}", "{restricted: false}"},
	{"identity", "{serviceAccount: a}", "{serviceAccount: b}"},
	{"storage", "[{mountPath: /d, claim: a}]", "[{mountPath: /d, claim: b}]"},
	{"storage", "[{mountPath: /a, claim: a}]", "[{mountPath: /b, claim: a}]"},
	{"gang", "{scheduler: kueue, queue: a}", "{scheduler: kueue, queue: b}"},
	{"gang", "{scheduler: volcano, queue: a}", "{scheduler: volcano, queue: b}"},
	{"gang", "{scheduler: koordinator, waitTimeout: 5m}", "{scheduler: koordinator, waitTimeout: 6m}"},
	{
		"checkpoint", "{path: /c/a}, storage: [{mountPath: /c, claim: c}]",
		"{path: /c/b}, storage: [{mountPath: /c, claim: c}]",
	},
	{
		"checkpoint", "{path: /c, save: {signal: SIGUSR1, takes: 1m}}, storage: [{mountPath: /c, claim: c}]",
		"{path: /c, save: {signal: SIGUSR2, takes: 1m}}, storage: [{mountPath: /c, claim: c}]",
	},
	{"sidecars", "[{name: log, image: 'a:1'}]", "[{name: log, image: 'b:1'}]"},
	{"sidecars", "[{name: log, image: 'a:1', args: [a]}]", "[{name: log, image: 'a:1', args: [b]}]"},
	{"metrics", "{port: 9000}", "{port: 9001}"},
	{
		"code", "{mountPath: /src, git: {repository: 'https://a/x', ref: main}}",
		"{mountPath: /src, git: {repository: 'https://b/x', ref: main}}",
	},
	{"script", "{configMap: {name: a, key: x}}", "{configMap: {name: b, key: x}}"},
	{"rendezvous", "{maxRestarts: 1}", "{maxRestarts: 2}"},
}

// TestFenceOverrides: whatever of the workers' pods an override decides, no podTemplate decides otherwise behind a
// fence. What it decides is seen by rendering two values of the override.
func TestFenceOverrides(t *testing.T) {
	const outside, inside = "", "fence: true, namespace: ml, "
	decided := 0
	for _, o := range fencedOverrides {
		for _, target := range []string{"job", "jobset", "pods"} {
			var templates [2]map[string]any
			for i, value := range []string{o.a, o.b} {
				env := fmt.Sprintf("%soverrides: {%s: %s}", outside, o.field, value)
				var err error
				if templates[i], err = workerTemplate(env, target, "{}"); err != nil {
					t.Logf("%s, %s: %v", target, env, err)
				}
			}
			if templates[0] == nil || templates[1] == nil {
				continue // the target has no such field
			}
			env := fmt.Sprintf("%soverrides: {%s: %s}", inside, o.field, o.a)
			if _, err := workerTemplate(env, target, "{}"); err != nil {
				t.Errorf("target %s, %s: without a podTemplate: %v", target, env, err)
			}
			for _, patch := range differences(templates[0], templates[1]) {
				decided++
				text, err := json.Marshal(patch)
				if err != nil {
					t.Fatal(err)
				}
				got, err := workerTemplate(env, target, string(text))
				if err == nil && len(differences(templates[0], got)) > 0 {
					t.Errorf("target %s, %s: podTemplate %s changes the pods", target, env, text)
				}
			}
		}
	}
	if decided < 100 {
		t.Errorf("overrides decided %d fields, fewer than 100", decided)
	}
}

// workerTemplate is the pod template of the workers of a job under an Environment.
func workerTemplate(environment, target, podTemplate string) (map[string]any, error) {
	job := fmt.Sprintf("apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j, namespace: ml}\n"+
		"spec: {image: 'x:1', command: [x], workers: {replicas: 2}, target: %s, podTemplate: %s}\n",
		target, podTemplate)
	env := "apiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: {" + environment + "}\n"
	jobs, err := schema.Load([]schema.Source{
		{Name: "job.yaml", Data: []byte(job)},
		{Name: "env.yaml", Data: []byte(env), Environment: schema.AnyEnvironment},
	})
	if err != nil {
		return nil, err
	}
	bundles, err := Jobs(jobs, nil)
	if err != nil {
		return nil, err
	}
	for _, concern := range bundles[0].Objects() {
		for _, o := range concern.Objects {
			if w := apis.WorkloadOf(o); w != nil && len(w.PodSets()) > 0 {
				text, err := json.Marshal(w.PodSets()[0].Template)
				if err != nil {
					return nil, err
				}
				var template map[string]any
				return template, json.Unmarshal(text, &template)
			}
		}
	}
	return nil, fmt.Errorf("no workload")
}

// differences are podTemplates that each give one field of a the value of b.
func differences(a, b map[string]any) (patches []map[string]any) {
	var walk func(a, b any, path yamldoc.Path)
	walk = func(a, b any, path yamldoc.Path) {
		if reflect.DeepEqual(a, b) || b == nil {
			return
		}
		switch b := b.(type) {
		case map[string]any:
			a, ok := a.(map[string]any)
			if !ok {
				a = map[string]any{}
			}
			for key := range b {
				walk(a[key], b[key], path.Add(key))
			}
			return
		case []any:
			named := []string{"containers", "initContainers", "volumes", "env"}
			if slices.Contains(named, path[len(path)-1]) {
				items, _ := a.([]any)
				for _, item := range b {
					name := item.(map[string]any)["name"].(string)
					i := slices.IndexFunc(items, func(v any) bool { return v.(map[string]any)["name"] == name })
					var was any
					if i >= 0 {
						was = items[i]
					}
					walk(was, item, path.Add("["+name+"]"))
				}
				return
			}
		}
		patches = append(patches, patchOf(path, b).(map[string]any))
	}
	walk(a, b, nil)
	return patches
}

// patchOf is a value below a path, in which [name] is an item of a list.
func patchOf(path yamldoc.Path, value any) any {
	if len(path) == 0 {
		return value
	}
	below := patchOf(path[1:], value)
	name, item := strings.CutPrefix(path[0], "[")
	if !item {
		return map[string]any{path[0]: below}
	}
	m := below.(map[string]any)
	m["name"] = strings.TrimSuffix(name, "]")
	return []any{m}
}
