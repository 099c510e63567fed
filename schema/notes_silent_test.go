package schema

import (
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/schema/note"
)

// TestSilentNotes: what is valid and does otherwise than its author may think is told, and what does as it says is not.
func TestSilentNotes(t *testing.T) {
	const one, two = "workers: {replicas: 1}, ", "workers: {replicas: 2}, "
	const irsa = "identity: {irsa: {role: 'arn:aws:iam::123456789012:role/x'}}"
	for spec, want := range map[string]string{
		two + "gracePeriod: 5m":                                                    "spec.gracePeriod: torchrun kills",
		two + "gracePeriod: 5m, command: [torchrun, t.py]":                         "spec.gracePeriod: torchrun kills",
		two + "gracePeriod: 5m, command: [torchrun, --shutdown-timeout=200, t.py]": "",
		two + "gracePeriod: 30s":                                                   "",
		two:                                                                        "",
		two + "gracePeriod: 5m, launcher: none":                                    "",
		two + "gracePeriod: 5m, launcher: entrypoint, command: [python, t.py]": "",
		two + "gracePeriod: 5m, storage: [{mountPath: /d}], checkpoint: {path: /d, save: {signal: SIGUSR1, " +
			"takes: 4m}}": "",

		two + "command: [torchrun, --nproc-per-nodes=1, t.py]":                           "spec.command[1]: torchrun",
		two + "command: [torchrun, --nproc_per_nodes=1, t.py]":                           "spec.command[1]: torchrun",
		two + "args: [--nproc-per-nodes=1, t.py], launcher: entrypoint":                  "",
		two + "args: [t.py, --nproc-per-nodes=1]":                                        "",
		two + "command: [torchrun, t.py, --tea=3]":                                       "",
		two + "command: [torchrun, --max-restart=3, -t, '3', -m, t]":                     "",
		two + "command: [torchrun, --with-room, x, t.py]":                                "",
		two + "launcher: entrypoint, command: [bash, -c, 'torchrun --maxrestarts 3 t']":  "spec.command[2]: torchrun",
		two + "launcher: entrypoint, command: [bash, -c, 'torchrun $EXTRA --$A=3 t.py']": "",
		two + "command: [python, -m, torch.distributed.run, --rolle=a, t]":               "spec.command[3]: torchrun",

		one + "command: [python, t.py, " +
			"'--a=$(MASTER_ADDR)']": "spec.command[2]: no variable MASTER_ADDR",
		one + "args: ['--a=$(ADDR)']": "spec.args[0]: no variable ADDR is there",
		one + "env: [{name: A, " +
			"value: '$(B)/c'}]": "spec.env[0].value: no variable B",
		one + "env: [{name: B, value: x}, {name: A, value: '$(B)/c'}]": "",
		one + "env: [{name: A, value: '$(B)/c'}, {name: B, " +
			"value: x}]": "spec.env[0].value: Kubernetes leaves $(B)",
		one + "env: [{name: A, " +
			"value: '$(A)/c'}]": "spec.env[0].value: Kubernetes leaves $(A)",
		one + "env: [{name: A, value: '$$(B)/c'}]":                                         "",
		one + "env: [{name: A, value: '$(B)/c'}], envFrom: [{secret: s}]":                  "",
		one + "env: [{name: A, value: '$(a b)'}]":                                          "",
		one + "launcher: entrypoint, command: [sh, -c, 'python t.py $(hostname)']":         "",
		one + "command: [python, t.py, '$(CHECKPOINT_DIR)', '$(PET_NNODES)', '$(HOME)']":   "",
		two + "framework: horovod, target: mpijob, command: [python, t.py, '$(WHATEVER)']": "",
		two + "target: jobset, args: [t.py], groups: [{name: eval, command: [python, e.py, " +
			"'$(NOBODY)']}]": "spec.groups[0].command[2]: no",

		two + "storage: [{mountPath: /d}], " + irsa:                               "spec.storage[0]: the claim is",
		two + "storage: [{mountPath: /d}]":                                        "",
		two + "storage: [{mountPath: /d, dynamic: {storageClass: efs}}], " + irsa: "",
		two + "storage: [{mountPath: /d, claim: mine}], " + irsa:                  "",
		two + "storage: [{mountPath: /d}], resources: {machine: p5.48xlarge, " +
			"gpu: 8}": "spec.storage[0]: the claim is",
		two + "storage: [{mountPath: /d}], resources: {machine: a3-highgpu-8g, gpu: 8, cpu: 9, memory: 9Gi}": "",
	} {
		j := expect(t, spec, "")
		if j == nil {
			continue
		}
		notes := strings.Join(note.SilentNotes(j), "\n")
		if (want == "") != (notes == "") || !strings.HasPrefix(notes, want) {
			t.Errorf("%s\nnotes %q\nwant  %q", spec, notes, want)
		}
	}
}

// TestEnvironmentNotes: an Environment that mounts another claim than the author's, or asks for nodes of other labels
// than the job's machine has, is no mistake of either, and is told.
func TestEnvironmentNotes(t *testing.T) {
	const environment = "---\napiVersion: tegen.dev/v1alpha1\nkind: Environment\nmetadata: {name: e}\nspec: "
	const claim = "workers: {replicas: 1}, storage: [{mountPath: /d, claim: mine}]"
	const machine = "workers: {replicas: 1}, resources: {machine: g5.xlarge, gpu: 1}"
	for _, c := range []struct{ spec, environment, want string }{
		{claim, "{storage: {replace: all, dynamic: {}}}", "mounts the claim a-data in place of mine"},
		{claim, "{storage: {replace: unnamed, dynamic: {}}}", ""},
		{"workers: {replicas: 1}, storage: [{mountPath: /d}]", "{storage: {replace: all, dynamic: {}}}", ""},
		{
			machine, "{accelerator: {nodeSelector: {nodegroup: gpu}}}",
			"g5.xlarge that have the Environment's labels too, nodegroup: gpu",
		},
		{machine, "{accelerator: {nodeSelector: {node.kubernetes.io/instance-type: g6.xlarge}}}", ""},
		{
			machine, "{accelerator: {nodeSelector: {nodegroup: gpu}}, machines: [{name: g5.xlarge, gpu: 1, cpu: 3, " +
				"memory: 12Gi}]}", "",
		},
		{"workers: {replicas: 1}", "{accelerator: {nodeSelector: {nodegroup: gpu}}}", ""},
	} {
		text := jobHead + c.spec + "}\n" + environment + c.environment + "\n"
		jobs, err := Load(named("f", text))
		if err != nil {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		notes := strings.Join(note.SilentNotes(jobs[0]), "\n")
		if (c.want == "") != (notes == "") || !strings.Contains(notes, c.want) {
			t.Errorf("%s %s: notes %q, want %q", c.spec, c.environment, notes, c.want)
		}
	}
}

// TestReleasedDefinition: TorchElastic's own definition drops a part of what is rendered; DLRover's does not.
func TestReleasedDefinition(t *testing.T) {
	for spec, want := range map[string]bool{
		"target: elasticjob, rendezvous: {backend: etcd, store: etcd}, ": true,
		"framework: dlrover, target: elasticjob, ":                       false, "target: pytorchjob, ": false,
	} {
		notes := note.Of(loadOne(t, jobHead+spec+"workers: {replicas: 2}}\n"))
		if got := strings.Contains(strings.Join(notes, "\n"), "tegen install crds"); got != want {
			t.Errorf("%s: a note: %t, want %t: %q", spec, got, want, notes)
		}
	}
}

// TestPrivilegedNamespace: a Namespace that admits everything is reported.
func TestPrivilegedNamespace(t *testing.T) {
	for spec, want := range map[string]bool{
		"createNamespace: true, network: {host: true}, ": true, "createNamespace: true, ": false,
		"network: {host: true}, ": false,
	} {
		notes := note.Of(loadOne(t, jobHead+spec+"workers: {replicas: 2}}\n"))
		if got := strings.Contains(strings.Join(notes, "\n"), "level privileged"); got != want {
			t.Errorf("%s: a note: %t, want %t: %q", spec, got, want, notes)
		}
	}
}
