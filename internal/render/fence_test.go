package render

import (
	"encoding/json"
	"errors"
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

// TestFence: what an author writes to leave the fence of an Environment is refused, each by its own rule.
func TestFence(t *testing.T) {
	const place = "fence: true, namespace: ml, caps: {cpu: 4, memory: 8Gi, ephemeralStorage: 10Gi, shm: 1Gi}"
	template := func(spec string) string { return "podTemplate: {spec: {" + spec + "}}" }
	worker := func(fields string) string { return template("containers: [{name: worker, " + fields + "}]") }
	volume := func(source string) string { return template("volumes: [{name: v, " + source + "}]") }
	beside := func(fields string) string {
		return template("initContainers: [{name: i, image: 'i:1', resources: {limits: {cpu: 1, memory: 1Gi, " +
			"ephemeral-storage: 1Gi}}, " + fields + "}]")
	}
	for _, c := range []struct{ metadata, spec, want string }{
		{"namespace: kube-system", "", "no namespace but ml"},
		{"name: default", "", "no job named default"},
		{"annotations: {eks.amazonaws.com/role-arn: 'arn:aws:iam::123456789012:role/admin'}", "", "no identity"},
		{"annotations: {iam.gke.io/gcp-service-account: a@b.iam.gserviceaccount.com}", "", "no identity"},
		{"annotations: {azure.workload.identity/client-id: x}", "", "no identity"},
		{"labels: {azure.workload.identity/use: 'true'}", "", "no identity"},
		{"annotations: {argocd.argoproj.io/hook: Skip}", "", "no options of reconcilers"},
		{"annotations: {kustomize.toolkit.fluxcd.io/reconcile: disabled}", "", "no options of reconcilers"},
		{"", "createNamespace: true", "no Namespace"},
		{"", "network: {policy: false}", "demands NetworkPolicies"},
		{"", "network: {host: true}", "no host network"},
		{"", "identity: {serviceAccount: a}", "no identity"},
		{"", "identity: {nodeRole: {}}", "no identity"},
		{"", "identity: {irsa: {role: 'arn:aws:iam::123456789012:role/a'}}", "no identity"},
		{"", "security: {runAsUser: 0}", "runAsNonRoot"},
		{"", "security: {runAsUser: image}", "runAsNonRoot"},
		{"", "security: {restricted: false}", "allowPrivilegeEscalation"},
		{"", "storage: [{mountPath: /d, hostPath: {path: /, size: 1Gi}}]", "no directories of nodes"},
		{"", "storage: [{mountPath: /d, nfs: {server: s, path: /, volume: team-b-pv}}]", "a name that starts with ml-"},
		{"", "framework: horovod", "no rights in the API"},
		{"", "framework: dlrover, target: elasticjob", "no rights in the API"},
		{"", template("hostPID: true"), "no processes of the node"},
		{"", template("hostIPC: true"), "no memory of the node"},
		{"", template("hostNetwork: true"), "no host network"},
		{"", template("nodeName: n"), "choice of nodes"},
		{"", template("serviceAccountName: a"), "no account but"},
		{"", template("automountServiceAccountToken: true"), "no token"},
		{"", template("resources: {limits: {cpu: 1}}"), "no resources of pods"},
		{"", template("securityContext: {runAsUser: 0}"), "no root"},
		{"", template("securityContext: {runAsNonRoot: false}"), "no root"},
		{"", template("securityContext: {sysctls: [{name: a, value: b}]}"), "settings of the kernel"},
		{"", template("securityContext: {seccompProfile: {type: Unconfined}}"), "no profile"},
		{"", template("securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}"), "no profile"},
		{"", template("securityContext: {seLinuxOptions: {type: spc_t}}"), "SELinux"},
		{"", template("securityContext: {windowsOptions: {hostProcess: true}}"), "options of Windows"},
		{
			"", "podTemplate: {metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/worker: u}}}",
			"no profile",
		},
		{"", volume("hostPath: {path: /}"), "no directories of nodes"},
		{"", volume("nfs: {server: s, path: /}"), "allows volumes of"},
		{"", volume("csi: {driver: d}"), "allows volumes of"},
		{"", volume("projected: {sources: [{serviceAccountToken: {path: t}}]}"), "no token"},
		{
			"", volume("projected: {sources: [{podCertificate: {signerName: kubernetes.io/kube-apiserver-client-pod, " +
				"keyType: ED25519, credentialBundlePath: c}}]}"), "no certificate",
		},
		{"", volume("emptyDir: {medium: Memory}"), "at most 1Gi for memory"},
		{"", volume("emptyDir: {medium: Memory, sizeLimit: '0'}"), "at most 1Gi for memory"},
		{"", volume("emptyDir: {medium: Memory, sizeLimit: 2Gi}"), "at most 1Gi for memory"},
		{"", worker("ports: [{containerPort: 1, hostPort: 1}]"), "no ports of nodes"},
		{"", worker("resources: {limits: {cpu: 5}}"), "at most 4"},
		{"", worker("resources: {limits: {cpu: 0}, requests: {cpu: 0}}"), "at most 4"},
		{"", worker("resources: {limits: {memory: '-1'}, requests: {memory: '-1'}}"), "at most 8Gi"},
		{"", worker("securityContext: {privileged: true}"), "no privileged"},
		{"", worker("securityContext: {procMount: Unmasked}"), "/proc"},
		{"", worker("securityContext: {capabilities: {add: [SYS_ADMIN]}}"), "no capability but"},
		{"", worker("securityContext: {appArmorProfile: {type: Unconfined}}"), "no profile"},
		{"", worker("securityContext: {runAsUser: 0}"), "no root"},
		{"", beside("args: [x]"), "demands a securityContext"},
		{"", beside("securityContext: {allowPrivilegeEscalation: false}"), "capabilities.drop"},
		{"", beside("securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [NET_RAW]}}"), "[ALL]"},
	} {
		err := refusal(c.metadata, c.spec, place)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, not %q", c.metadata, c.spec, err, c.want)
		}
	}
	for _, spec := range []string{
		"", "target: jobset", "rendezvous: {backend: etcd, store: etcd}", "framework: horovod, ssh: {secret: k}",
		beside("securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"),
		volume("configMap: {name: c}"), worker("securityContext: {capabilities: {add: [IPC_LOCK]}}"),
	} {
		if err := refusal("", spec, "fence: true, namespace: ml"); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// refusal is the error of a job with further fields in an Environment.
func refusal(metadata, spec, environment string) error {
	if !strings.Contains(metadata, "name: ") || strings.Contains(metadata, "namespace: ") {
		metadata = "name: j, " + metadata
	}
	text := func(kind, metadata, spec string) []byte {
		return []byte("apiVersion: tegen.dev/v1alpha1\nkind: " + kind + "\nmetadata: {" + strings.TrimSuffix(metadata, ", ") +
			"}\nspec: {" + spec + "}\n")
	}
	job := "image: 'x:1', command: [x], workers: {replicas: 2}"
	if spec != "" {
		job += ", " + spec
	}
	sources := []schema.Source{
		{Name: "job.yaml", Data: text("TrainingJob", metadata, job)},
		{Name: "env.yaml", Data: text("Environment", "name: e", environment), Environment: schema.AnyEnvironment},
	}
	jobs, err := schema.Load(sources)
	if err == nil {
		_, err = Jobs(jobs, nil)
	} else if jobs, onlyJobs := schema.Load(sources, schema.WithoutJobRules()); onlyJobs == nil {
		_, more := Jobs(jobs, nil)
		err = errors.Join(err, more)
	}
	return err
}
