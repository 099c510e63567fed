package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/tegen-dev/tegen/internal/names"
)

// fieldOf is the path that a hint begins with.
func fieldOf(hint string) string {
	path, _, _ := strings.Cut(hint, ",")
	path, _, _ = strings.Cut(path, ":")
	return path
}

// TestForeign: what the words of other tools lead to is there, and no word of ours is taken for one of them.
func TestForeign(t *testing.T) {
	for word, hint := range foreignWords {
		if _, _, err := Explain(names.KindTrainingJob, fieldOf(hint)); err != nil {
			t.Errorf("%s: %v", word, err)
		}
		if word != strings.ToLower(word) || strings.ContainsAny(word, "-_") {
			t.Errorf("%s is never found: write it in lower case, without '-' and '_'", word)
		}
		if _, _, err := Explain(names.KindTrainingJob, "spec."+word); err == nil {
			t.Errorf("%s is a field", word)
		}
	}
	for at, hint := range foreignAt {
		if _, _, err := Explain(names.KindTrainingJob, fieldOf(hint)); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		if _, _, err := Explain(names.KindTrainingJob, at); err == nil {
			t.Errorf("%s is a field", at)
		}
	}
	for at, words := range meantValues {
		f, _, err := Explain(names.KindTrainingJob, at)
		if err != nil {
			t.Error(err)
		}
		for word, hint := range words {
			if word != strings.ToLower(word) || strings.ContainsAny(word, "-_") {
				t.Errorf("%s: %s is never found: write it in lower case, without '-' and '_'", at, word)
			}
			if slices.Contains(strings.Split(strings.ReplaceAll(f.Type, ",", ""), " "), word) {
				t.Errorf("%s: %s is a value", at, word)
			}
			if !strings.HasPrefix(hint, "; ") {
				t.Errorf("%s: %s: %q ends no message", at, word, hint)
			}
		}
	}
}

// TestUnknown: the message about an unknown field names the field that was meant, or all that there are, with the
// command that describes them.
func TestUnknown(t *testing.T) {
	const head = "apiVersion: tegen.dev/v1alpha1\n"
	const job = head + "kind: TrainingJob\nmetadata: {name: a}\nspec: {image: 'a/b:1', command: [python, t.py], "
	const environment = head + "kind: Environment\nmetadata: {name: e}\nspec: {"
	for text, want := range map[string]string{
		job + "storage: [{mountPath: /d, pvc: x}]}": `spec.storage[0].pvc: unknown field; did you mean "claim"?`,
		job + "pvc: x}":                                     "; it stands at spec.storage.claim",
		job + "gpus: 2}":                                    "; it stands at spec.resources.gpu",
		job + "gpu: 2}":                                     "; it stands at spec.resources.gpu",
		job + "fsx: {fileSystem: a}}":                       "; it stands at spec.storage.fsx",
		job + "efa: 32}":                                    "; it stands at spec.resources.machine, ",
		job + "resources: {efa: 32}}":                       "; it stands at spec.resources.machine, ",
		job + "nodes: 2}":                                   "; it stands at spec.workers.replicas",
		job + "workers: {nodes: 2}}":                        `; did you mean "replicas"?`,
		job + "kueue: {localQueue: a}}":                     "; it stands at spec.gang: write scheduler: kueue",
		job + "iamRole: a}":                                 "; it stands at spec.identity.irsa.role",
		job + "workers: {slots: 4}}":                        `; did you mean "processes"?`,
		job + "dir: a}":                                     "; 'tegen explain spec' lists the fields",
		job + "gang: {queue: a}}":                           "; one of koordinator, coscheduling, volcano, kueue, ",
		job + "resources: {nvidia.com/gpu: 2}}":             `; did you mean "gpu"?`,
		job + "workers: {num_workers: 2}}":                  `; did you mean "replicas"?`,
		job + "gang: {scheduler: kueue, queueName: a}}":     `; did you mean "queue"?`,
		job + "activeDeadlineSeconds: 2}":                   "; it stands at spec.failure.deadline",
		job + "nodeSelector: {a: b}}":                       "; it stands at spec.placement.nodeSelector",
		job + "storage: [{mountPath: /d, iops: 3}]}":        "('tegen explain spec.storage' describes them)",
		job + "resources: {sriov: 3}}":                      "('tegen explain spec.resources' describes them)",
		job + "machines: []}":                               "; an Environment has it (",
		job + "frobnicate: 3}":                              "; 'tegen explain spec' lists the fields",
		job + "workers: {replicas: 1, frobnicate: 3}}":      "known here: after, autoscale, ",
		job + "rendezvous: {etcd: {tls: {ca: 3}}}}":         "'tegen explain spec.rendezvous.etcd.tls'",
		job + "'a.b c': 3}":                                 `spec["a.b c"]: unknown field; 'tegen explain spec' lists`,
		environment + "defaults: {gpus: 2}}":                "; it stands at spec.defaults.resources.gpu",
		environment + "gpus: 2}":                            "; it stands at spec.defaults.resources.gpu",
		environment + "overrides: {nodeSelector: {a: b}}}":  "; it stands at spec.overrides.placement.nodeSelector",
		environment + "accelerator: {frobnicate: 3}}":       "--environment spec.accelerator' describes",
		environment + "overrides: {workers: {a_b_c_d: 3}}}": "--environment spec.overrides.workers'",
		job + "framework: pytorch}":                         "; torchelastic, the default, starts programs of PyTorch",
		job + "framework: tensorflow}":                      "; horovod starts programs of TensorFlow",
		job + "framework: Horovodd}":                        `; did you mean "horovod"?`,
		job + "target: mpi-operator}":                       `; did you mean "mpijob"?`,
		job + "launcher: horovodrun}":                       "; horovodrun is that of framework horovod",
		environment + "defaults: {framework: PyTorch}}":     "; torchelastic, the default, starts programs of PyTorch",
	} {
		_, err := Load(named("f", text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestExplainOther: who asks for a field of the other kind, or for a kind, is told how.
func TestExplainOther(t *testing.T) {
	for path, want := range map[string]string{
		"spec.accelerator": "no field of kind TrainingJob but of Environment: " +
			"'tegen explain --environment spec.accelerator'",
		"Environment":      "Environment is a kind: 'tegen explain --environment' begins with its fields",
		"TrainingJob":      "TrainingJob is a kind: 'tegen explain' begins with its fields",
		"efa":              "whose cards come with it, or spec.resources.devices",
		"kueue":            "; it stands at spec.gang: write scheduler: kueue and queue there",
		"iamRole":          "; it stands at spec.identity.irsa.role",
		"spec.storage.pvc": `spec.storage.pvc: unknown field; did you mean "claim"?`,
	} {
		if _, _, err := Explain(names.KindTrainingJob, path); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	_, _, err := Explain(names.KindEnvironment, "spec.workers")
	if err == nil || !strings.Contains(err.Error(), "'tegen explain spec.workers'") {
		t.Errorf("a job's field of an Environment: %v", err)
	}
}

// TestForeignHidesNothing: a field that is only called otherwise brings no second message about what is then missing.
func TestForeignHidesNothing(t *testing.T) {
	const text = "apiVersion: tegen.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a, namespace: b}\n" +
		"spec: {image: 'a/b:1', command: [python, t.py], nnodes: 2}\n"
	_, err := Load(named("f", text))
	if err == nil || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("want the one message about nnodes, got %v", err)
	}
}
