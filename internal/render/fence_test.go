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
	{"resources", "{tmp: 1Gi}", "{tmp: 2Gi}"},
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
	const inside = "fence: true, namespace: ml, "
	decided := 0
	for _, o := range fencedOverrides {
		for _, target := range []string{"job", "jobset", "pods"} {
			var templates [2]map[string]any
			for i, value := range []string{o.a, o.b} {
				env := fmt.Sprintf("overrides: {%s: %s}", o.field, value)
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
				switch {
				case err == nil && len(differences(templates[0], got)) > 0:
					t.Errorf("target %s, %s: podTemplate %s changes the pods", target, env, text)
				case err != nil && !strings.Contains(err.Error(), "fence of Environment") &&
					!strings.Contains(err.Error(), "spec.podTemplate."): // tegen's own, such as the labels of pods
					t.Errorf("target %s, %s: podTemplate %s fails for another reason: %v", target, env, text, err)
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
	bundles, err := Jobs(jobs, Options{})
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
	for _, c := range []struct{ metadata, spec, want string }{
		{"namespace: kube-system", "", "a namespace but ml"},
		{"name: default", "", "the namespace's account"},
		{"annotations: {eks.amazonaws.com/role-arn: 'arn:aws:iam::123456789012:role/admin'}", "", "an identity"},
		{"annotations: {iam.gke.io/gcp-service-account: a@b.iam.gserviceaccount.com}", "", "an identity"},
		{"annotations: {azure.workload.identity/client-id: x}", "", "an identity"},
		{"labels: {azure.workload.identity/use: 'true'}", "", "an identity"},
		{"annotations: {argocd.argoproj.io/hook: Skip}", "", "use workload.annotations"},
		{"annotations: {kustomize.toolkit.fluxcd.io/reconcile: disabled}", "", "use workload.annotations"},
		{"labels: {kustomize.toolkit.fluxcd.io/ssa: Ignore}", "", "use workload.labels"},
		{"labels: {aadpodidbinding: admin}", "", "an identity"},
		{"", "podTemplate: {metadata: {annotations: {iam.amazonaws.com/role: admin}}}", "an identity"},
		{"", "podTemplate: {metadata: {labels: {aadpodidbinding: admin}}}", "identity"},
		{"", "podTemplate: {metadata: {annotations: {k8s.v1.cni.cncf.io/networks: host}}}", "a network"},
		{"", "podTemplate: {metadata: {annotations: {io.kubernetes.cri-o.Devices: /dev/sda}}}", "the runtime"},
		{"", worker("lifecycle: {postStart: {httpGet: {host: 169.254.169.254, port: 80}}}"), "another host"},
		{"", "probes: {liveness: {tcp: 1}}, " + worker("livenessProbe: {tcpSocket: {host: h}}"), "host than"},
		{"", "createNamespace: true", "a Namespace"},
		{"", "network: {policy: false}", "required: NetworkPolicies"},
		{"", "network: {host: true}", "the host network"},
		{"", "identity: {serviceAccount: a}", "an identity"},
		{"", "identity: {nodeRole: {}}", "an identity"},
		{"", "identity: {irsa: {role: 'arn:aws:iam::123456789012:role/a'}}", "an identity"},
		{"", "security: {runAsUser: 0}", "runAsNonRoot"},
		{"", "security: {runAsUser: image}", "runAsNonRoot"},
		{"", "security: {restricted: false}", "allowPrivilegeEscalation"},
		{"", "storage: [{mountPath: /d, hostPath: {path: /, size: 1Gi}}]", "directories of nodes"},
		{"", "storage: [{mountPath: /d, nfs: {server: s, path: /, volume: team-b-pv}}]", "a name that starts with ml-"},
		{"", "framework: horovod", "rights in the API"},
		{"", "framework: dlrover, target: elasticjob", "rights in the API"},
		{"", template("hostPID: true"), "processes of the node"},
		{"", template("hostIPC: true"), "memory of the node"},
		{"", template("hostNetwork: true"), "the host network"},
		{"", template("ephemeralContainers: [{name: e, image: 'e:1'}]"), "phemeral"},
		{"", template("nodeName: n"), "the scheduler chooses nodes"},
		{"", template("serviceAccountName: a"), "an account but"},
		{"", template("automountServiceAccountToken: true"), "a token"},
		{"", template("resources: {limits: {cpu: 1}}"), "resources of pods"},
		{"", template("securityContext: {runAsUser: 0}"), "root"},
		{"", template("securityContext: {runAsNonRoot: false}"), "root"},
		{"", template("securityContext: {sysctls: [{name: a, value: b}]}"), "settings of the kernel"},
		{"", template("securityContext: {seccompProfile: {type: Unconfined}}"), "a profile but"},
		{"", template("securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}"), "a profile but"},
		{"", template("securityContext: {seLinuxOptions: {type: spc_t}}"), "SELinux"},
		{"", template("securityContext: {windowsOptions: {hostProcess: true}}"), "options of Windows"},
		{
			"", "podTemplate: {metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/worker: u}}}",
			"the runtime",
		},
		{"", volume("hostPath: {path: /}"), "directories of nodes"},
		{"", volume("nfs: {server: s, path: /}"), "this kind of volume"},
		{"", volume("csi: {driver: d}"), "this kind of volume"},
		{"", volume("projected: {sources: [{serviceAccountToken: {path: t}}]}"), "a token"},
		{
			"", volume("projected: {sources: [{podCertificate: {signerName: kubernetes.io/kube-apiserver-client-pod, " +
				"keyType: ED25519, credentialBundlePath: c}}]}"), "a certificate",
		},
		{"", volume("emptyDir: {medium: Memory}"), "at most 1Gi in memory"},
		{"", volume("emptyDir: {medium: Memory, sizeLimit: '0'}"), "at most 1Gi in memory"},
		{"", volume("emptyDir: {medium: Memory, sizeLimit: 2Gi}"), "at most 1Gi in memory"},
		{"", worker("ports: [{containerPort: 1, hostPort: 1}]"), "ports of nodes"},
		{"", worker("resources: {limits: {cpu: 5}}"), "at most 4"},
		{"", worker("resources: {limits: {cpu: 0}, requests: {cpu: 0}}"), "at most 4"},
		{"", worker("resources: {limits: {memory: '-1'}, requests: {memory: '-1'}}"), "at most 8Gi"},
		{"", worker("securityContext: {privileged: true}"), "privileged containers"},
		{"", worker("securityContext: {procMount: Unmasked}"), "/proc"},
		{"", worker("securityContext: {capabilities: {add: [SYS_ADMIN]}}"), "a capability but"},
		{"", worker("securityContext: {appArmorProfile: {type: Unconfined}}"), "a profile but"},
		{"", worker("securityContext: {runAsUser: 0}"), "root"},
		{"", initContainer("args: [x]"), "required: allowPriv"},
		{"", initContainer("securityContext: {allowPrivilegeEscalation: false}"), "capabilities.drop"},
		{"", initContainer("securityContext: {" + strings.Replace(dropped, "ALL", "NET_RAW", 1) + "}"), "[ALL]"},
	} {
		err := refusal(c.metadata, c.spec, place)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, not %q", c.metadata, c.spec, err, c.want)
		}
	}
	for _, spec := range []string{
		"", "target: jobset", "rendezvous: {backend: etcd, store: etcd}", "framework: horovod, ssh: {secret: k}",
		initContainer("securityContext: {" + dropped + "}"),
		volume("configMap: {name: c}"), worker("securityContext: {capabilities: {add: [IPC_LOCK]}}"),
	} {
		if err := refusal("", spec, "fence: true, namespace: ml"); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// TestFenceConflicts: no field of a job decides otherwise what an override behind a fence decides.
func TestFenceConflicts(t *testing.T) {
	const etcd = "rendezvous: {backend: etcd, store: etcd}, "
	for _, c := range []struct{ environment, spec, want string }{
		{"overrides: {resources: {cpu: 1}}", "resources: {limits: {cpu: 8}}", "spec.resources.limits: "},
		{"overrides: {resources: {cpu: 1}}", "resources: {requests: {cpu: none}}", "spec.resources.requests: "},
		{"overrides: {resources: {gpu: 0}}", "resources: {devices: {nvidia.com/gpu: 8}}", "spec.resources.devices: "},
		{
			"overrides: {gang: {scheduler: volcano, queue: low}}", "placement: {scheduler: default-scheduler}",
			"spec.placement.scheduler: ",
		},
		{
			"overrides: {network: {egress: closed}}", "network: {allowTo: [{cidr: 0.0.0.0/0, ports: [443]}]}",
			"spec.network.allowTo: ",
		},
		{
			"overrides: {network: {egress: closed}}",
			"rendezvous: {backend: etcd-v2, store: external, endpoint: 'evil.com:443'}", "spec.rendezvous.endpoint: ",
		},
		{"overrides: {network: {egress: closed}}", "images: {fetch: 'e:1'}", "spec.images.fetch: "},
		{
			"overrides: {placement: {priorityClass: a}}", "gang: {scheduler: kueue, queue: q, priority: b}",
			"spec.gang.priority: ",
		},
		{"overrides: {failure: {restarts: 2}}", "target: jobset, failure: {restartAll: 9}", "restartAll: "},
		{
			"overrides: {storage: [{mountPath: /d, claim: c, readOnly: true}]}",
			"sidecars: [{name: s, image: 's:1', mounts: [{volume: data, path: /rw, readOnly: false}]}]",
			"required: readOnly",
		},
		{
			"overrides: {storage: [{mountPath: /d, claim: c, readOnly: true}]}",
			initContainer("volumeMounts: [{name: data, mountPath: /rw}]"), "with volumeMounts",
		},
		{"storage: {replace: all, hostPath: {path: /d}}", "", "spec.storage.hostPath: "},
		{"defaults: {identity: {serviceAccount: a}}", "", "spec.defaults.identity: "},
		{"overrides: {network: {policy: false}}", "", "spec.overrides.network.policy: "},
		{"overrides: {image: 'o:1'}", "target: jobset, groups: [{name: g, image: 'e:1'}]", "spec.groups[0].image: "},
		{
			"overrides: {placement: {tolerations: [{key: a}]}}",
			"target: jobset, groups: [{name: g, command: [x], tolerations: [{key: b}]}]",
			"spec.groups[0].tolerations: ",
		},
		{
			"overrides: {resources: {cpu: 1}}",
			"target: jobset, groups: [{name: g, command: [x], resources: {cpu: 8}}]", "spec.groups[0].resources.cpu: ",
		},
		{
			"overrides: {resources: {cpu: 1}}",
			"target: jobset, groups: [{name: g, command: [x], resources: {limits: {cpu: 8}}}]",
			"spec.groups[0].resources.limits: ",
		},
		{
			"overrides: {placement: {nodeSelector: {pool: a}}}", "target: jobset, groups: [{name: g, command: [x]}]",
			"set nodeSelector of the group or role to pool: a",
		},
		{
			"overrides: {placement: {nodeSelector: {pool: a}}}",
			"target: jobset, groups: [{name: g, command: [x], nodeSelector: {pool: b}}]", "to pool: a",
		},
		{
			"overrides: {placement: {runtimeClass: a}}",
			"target: jobset, groups: [{name: g, command: [x], podTemplate: {spec: {runtimeClassName: b}}}]",
			"spec.groups[0].podTemplate.spec.runtimeClassName: ",
		},
		{
			"overrides: {image: 'o:1', roles: {server: {resources: {cpu: 1}}}}",
			"framework: mxnet, roles: {server: {image: 'e:1'}}", "spec.roles.server.image: ",
		},
		{
			"overrides: {roles: {server: {resources: {cpu: 1}}}}",
			"framework: mxnet, roles: {server: {podTemplate: {spec: {nodeSelector: {a: b}}}}}",
			"spec.roles.server.podTemplate: ",
		},
		{
			"overrides: {placement: {runtimeClass: a}}",
			"framework: mxnet, roles: {server: {podTemplate: {spec: {runtimeClassName: b}}}}",
			"spec.roles.server.podTemplate.spec.runtimeClassName: ",
		},
		{
			"accelerator: {nodeSelector: {a: b}}", "podTemplate: {spec: {nodeSelector: {a: c}}}",
			"sets in accelerator.nodeSelector",
		},
		{
			"storage: {replace: all, emptyDir: {}}",
			"podTemplate: {spec: {volumes: [{name: v, emptyDir: {}}]}}", "sets in storage",
		},
		{
			"overrides: {security: {runAsUser: 1000}}",
			initContainer("securityContext: {runAsUser: 0, " + dropped + "}"), "root",
		},
		{
			"", etcd + "roles: {etcd: {podTemplate: {spec: {containers: [{name: c, image: 'e:1'}]}}}}",
			"other containers beside tegen's own",
		},
		{
			"", etcd + "roles: {etcd: {podTemplate: {spec: {containers: [{name: etcd, command: [sh]}]}}}}",
			"spec.roles.etcd.podTemplate",
		},
	} {
		err := refusal("", c.spec, "fence: true, namespace: ml, "+c.environment)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s; %s: %v, not %q", c.environment, c.spec, err, c.want)
		}
	}
	for environment, spec := range map[string]string{
		"overrides: {resources: {cpu: 1}}": "resources: {cpu: 8, memory: 2Gi}", // replaced, as without a fence
		"overrides: {placement: {nodeSelector: {pool: a}}}": "target: jobset, " +
			"groups: [{name: g, command: [x], nodeSelector: {pool: a, zone: z}}]",
		"overrides: {security: {runAsUser: 0}}":  "",
		"overrides: {network: {egress: closed}}": "storage: [{mountPath: /d, claim: c}]",
	} {
		if err := refusal("", spec, "fence: true, namespace: ml, "+environment); err != nil {
			t.Errorf("%s; %s: %v", environment, spec, err)
		}
	}
}

// dropped are the rights that a fence requires of containers.
const dropped = "allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}"

// initContainer is a podTemplate with an init container of the author's own.
func initContainer(fields string) string {
	return "podTemplate: {spec: {initContainers: [{name: i, image: 'i:1', resources: {limits: {cpu: 1, memory: 1Gi, " +
		"ephemeral-storage: 1Gi}}, " + fields + "}]}}"
}

// refusal is the error of a job with further fields in an Environment.
func refusal(metadata, spec, environment string) error {
	if !strings.Contains(metadata, "name: ") || strings.Contains(metadata, "namespace: ") {
		metadata = "name: j, " + metadata
	}
	text := func(kind, metadata, spec string) []byte {
		return fmt.Appendf(nil, "apiVersion: tegen.dev/v1alpha1\nkind: %s\nmetadata: {%s}\nspec: {%s}\n", kind,
			strings.TrimSuffix(metadata, ", "), spec)
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
		_, err = Jobs(jobs, Options{})
	} else if jobs, onlyJobs := schema.Load(sources, schema.WithoutJobRules()); onlyJobs == nil {
		_, more := Jobs(jobs, Options{})
		err = errors.Join(err, more)
	}
	return err
}
