package generators

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tegen-dev/tegen/internal/manifest"
	"github.com/tegen-dev/tegen/schema"
	"github.com/tegen-dev/tegen/schema/job"
	"github.com/tegen-dev/tegen/schema/target"
)

// bare is a job of a target with nothing in it that need not be.
var bare = map[string]string{
	"torchelastic":            "workers: {replicas: 2}",
	"torchelastic/elasticjob": "workers: {replicas: 2}, rendezvous: {backend: etcd, store: etcd}",
	"dlrover":                 "workers: {replicas: 2}",
	"mxnet":                   "workers: {replicas: 2}",
	"horovod":                 "workers: {replicas: 2}",
	"bytescheduler":           "workers: {replicas: 2}",
	"jax":                     "workers: {replicas: 2}",
	"mpi":                     "workers: {replicas: 2}",
}

// asRoot is what an sshd of the image's own needs.
const asRoot = "security: {runAsUser: image, restricted: false}"

// uses is a feature in use where it needs more than the field as a valid fixture has it; another framework's words for
// it stand under framework/feature.
var uses = map[string]string{
	"torchelastic/elasticjob/rendezvous.maxRestarts": "rendezvous: {backend: etcd, store: etcd, maxRestarts: 7}",

	"launcher":              "launcher: entrypoint",
	"workers.min":           "workers: {replicas: 2, min: 1}",
	"workers.slices":        "workers: {replicas: 2, slices: 2}",
	"workers.autoscale.cpu": "workers: {min: 1, max: 2, autoscale: {cpu: 80}}",
	"workers.firstIndex":    "workers: {replicas: 2, firstIndex: 0}",
	"workers.master":        "workers: {replicas: 2, master: true}, launcher: entrypoint",
	"rendezvous":            "rendezvous: {backend: etcd, store: etcd, etcd: {name: e}}",
	"rendezvous.proxy":      "rendezvous: {store: etcd, proxy: true}, images: {rendezvous: 'r:1'}",
	"launcher=none":         "launcher: none",
	"ssh":                   "ssh: {port: 2222}",
	"ssh.server=image": "ssh: {server: image}, mpi: {launch: command}, " +
		"security: {runAsUser: image, restricted: false}",
	"mxnet":                     "mxnet: {mode: local}, workers: {replicas: 1}",
	"horovod":                   "horovod: {startTimeout: 7m}",
	"bytescheduler":             "bytescheduler: {partition: 7}",
	"dlrover":                   "dlrover: {networkCheck: true}",
	"jax":                       "jax: {port: 2345}",
	"mpi":                       "mpi: {options: [--tag-output], startTimeout: 7m}",
	"volcano.plugins":           "volcano: {plugins: {ssh: [--ssh-port=2222]}}, " + asRoot,
	"gang.scheduler=kueue":      "gang: {scheduler: kueue, queue: team}",
	"gang.scheduler=kubernetes": `gang: {scheduler: kubernetes}, kubernetesVersion: "1.36"`,
	"gang.topology":             "gang: {scheduler: tegen, topology: {level: node}}",

	"torchelastic/vcjob/gang.topology": "gang: {scheduler: volcano, topology: {level: node}}",

	"storage.onDelete": "storage: [{mountPath: /data, onDelete: delete}]",
	"storage.dataset":  "storage: [{mountPath: /data, claim: c, dataset: {url: https://example.org/d.tar}}]",
	"checkpoint":       "storage: [{mountPath: /data, claim: c}], checkpoint: {path: /data/ckpt}",
	"checkpoint.save": "storage: [{mountPath: /data, claim: c}], checkpoint: {path: /data/ckpt, " +
		"save: {signal: SIGUSR1, takes: 5m}}",
	"managedBy":           "managedBy: kueue.x-k8s.io/multikueue, gang: {scheduler: kueue, queue: team}",
	"mxnet/job/managedBy": "managedBy: acme.example/dispatcher",
	"placement.spot":      "placement: {spot: true, provisioner: gke}",
	"sidecars": "sidecars: [{name: board, image: 'tb:1', mounts: [{volume: data}]}], " +
		"storage: [{mountPath: /data, claim: c}]",
	"metrics":            "metrics: {port: 9100}",
	"metrics.podMonitor": "metrics: {port: 9100, podMonitor: true}",
	"network.allowFrom":  "network: {allowFrom: [{namespace: monitoring, ports: [9100]}]}",
	"network.allowTo":    "network: {egress: closed, allowTo: [{cidr: 10.0.0.0/8, ports: [443]}]}",
	"network.egress":     "network: {egress: closed}",
	"probes.startup":     "probes: {startup: {tcp: 80}}",
	"probes.liveness":    "probes: {liveness: {tcp: 80}}",
	"probes.readiness":   "probes: {readiness: {tcp: 80}}",
	"script.image":       "script: {image: /main.py}, command: null",
	"code.git":           "code: {mountPath: /w, git: {repository: 'https://host/a.git'}}",
	"code.image":         "code: {mountPath: /w, image: 'a/code:1'}, kubernetesVersion: '1.36'",

	"script.s3":              "script: {s3: 's3://bucket/main.py'}, identity: {nodeRole: {}}, command: null",
	"script.configMap":       "script: {configMap: {name: code}}, command: null",
	"identity":               "identity: {serviceAccount: trainer}",
	"failure.restarts=none":  "failure: {restarts: none}",
	"failure.fatalExitCodes": "failure: {fatalExitCodes: [1]}",
	"failure.inPlace":        "failure: {inPlace: true}",
	"resources.machine":      "resources: {machine: p5.4xlarge, gpu: 1}, network: {fabric: none}",
	"resources.deviceClass":  "resources: {deviceClass: gpu.nvidia.com, gpu: 2, cpu: 1, memory: 4Gi}",
	"resources.claims":       "resources: {claims: [channel]}",
	"resources.devices":      "resources: {devices: {vpc.amazonaws.com/efa: 1}}",
	"network.fabric":         "resources: {devices: {vpc.amazonaws.com/efa: 1}}, network: {fabric: efa}",
	"resources":              "resources: {requests: {cpu: 500m}, limits: {memory: none}}",
	"roles.server":           "roles: {server: {workingDir: /ps, nodeSelector: {a: b}}}",
	"roles.scheduler": "roles: {scheduler: {resources: {memory: none}, tolerations: [{key: a, " +
		"operator: Exists}]}}",
	"roles.launcher": "roles: {launcher: {image: 'y:1', podTemplate: {spec: {hostIPC: true}}}}",
	"roles.etcd":     "rendezvous: {backend: etcd, store: etcd}, roles: {etcd: {nodeSelector: {a: b}}}",
	"roles.companion": "rendezvous: {backend: etcd, store: companion}, images: {rendezvous: 'r:1'}, " +
		"roles: {companion: {nodeSelector: {a: b}}}",
	"roles.helper": "storage: [{mountPath: /data, claim: c, dataset: {url: " +
		"https://example.org/d.tar}}], roles: {helper: {nodeSelector: {a: b}}}",
	"groups":             "groups: [{name: side, command: [x]}]",
	"groups.after":       "groups: [{name: side, command: [x], after: [{group: worker}]}]",
	"groups.after=done":  "groups: [{name: side, command: [x], after: [{group: worker, when: done}]}]",
	"success":            "success: {groups: [worker], when: any}",
	"success=all":        "groups: [{name: side, command: [x]}], success: {groups: [worker, side]}",
	"coordinator":        "coordinator: {group: worker, index: 1}",
	"failure.restartAll": "failure: {restartAll: 4}",
	"failure.rules":      "failure: {restartAll: 4, rules: [{groups: [worker], then: fail}]}",
	"groups.failure":     "groups: [{name: side, command: [x], failure: {inPlace: true}}]",

	"failure.restartAllOn":      "failure: {restartAll: 4, restartAllOn: eviction}",
	"failure.restartAllInPlace": "failure: {restartAll: 4, restartAllInPlace: true}",
	"podTemplate":               "podTemplate: {spec: {dnsPolicy: Default}}",

	// Only a worker alone is replaced.
	"mxnet/job/failure.restarts": "mxnet: {mode: local}, workers: {replicas: 1}, failure: {restarts: 9}",
	"mxnet/job/failure.restartsPerWorker": "mxnet: {mode: local}, workers: {replicas: 1}, " +
		"failure: {restartsPerWorker: 9}",
	"mxnet/job/failure.fatalExitCodes": "mxnet: {mode: local}, workers: {replicas: 1}, " +
		"failure: {fatalExitCodes: [1]}",
	"mxnet/job/failure.inPlace": "mxnet: {mode: local}, workers: {replicas: 1}, failure: {inPlace: true}",
	"mxnet/job/failure.ignoreDisruptions": "mxnet: {mode: local}, workers: {replicas: 1}, " +
		"failure: {ignoreDisruptions: false}",

	"horovod/workers.min":   "workers: {replicas: 3, min: 2}", // one alone needs the interface
	"bytescheduler/servers": "bytescheduler: {mode: byteps}, servers: {replicas: 3}",

	"bytescheduler/roles.server":    "bytescheduler: {mode: byteps}, roles: {server: {workingDir: /ps}}",
	"bytescheduler/roles.scheduler": "bytescheduler: {mode: byteps}, roles: {scheduler: {workingDir: /ps}}",
}

// TestSupport proves the table of targets: what a target carries changes what is rendered in all that the feature
// shows, and what it lacks is refused with the reason, so that nothing is ever dropped without a word.
func TestSupport(t *testing.T) {
	for _, tgt := range target.All {
		text, err := supported(tgt, "")
		if err != nil {
			t.Errorf("%s/%s: %v", tgt.Framework, tgt.Name, err)
			continue
		}
		plain := pathsIn(parsed(t, text))
		for _, f := range target.Features {
			t.Run(tgt.Framework+"/"+tgt.Name+"/"+f.Name, func(t *testing.T) {
				got, err := supported(tgt, f.Name)
				switch reason := tgt.Lacks[f.Name]; {
				case !tgt.Carries(f.Name) && (err == nil || !strings.Contains(err.Error(), reason)):
					t.Errorf("lacks it, but is not refused with %q: %v", reason, err)
				case tgt.Carries(f.Name) && err != nil:
					t.Errorf("carries it, but: %v", err)
				case tgt.Carries(f.Name):
					showsAll(t, f, plain, pathsIn(parsed(t, got)))
				}
			})
		}
	}
}

// showsAll holds what a feature adds to what is rendered, and takes away, against all that it must show.
func showsAll(t *testing.T, f target.Feature, before, after map[string]bool) {
	t.Helper()
	if len(f.Shows) == 0 {
		t.Error("schema.Features does not say what it shows")
	}
	for _, shows := range f.Shows {
		found := false
		for one := range strings.SplitSeq(shows, "|") {
			from, to := before, after
			gone, taken := strings.CutPrefix(one, "-")
			if taken {
				from, to = after, before
			}
			for path := range to {
				found = found || !from[path] && strings.Contains(path, gone)
			}
		}
		if !found {
			t.Errorf("carries it, but nothing that is rendered shows %s", shows)
		}
	}
}

// supported renders a bare job of the target that uses a feature.
func supported(target target.Target, feature string) (string, error) {
	if feature != "" && useOf(target, feature) == "" {
		return "", errors.New("neither a valid fixture nor uses has an example of it")
	}
	text := example(target, feature)
	jobs, err := schema.Load([]schema.Source{{Name: "job.yaml", Data: []byte(text)}})
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	return textOf(jobs[0].WithoutInput())
}

// textOf are all objects of a job.
func textOf(j *job.Job) (string, error) {
	var out []byte
	for _, c := range Generate(j) {
		for _, obj := range c.Objects {
			var err error
			if out, err = manifest.Append(out, obj); err != nil {
				return "", err
			}
		}
	}
	return string(out), nil
}

// example is a bare job of the target that uses a feature.
func example(target target.Target, feature string) string {
	base, ok := bare[target.Framework+"/"+target.Name]
	if !ok {
		base = bare[target.Framework]
	}
	text := fmt.Sprintf("apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: j, "+
		"namespace: ml}\nspec:\n  framework: %s\n  target: %s\n  image: x:1\n",
		target.Framework, target.Name)
	fields := map[string]bool{}
	for _, part := range append(topLevel(useOf(target, feature)), append(topLevel(base), "command: [train]")...) {
		name, value, _ := strings.Cut(part, ":")
		if !fields[name] && strings.TrimSpace(value) != "null" {
			text += "  " + part + "\n"
		}
		fields[name] = true
	}
	return text
}

// useOf is the use of a feature that is nearest to the target; "" of none.
func useOf(target target.Target, feature string) string {
	for _, key := range []string{target.Framework + "/" + target.Name + "/", target.Framework + "/", ""} {
		if use, ok := uses[key+feature]; ok {
			return use
		}
	}
	if scheduler, gang := strings.CutPrefix(feature, "gang.scheduler="); gang {
		return "gang: {scheduler: " + scheduler + "}"
	}
	return fixtureUse(feature)
}

// fixtureUse is the first use of a field in the valid fixtures, alone; "" where none has it.
func fixtureUse(feature string) string {
	path := strings.Split(feature, ".")
	for _, spec := range fixtureSpecs() {
		if value, found, err := unstructured.NestedFieldNoCopy(spec, path...); err == nil && found {
			for _, key := range slices.Backward(path[1:]) {
				value = map[string]any{key: value}
			}
			text, err := json.Marshal(value)
			if err != nil {
				panic(err)
			}
			return path[0] + ": " + string(text)
		}
	}
	return ""
}

// fixtureSpecs are the specs of the first job of each valid fixture.
var fixtureSpecs = sync.OnceValue(func() (specs []map[string]any) {
	names, err := filepath.Glob("../fixtures/valid/*.yaml")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		var job struct{ Spec map[string]any }
		first, _, _ := strings.Cut(string(text), "\n---\n")
		if yaml.Unmarshal([]byte(first), &job) == nil {
			specs = append(specs, job.Spec)
		}
	}
	return specs
})

// topLevel splits "a: {x: y}, b: z" at the commas outside brackets and quotes.
func topLevel(text string) (parts []string) {
	depth, start, quoted := 0, 0, false
	for i, c := range text {
		switch {
		case c == '"' || c == '\'':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("{[", c):
			depth++
		case strings.ContainsRune("}]", c):
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	if rest := strings.TrimSpace(text[start:]); rest != "" {
		parts = append(parts, rest)
	}
	return parts
}
